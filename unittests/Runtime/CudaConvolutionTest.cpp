//===- CudaConvolutionTest.cpp - Convolutions as cuDNN takes them ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random convolutions of numbers whose results are exact, on the test machine
// and on the processor. Where the real cuDNN is, it makes plans of a network's
// convolutions for a GPU that is not there.
//
//===----------------------------------------------------------------------===//

#include "CudaScenario.h"
#include "RandomConvolution.h"
#include "device/cuda/Convolutions.h"

#include <deque>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <set>
#include <unistd.h>

namespace whale::runtime::test {
namespace {

using cuda::DnnConvolution;
using cuda::test::Machine;
using Floats = std::vector<float>;

Floats convolve(Device &device, Convolution &op, const Floats &lhs,
                const Floats &rhs) {
  op.rhs = 1;
  op.out = 2;
  Floats out(static_cast<size_t>(elementCount(op.outShape)), 7);
  return computeOn(device, lhs, rhs, out, [&](const BufferTable &table) {
    device.convolution(Queue::Compute, op, table);
  });
}

/// With each operand's and the result's dimensions in the order in which cuDNN
/// reads them.
Convolution inOrder(Convolution op) {
  format::ConvolutionOrder order = format::channelsLastOrder(op);
  auto move = [](Shape &shape, Convolution::Dimensions &dims,
                 const std::vector<int64_t> &order) {
    Shape before = shape;
    std::vector<int64_t> places(order.size());
    for (size_t to = 0; to < order.size(); ++to) {
      shape[to] = before[order[to]];
      places[order[to]] = static_cast<int64_t>(to);
    }
    dims.first = places[dims.first];
    dims.second = places[dims.second];
    for (int64_t &dim : dims.spatial)
      dim = places[dim];
  };
  move(op.lhsShape, op.lhsDims, order.lhs);
  move(op.rhsShape, op.rhsDims, order.rhs);
  move(op.outShape, op.outDims, order.out);
  return op;
}

/// The gradients of a two-dimensional convolution, as JAX writes them but for
/// the order of dimensions.
std::vector<Convolution> gradientsOf(int64_t extent, int64_t kernel,
                                     int64_t stride, int64_t dilation,
                                     int64_t before, int64_t after,
                                     int64_t channels, int64_t outputs,
                                     int64_t groups) {
  int64_t reach = (kernel - 1) * dilation + 1;
  int64_t windows = (extent + before + after - reach) / stride + 1;
  int64_t spread = (windows - 1) * stride + 1;
  Convolution image, filter;
  image.lhsType = image.rhsType = image.outType = DType::F32;
  filter = image;
  image.lhsShape = {2, windows, windows, outputs};
  image.rhsShape = {kernel, kernel, channels, outputs / groups};
  image.outShape = {2, extent, extent, channels};
  image.lhsDims = image.outDims = {0, 3, {1, 2}};
  image.rhsDims = {3, 2, {0, 1}};
  int64_t low = reach - 1 - before;
  Convolution::Window window{1,      low,      extent - spread + before,
                             stride, dilation, true};
  image.windows = {window, window};
  image.featureGroups = groups;
  filter.lhsShape = {2, extent, extent, channels};
  filter.rhsShape = {2, windows, windows, outputs};
  filter.outShape = {kernel, kernel, channels / groups, outputs};
  filter.lhsDims = {3, 0, {1, 2}};
  filter.rhsDims = {0, 3, {1, 2}};
  filter.outDims = {2, 3, {0, 1}};
  filter.batchGroups = groups;
  window = {dilation, before, reach + spread - 1 - extent - before,
            1,        stride, false};
  filter.windows = {window, window};
  return {inOrder(image), inOrder(filter)};
}

TEST(CudaConvolution, AreThoseOfTheProcessor) {
  Machine machine({});
  auto gpu = makeGpu(machine), cpu = createCpuDevice(1);
  cpu->attachThread();
  std::mt19937 random(4);
  std::deque<Convolution> ops;
  for (int i = 0; i < 300; ++i) {
    Convolution op = randomConvolution(random);
    if (elementCount(op.outShape) && elementCount(op.lhsShape))
      ops.push_back(random() % 4 ? inOrder(op) : op);
  }
  for (int64_t extent : {8, 9})
    for (int64_t stride : {1, 2, 3})
      for (int64_t dilation : {1, 2})
        for (int64_t pad : {0, 1})
          for (auto [outputs, groups] : {std::pair(6, 1), {6, 2}, {4, 4}})
            for (const Convolution &op : gradientsOf(
                     extent, 3, stride, dilation, 1, pad, 4, outputs, groups))
              ops.push_back(op);
  int64_t counts[3] = {}, onHost = 0;
  for (Convolution &op : ops) {
    SCOPED_TRACE(&op - &ops.front());
    if (auto described = cuda::describeForDnn(op))
      ++counts[static_cast<int>(described->kind)];
    else
      ++onHost;
    auto numbers = [&](const Shape &shape) {
      Floats result(static_cast<size_t>(elementCount(shape)));
      for (float &number : result)
        number = static_cast<float>(static_cast<int>(random() % 17) - 8) / 4;
      return result;
    };
    Floats lhs = numbers(op.lhsShape), rhs = numbers(op.rhsShape);
    Floats expected = convolve(*cpu, op, lhs, rhs);
    ASSERT_EQ(convolve(*gpu, op, lhs, rhs), expected);
    Instruction instruction;
    instruction.operation = &std::as_const(op);
    ASSERT_EQ(gpu->algorithmOf(instruction),
              cuda::describeForDnn(op) ? "cuDNN engine 3" : "processor");
    ASSERT_EQ(machine.takeFaults(), std::vector<std::string>());
  }
  // Gradients that a network has are never left to the processor.
  for (int64_t stride : {1, 2})
    for (auto [outputs, groups] : {std::pair(6, 1), {4, 4}})
      for (const Convolution &op :
           gradientsOf(9, 3, stride, 1, 1, 1, 4, outputs, groups))
        EXPECT_TRUE(cuda::describeForDnn(op));
  for (int64_t count : counts)
    EXPECT_GT(count, 10);
  EXPECT_GT(onHost, 10);
  std::cout << counts[0] << " forward, " << counts[1] << " of images, "
            << counts[2] << " of filters, " << onHost << " by the processor\n";
}

/// Of a network whose layers are alike.
TEST(CudaConvolution, SharePlansWhereTheyAreAlike) {
  Machine machine({});
  auto gpu = makeGpu(machine);
  std::vector<Convolution> ops = gradientsOf(8, 3, 1, 1, 1, 1, 2, 2, 1);
  std::deque<Convolution> all = {ops[0], ops[0], ops[1], ops[0]};
  all.back().tf32 = true;
  std::vector<bool> expected = {true, false, true, true}, makesPlans;
  for (Convolution &op : all) {
    int64_t before = machine.plans;
    Floats lhs(static_cast<size_t>(elementCount(op.lhsShape)), 1);
    Floats rhs(static_cast<size_t>(elementCount(op.rhsShape)), 1);
    convolve(*gpu, op, lhs, rhs);
    makesPlans.push_back(machine.plans > before);
  }
  EXPECT_EQ(makesPlans, expected);
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
}

/// 1 + 2^-12 times itself: f32 tells it from 1, TF32 does not.
TEST(CudaConvolution, AreInTf32OnlyWhereTheyMayBe) {
  Machine machine({});
  auto gpu = makeGpu(machine);
  Convolution exact;
  exact.lhsType = exact.rhsType = exact.outType = DType::F32;
  exact.lhsShape = exact.rhsShape = exact.outShape = {1, 1, 1, 1};
  exact.lhsDims = exact.rhsDims = exact.outDims = {0, 1, {2, 3}};
  exact.windows = {{}, {}};
  Convolution rounded = exact;
  rounded.tf32 = true;
  float number = 1 + 0x1p-12f;
  EXPECT_EQ(convolve(*gpu, exact, {number}, {number}), Floats{number * number});
  EXPECT_EQ(convolve(*gpu, rounded, {number}, {number}), Floats{1});
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
}

/// The convolutions of a ResNet and a MobileNet, and their gradients, have
/// deterministic plans of modest workspace, exact ones in f32 too.
TEST(CudaConvolution, HavePlansOfTheRealLibrary) {
  // It makes no plans without a GPU before that version.
  std::string why;
  std::unique_ptr<cuda::Dnn> dnn = openRealDnn(90800, why);
  if (!dnn)
    GTEST_SKIP() << why;
  size_t count = 0;
  for (DType dtype : {DType::F32, DType::BF16})
    for (auto [extent, kernel, stride, channels, outputs, groups] :
         {std::tuple(224, 7, 2, 3, 64, 1),
          {56, 1, 1, 64, 256, 1},
          {56, 3, 1, 64, 64, 1},
          {56, 1, 2, 256, 512, 1},
          {28, 3, 2, 128, 128, 1},
          {7, 3, 1, 512, 512, 1},
          // Those of a MobileNet.
          {56, 3, 1, 144, 144, 144},
          {28, 5, 2, 240, 240, 240}}) {
      // Padded as JAX does for "SAME"; what is uneven is part of the image.
      int64_t padding = std::max(kernel - stride, 0), before = padding / 2;
      std::vector<Convolution> ops =
          gradientsOf(extent + padding % 2, kernel, stride, 1, before, before,
                      channels, outputs, groups);
      Convolution forward = ops[0];
      std::swap(forward.lhsShape, forward.outShape);
      forward.rhsShape = {outputs, kernel, kernel, channels / groups};
      forward.rhsDims = {3, 0, {1, 2}};
      Convolution::Window window{stride, before, before, 1, 1, false};
      forward.windows = {window, window};
      ops.push_back(forward);
      for (Convolution &op : ops) {
        op.lhsType = op.rhsType = op.outType = dtype;
        auto described = cuda::describeForDnn(op);
        ASSERT_TRUE(described);
        int64_t most = cuda::workspaceOf(*described);
        auto plans = cuda::findConvolutionPlans(
            *dnn, *described, {nullptr, propertiesOf()}, most, 4);
        SCOPED_TRACE(describe(*described));
        ASSERT_FALSE(plans.empty());
        std::set<std::string> names;
        for (const auto &plan : plans) {
          EXPECT_LE(plan->workspaceBytes(), most);
          EXPECT_TRUE(names.insert(plan->name()).second) << plan->name();
        }
        count += plans.size();
      }
    }
  // There is something to choose from.
  EXPECT_GT(count, 72u);
}

/// What was measured is written down, and is what counts from then on.
TEST(CudaConvolution, AreByTheEngineThatWasMeasuredFirst) {
  std::string path =
      ::testing::TempDir() + "whale-choices-" + std::to_string(getpid());
  Convolution op = gradientsOf(8, 3, 1, 1, 1, 1, 2, 2, 1)[0];
  op.tf32 = true;
  Machine machine({});
  auto algorithm = [&] {
    auto gpu = createCudaDevice(
        std::make_shared<cuda::Gpu>(machine.libraries(), 0), programOf(1, {}),
        [](const KernelLaunch &) { return GpuKernel(); }, nullptr, 0,
        {.choices = path});
    gpu->attachThread();
    Floats lhs(static_cast<size_t>(elementCount(op.lhsShape)), 1);
    Floats rhs(static_cast<size_t>(elementCount(op.rhsShape)), 1);
    convolve(*gpu, op, lhs, rhs);
    Instruction instruction;
    instruction.operation = &std::as_const(op);
    return gpu->algorithmOf(instruction);
  };
  auto read = [&] {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  auto write = [&](const std::string &text) { std::ofstream(path) << text; };
  std::string first = algorithm(), text = read();
  EXPECT_EQ("cuDNN " + text.substr(text.find('\t') + 1), first + "\n");
  // Of the machine's four, one rounds to TF32, and one is exact.
  for (const char *engine : {"engine 1", "engine 3"}) {
    std::string chosen = text.substr(0, text.find('\t') + 1) + engine + "\n";
    write(chosen);
    EXPECT_EQ(algorithm(), std::string("cuDNN ") + engine);
    EXPECT_EQ(read(), chosen);
  }
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
  auto errorOf = [&](const std::string &text) -> std::string {
    write(text);
    try {
      algorithm();
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  std::string unknown = errorOf(text.substr(0, text.find('\t')) + "\tfast\n");
  EXPECT_NE(unknown.find("names 'fast', which cuDNN does not offer for"),
            std::string::npos)
      << unknown;
  EXPECT_NE(errorOf("engine 3\n").find("a line that is not a key"),
            std::string::npos);
  std::remove(path.c_str());
  path = "/nowhere/choices";
  EXPECT_NE(errorOf("").find("cannot be opened"), std::string::npos);
}

} // namespace
} // namespace whale::runtime::test
