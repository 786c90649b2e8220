//===- CudaCallsTest.cpp - Library calls that a GPU computes --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Library calls that a GPU computes: factorizations, solvers and transforms of
// f32, f64 and both complex types. Each runs on the test machine
// (runtime/cuda/test/Machine.h), and its results must be within 1e-5 of those
// of the processor's routine.
//
// Each runs three times, and the third time must be a graph if it can be in
// one. A run makes the call twice, so that operands that were overwritten show.
// The machine computes by the processor's libraries as well; what it finds are
// wrong parameters, memory and order, which it refuses as the real libraries
// would.
//
//===----------------------------------------------------------------------===//

#include "TransportScenario.h"
#include "cuda/test/Machine.h"
#include "device/cpu/Parallel.h"
#include "device/cuda/Calls.h"
#include "device/cuda/CudaDevice.h"
#include "whale/Runtime/Libraries.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace whale::runtime::test {
namespace {

using cuda::test::Machine;

struct Case {
  std::string function, config;
  std::vector<LibraryTensor> inputs, outputs;
  enum { InGraph, OnGpu, OnHost } where;
};

/// Of real or complex elements of 4 or 8 bytes a part; most batches are of two.
std::vector<Case> casesOf(DType element, DType real) {
  constexpr DType i32 = DType::I32;
  auto e = [&](Shape shape) {
    return LibraryTensor{element, std::move(shape)};
  };
  auto r = [&](Shape shape) { return LibraryTensor{real, std::move(shape)}; };
  auto i = [&](Shape shape) { return LibraryTensor{i32, std::move(shape)}; };
  auto matrix = e({2, 4, 4}), tall = e({2, 3, 5}), wide = e({2, 5, 3});
  auto info = i({2});
  std::vector<Case> cases = {
      {"lapack.potrf",
       R"({"uplo": 76})",
       {matrix},
       {matrix, info},
       Case::OnGpu},
      {"lapack.potrf",
       R"({"uplo": 85})",
       {matrix},
       {matrix, info},
       Case::OnGpu},
      {"lapack.getrf", "{}", {tall}, {tall, i({2, 3}), info}, Case::OnGpu},
      {"lapack.getrf", "{}", {wide}, {wide, i({2, 3}), info}, Case::OnGpu},
      {"lapack.geqrf", "{}", {tall}, {tall, e({2, 3})}, Case::OnGpu},
      {"lapack.geqrf", "{}", {wide}, {wide, e({2, 3})}, Case::OnGpu},
      // So much work that the processor takes several threads.
      {"lapack.geqrf",
       "{}",
       {e({8, 32, 48})},
       {e({8, 32, 48}), e({8, 32})},
       Case::OnGpu},
      {"lapack.orgqr", "{}", {tall, e({2, 3})}, {tall}, Case::OnGpu},
      {"lapack.geqp3",
       "{}",
       {tall, i({2, 3})},
       {tall, i({2, 3}), e({2, 3})},
       Case::OnHost}};
  for (const char *mode : {"78", "86"})
    cases.push_back({"lapack.syevd",
                     R"({"uplo": 76, "mode": )" + std::string(mode) + "}",
                     {matrix},
                     {matrix, r({2, 4}), info},
                     Case::OnGpu});
  cases.push_back({"lapack.gesdd",
                   R"({"mode": 83})",
                   {tall},
                   {tall, r({2, 3}), tall, e({2, 3, 3}), info},
                   Case::OnGpu});
  cases.push_back({"lapack.gesdd",
                   R"({"mode": 65})",
                   {tall},
                   {tall, r({2, 3}), e({2, 5, 5}), e({2, 3, 3}), info},
                   Case::OnGpu});
  cases.push_back({"lapack.gesdd",
                   R"({"mode": 65})",
                   {wide},
                   {wide, r({2, 3}), e({2, 3, 3}), e({2, 5, 5}), info},
                   Case::OnHost});
  for (const char *flag : {"true", "false"}) {
    std::string config = R"({"transpose": )" + std::string(flag);
    cases.push_back({"lapack.ormqr",
                     config + R"(, "left": true})",
                     {e({2, 3, 5}), e({2, 3}), e({2, 2, 5})},
                     {e({2, 2, 5})},
                     Case::OnGpu});
    cases.push_back({"lapack.ormqr",
                     config + R"(, "left": false})",
                     {e({2, 3, 5}), e({2, 3}), e({2, 5, 2})},
                     {e({2, 5, 2})},
                     Case::OnGpu});
  }
  for (int flags = 0; flags < 8; ++flags)
    for (const char *operation : {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}) {
      nlohmann::json config;
      config["left_side"] = (flags & 1) != 0;
      config["lower"] = (flags & 2) != 0;
      config["unit_diagonal"] = (flags & 4) != 0;
      config["transpose_a"] = operation;
      LibraryTensor b = e(flags & 1 ? Shape{2, 4, 3} : Shape{2, 3, 4});
      cases.push_back(
          {"triangular_solve", config.dump(), {matrix, b}, {b}, Case::InGraph});
    }
  cases.push_back({"lapack.trsm",
                   R"({"side": 76, "uplo": 76, "diag": 78, "trans_x": 67})",
                   {matrix, e({2, 4, 3})},
                   {e({2, 4, 3})},
                   Case::InGraph});
  bool isComplex = element != real;
  auto complex = isComplex               ? element
                 : element == DType::F32 ? DType::C64
                                         : DType::C128;
  LibraryTensor half{complex, {2, 3, 4}};
  std::string lengths = R"("length": [3, 6]})";
  if (isComplex)
    for (const char *type : {"FFT", "IFFT"})
      cases.push_back({"fft",
                       R"({"type": ")" + std::string(type) + "\", " + lengths,
                       {e({2, 3, 6})},
                       {e({2, 3, 6})},
                       Case::InGraph});
  else {
    cases.push_back({"fft",
                     R"({"type": "RFFT", )" + lengths,
                     {e({2, 3, 6})},
                     {half},
                     Case::InGraph});
    cases.push_back({"fft",
                     R"({"type": "IRFFT", )" + lengths,
                     {half},
                     {e({2, 3, 6})},
                     Case::InGraph});
  }
  return cases;
}

int64_t bytesOf(const LibraryTensor &tensor) {
  return elementCount(tensor.shape) * byteSize(tensor.dtype);
}

/// Numbers from -1 to 1, with 6 added to diagonals of square matrices. Places
/// of pivots are zero.
std::shared_ptr<Buffer> fill(std::mt19937 &random,
                             const LibraryTensor &tensor) {
  auto buffer = Buffer::allocate(bytesOf(tensor));
  std::memset(buffer->data.get(), 0, static_cast<size_t>(buffer->bytes));
  auto put = [&]<typename Part>(Part *parts, int64_t width) {
    const Shape &shape = tensor.shape;
    int64_t columns = shape.back();
    bool isSquare = shape.size() > 2 && shape[shape.size() - 2] == columns;
    std::uniform_real_distribution<Part> any(-1, 1);
    for (int64_t k = 0; k < elementCount(shape); ++k) {
      for (int64_t part = 0; part < width; ++part)
        parts[k * width + part] = any(random);
      if (!isSquare || k % columns != k / columns % columns)
        continue;
      // The diagonal of a Hermitian matrix is real.
      parts[k * width] += 6;
      if (width == 2)
        parts[k * width + 1] = 0;
    }
  };
  void *data = buffer->data.get();
  switch (tensor.dtype) {
  case DType::F32:
    put(static_cast<float *>(data), 1);
    break;
  case DType::C64:
    put(static_cast<float *>(data), 2);
    break;
  case DType::F64:
    put(static_cast<double *>(data), 1);
    break;
  case DType::C128:
    put(static_cast<double *>(data), 2);
    break;
  default:
    break;
  }
  return buffer;
}

/// The largest difference of two buffers' numbers.
double difference(DType dtype, const void *a, const void *b, int64_t bytes) {
  double most = 0;
  auto compare = [&]<typename Part>(Part) {
    const auto *x = static_cast<const Part *>(a);
    const auto *y = static_cast<const Part *>(b);
    for (int64_t k = 0; k < bytes / int64_t(sizeof(Part)); ++k) {
      double distance = std::abs(double(x[k]) - double(y[k]));
      most = std::isnan(distance) ? INFINITY : std::max(most, distance);
    }
  };
  if (dtype == DType::I32)
    compare(int32_t());
  else if (dtype == DType::F32 || dtype == DType::C64)
    compare(float());
  else
    compare(double());
  return most;
}

/// Runs a call on the GPU three times, the last one repeated from a recording
/// where that is possible, and compares each result with the processor's.
void check(Machine &machine, const Case &each, std::mt19937 &random) {
  SCOPED_TRACE(each.function + " " + each.config + " of " +
               std::string(name(each.inputs[0].dtype)));
  format::Call given{each.function, {}, {}, each.config};
  nlohmann::json config = nlohmann::json::parse(each.config);
  Call call;
  call.function = (*findLibraryFunction(each.function))(
      {each.inputs, each.outputs, config, {}});
  call.given = &given;
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<Region> regions;
  std::vector<void *> inputs, expected;
  std::vector<std::vector<uint8_t>> results;
  for (const LibraryTensor &tensor : each.inputs) {
    call.inputs.push_back(static_cast<BufferIndex>(buffers.size()));
    buffers.push_back(fill(random, tensor));
    regions.push_back({buffers.back().get(), 0, true, false});
    inputs.push_back(buffers.back()->data.get());
    call.tensors.push_back(tensor);
    call.bytes.push_back(bytesOf(tensor));
  }
  for (const LibraryTensor &tensor : each.outputs) {
    call.outputs.push_back(static_cast<BufferIndex>(buffers.size()));
    buffers.push_back(Buffer::allocate(bytesOf(tensor)));
    regions.push_back({buffers.back().get(), 0, false, true});
    expected.push_back(
        results.emplace_back(static_cast<size_t>(bytesOf(tensor))).data());
    call.tensors.push_back(tensor);
    call.bytes.push_back(bytesOf(tensor));
  }
  call.function(inputs, expected);

  auto gpu = std::make_shared<cuda::Gpu>(machine.libraries(), 0);
  std::optional<int64_t> workspace =
      getLibraries().gpuWorkspace(each.function, each.inputs, each.outputs);
  int64_t planned = workspace.value_or(0);
  EXPECT_EQ(cuda::Calls(*gpu, planned).find(call) != nullptr,
            each.where != Case::OnHost);
  format::Program program = programOf(1, {});
  program.classes[0].workspaceBytes = planned;
  auto device = createCudaDevice(
      gpu, program, [](const KernelLaunch &) { return GpuKernel(); }, nullptr,
      0, {});
  device->attachThread();
  // A rank has several.
  int64_t before = getThreadCount();
  setThreadCount(2);
  BufferTable table;
  for (int run = 0; run < 3; ++run) {
    for (size_t k = each.inputs.size(); k < buffers.size(); ++k)
      std::memset(buffers[k]->data.get(), 0xff,
                  static_cast<size_t>(buffers[k]->bytes));
    device->reset();
    device->bind(table, regions);
    bool isRepeated = device->repeat(table, 0);
    EXPECT_EQ(isRepeated, run == 2 && each.where == Case::InGraph);
    if (!isRepeated) {
      device->beginRecording(table, 0);
      // Once more: its operands are as they were.
      device->call(Queue::Compute, call, table);
      device->call(Queue::Compute, call, table);
      device->endRecording();
    }
    device->finish();
    for (size_t k = 0; k < each.outputs.size(); ++k)
      EXPECT_LT(difference(each.outputs[k].dtype, expected[k],
                           buffers[each.inputs.size() + k]->data.get(),
                           bytesOf(each.outputs[k])),
                1e-5)
          << "result " << k << ", run " << run;
  }
  setThreadCount(before);
  device->bind(table, {});
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
}

TEST(CudaCalls, AreThoseOfTheProcessor) {
  Machine machine({});
  std::mt19937 random(5);
  for (auto [element, real] :
       {std::pair(DType::F32, DType::F32), std::pair(DType::F64, DType::F64),
        std::pair(DType::C64, DType::F32), std::pair(DType::C128, DType::F64)})
    for (const Case &each : casesOf(element, real))
      check(machine, each, random);
}

/// What asks for more than is planned goes to the processor, and says so.
TEST(CudaCalls, AreTheProcessorsWhereTheWorkspaceIsTooSmall) {
  Machine machine({});
  cuda::Gpu gpu(machine.libraries(), 0);
  gpu.attach();
  LibraryTensor matrix{DType::F32, {2, 4, 4}}, info{DType::I32, {2}};
  format::Call given{"lapack.potrf", {0}, {1, 2}, R"({"uplo": 76})"};
  Call call;
  call.given = &given;
  call.inputs = given.inputs;
  call.outputs = given.outputs;
  call.tensors = {matrix, matrix, info};
  for (const LibraryTensor &tensor : call.tensors)
    call.bytes.push_back(bytesOf(tensor));
  cuda::Calls enough(gpu, 1 << 20), calls(gpu, 256);
  EXPECT_NE(enough.find(call), nullptr);
  EXPECT_EQ(calls.find(call), nullptr);
  std::string algorithm = calls.algorithmOf(&call);
  EXPECT_TRUE(algorithm.starts_with("processor, as cuSOLVER takes "))
      << algorithm;
  EXPECT_TRUE(algorithm.ends_with(" where 256 are planned")) << algorithm;
  // The least that an engine takes is 512 bytes.
  Convolution convolution;
  convolution.lhsType = convolution.rhsType = convolution.outType = DType::F32;
  convolution.lhsShape = convolution.outShape = {1, 1, 4, 4};
  convolution.rhsShape = {1, 1, 1, 1};
  convolution.lhsDims = convolution.rhsDims =
      convolution.outDims = {0, 1, {2, 3}};
  convolution.windows.resize(2);
  EXPECT_EQ(calls.find(convolution, {}, {}), nullptr);
  algorithm = calls.algorithmOf(&convolution);
  EXPECT_TRUE(algorithm.starts_with("processor, as cuDNN ")) << algorithm;
  EXPECT_NE(algorithm.find(" has no plan within 256 bytes"), std::string::npos)
      << algorithm;
}

} // namespace
} // namespace whale::runtime::test
