//===- GpuTest.cpp - What every device must do, on a GPU ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The GPU is the machine's first one, which all ranks share, or where
// WHALE_TEST_CUDA asks for it one of the test machine.
//
//===----------------------------------------------------------------------===//

#include "DeviceConformance.h"
#include "cuda/test/TestPrograms.h"
#include "device/cuda/Calls.h"
#include "device/cuda/CudaDevice.h"
#include "whale/Runtime/Libraries.h"

#include <deque>
#include <limits>

namespace whale::runtime::test {
namespace {

/// out[i] = in[i] + 1, of i32. The two addresses, which are neighbours in the
/// list of a launch's parameters, are one parameter here, as the test machine
/// has it.
std::string addOneText(int64_t threads) {
  std::string count = std::to_string(threads);
  return ".version 6.3\n"
         ".target sm_60\n"
         ".address_size 64\n"
         ".visible .entry add_one(.param .align 8 .b8 box[16])\n"
         ".maxntid " +
         count +
         ", 1, 1\n"
         "{\n"
         "  .reg .b32 %b, %t, %x;\n"
         "  .reg .b64 %at, %thread, %in, %out;\n"
         "  mov.u32 %b, %ctaid.x;\n"
         "  mov.u32 %t, %tid.x;\n"
         "  mul.wide.u32 %at, %b, " +
         count +
         ";\n"
         "  cvt.u64.u32 %thread, %t;\n"
         "  add.u64 %at, %at, %thread;\n"
         "  mul.lo.u64 %at, %at, 4;\n"
         "  ld.param.u64 %in, [box+0];\n"
         "  ld.param.u64 %out, [box+8];\n"
         "  add.u64 %in, %in, %at;\n"
         "  add.u64 %out, %out, %at;\n"
         "  ld.global.u32 %x, [%in];\n"
         "  add.u32 %x, %x, 1;\n"
         "  st.global.u32 [%out], %x;\n"
         "  ret;\n"
         "}\n";
}

/// The kernel of the tests, for the GPU of the calling thread's context.
GpuKernel findAddOne(const cuda::Gpu &gpu, const KernelLaunch &launch) {
  GpuKernel kernel;
  kernel.threads = std::gcd(launch.extent, int64_t(128));
  kernel.blocks = launch.extent / kernel.threads;
  cuda::Module module = nullptr;
  gpu.call(gpu.driver.moduleLoadDataEx, &module,
           addOneText(kernel.threads).c_str(), 0u, nullptr, nullptr);
  gpu.call(gpu.driver.moduleGetFunction, &kernel.function, module, "add_one");
  return kernel;
}

std::vector<std::unique_ptr<Device>> createOnGpu(const format::Program &program,
                                                 Transport &transport) {
  const cuda::Libraries *tests = cuda::test::findTestLibraries();
  const cuda::Libraries &libraries = tests ? *tests : cuda::openLibraries();
  std::vector<std::unique_ptr<Device>> devices;
  for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
    auto gpu = std::make_shared<const cuda::Gpu>(libraries, 0);
    auto find = [gpu = gpu.get()](const KernelLaunch &launch) {
      return findAddOne(*gpu, launch);
    };
    devices.push_back(createCudaDevice(std::move(gpu), program, find,
                                       &transport, static_cast<int64_t>(rank),
                                       {}));
  }
  return devices;
}

/// cuFFT and cuSOLVER say here alone what they need.
TEST(GpuWorkspace, IsPlannedForAllThatLibrariesNeed) {
  const cuda::Libraries *tests = cuda::test::findTestLibraries();
  cuda::Gpu gpu(tests ? *tests : cuda::openLibraries(), 0);
  gpu.attach();
  cuda::Calls calls(gpu, std::numeric_limits<int64_t>::max());
  // They are known by their addresses.
  std::deque<format::Call> givens;
  std::deque<Call> ops;
  auto check = [&](const std::string &function, const std::string &config,
                   const std::vector<LibraryTensor> &inputs,
                   const std::vector<LibraryTensor> &outputs) {
    Call &call = ops.emplace_back();
    call.given = &givens.emplace_back(format::Call{function, {}, {}, config});
    for (const auto *tensors : {&inputs, &outputs})
      for (const LibraryTensor &tensor : *tensors) {
        auto number = static_cast<BufferIndex>(call.tensors.size());
        (tensors == &inputs ? call.inputs : call.outputs).push_back(number);
        call.tensors.push_back(tensor);
        call.bytes.push_back(elementCount(tensor.shape) *
                             byteSize(tensor.dtype));
      }
    const cuda::GpuCall *found = calls.find(call);
    ASSERT_NE(found, nullptr) << function;
    EXPECT_LE(found->workspaceBytes,
              getLibraries().gpuWorkspace(function, inputs, outputs))
        << function << " of " << elementCount(inputs[0].shape) << " "
        << name(inputs[0].dtype);
  };
  for (DType type : {DType::F32, DType::F64}) {
    DType complex = type == DType::F32 ? DType::C64 : DType::C128;
    auto transform = [&](const char *kind, Shape from, DType read, Shape to,
                         DType written, const std::string &lengths) {
      check("fft",
            R"({"type": ")" + std::string(kind) + R"(", "length": )" + lengths +
                "}",
            {{read, std::move(from)}}, {{written, std::move(to)}});
    };
    for (int64_t n : {1024, 1000, 1009, 997 * 4}) {
      std::string length = "[" + std::to_string(n) + "]";
      transform("FFT", {64, n}, complex, {64, n}, complex, length);
      transform("RFFT", {64, n}, type, {64, n / 2 + 1}, complex, length);
      transform("IRFFT", {64, n / 2 + 1}, complex, {64, n}, type, length);
    }
    for (int64_t n : {256, 211}) {
      std::string length = std::to_string(n);
      length = "[" + length + ", " + length + ", " + length + "]";
      transform("FFT", {n, n, n}, complex, {n, n, n}, complex, length);
      transform("RFFT", {n, n, n}, type, {n, n, n / 2 + 1}, complex, length);
    }
    for (int64_t n : {3, 100, 1000, 4096})
      for (DType each : {type, complex}) {
        LibraryTensor matrix{each, {n, n}}, tall{each, {n, 2 * n}},
            scales{each, {n}}, reals{type, {n}}, info{DType::I32, {}};
        check("lapack.potrf", R"({"uplo": 76})", {matrix}, {matrix, info});
        check("lapack.getrf", "{}", {tall}, {tall, {DType::I32, {n}}, info});
        check("lapack.geqrf", "{}", {tall}, {tall, scales});
        check("lapack.orgqr", "{}", {tall, scales}, {tall});
        check("lapack.ormqr", R"({"left": true, "transpose": false})",
              {matrix, scales, matrix}, {matrix});
        check("lapack.syevd", R"({"uplo": 76, "mode": 86})", {matrix},
              {matrix, reals, info});
        check("lapack.gesdd", R"({"mode": 83})", {tall},
              {tall, reals, tall, matrix, info});
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, DeviceConformance,
                         testing::Values(DeviceMaker(createOnGpu)));

} // namespace

// Their functions are used, not their tests.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StuckTransport);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DirectTransport);

} // namespace whale::runtime::test
