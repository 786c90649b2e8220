//===- CudaMemoryTest.cpp - Memory of a GPU on a test machine -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arrays that stay on a GPU, what is given back where memory is short, and
// readers beside steps: the calls of the CUDA device go to the test machine, as
// in CudaDeviceTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "OnMachine.h"
#include "cuda/BoxKernels.h"
#include "device/cuda/Products.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

namespace whale::runtime::test {
namespace {

constexpr Queue compute = Queue::Compute;

std::shared_ptr<Buffer> arrayOf(int32_t first) {
  auto array = Buffer::allocate(16);
  std::iota(static_cast<int32_t *>(array->data.get()),
            static_cast<int32_t *>(array->data.get()) + 4, first);
  return array;
}
int32_t firstOf(const void *data) {
  return *static_cast<const int32_t *>(data);
}

/// Adds one to an array on a device of several.
void addOneTo(Devices &all, int64_t which, const Buffer &from,
              const Buffer &to) {
  static const KernelLaunch launch = {addOne, {0, 1}, 4, 1};
  all.run([&](int64_t rank, Device &device) {
    if (rank != which)
      return;
    Region regions[2] = {
        {&from, 0, /*isRead=*/true, /*isWritten=*/false, /*isOfArray=*/true},
        {&to, 0, /*isRead=*/false, /*isWritten=*/true, /*isOfArray=*/true}};
    BufferTable table;
    device.bind(table, regions);
    device.launch(compute, launch, table);
  });
}

TEST(CudaMemory, ArraysStayWhereTheyAre) {
  Devices all(onMachine({}), 2);
  auto first = arrayOf(1), second = arrayOf(50), third = arrayOf(60);
  addOneTo(all, 0, *first, *second);
  EXPECT_EQ(firstOf(second->data.get()), 50);
  // Neither is brought there again, nor read before.
  *static_cast<int32_t *>(first->data.get()) = 100;
  addOneTo(all, 0, *second, *third);
  EXPECT_EQ(firstOf(second->data.get()), 50);
  EXPECT_EQ(firstOf(third->host()), 3);
  addOneTo(all, 0, *first, *third);
  EXPECT_EQ(firstOf(third->host()), 2);
  // Through the host to another GPU, and in place.
  int64_t used = machine->gpus[0].usedBytes;
  addOneTo(all, 1, *second, *second);
  EXPECT_EQ(machine->gpus[0].usedBytes, used);
  EXPECT_EQ(firstOf(second->host()), 3);
  EXPECT_EQ(machine->takeFaults(), std::vector<std::string>());
}

TEST(CudaMemory, ArraysGiveBackTheirMemory) {
  Devices all(onMachine({}), 1);
  auto array = arrayOf(0);
  for (int run = 0; run < 2; ++run) {
    auto next = arrayOf(0);
    addOneTo(all, 0, *array, *next);
    array = next;
  }
  int64_t used = machine->gpus[0].usedBytes;
  for (int run = 2; run < 10; ++run) {
    auto next = arrayOf(0);
    addOneTo(all, 0, *array, *next);
    array = next;
  }
  EXPECT_EQ(machine->gpus[0].usedBytes, used);
  EXPECT_EQ(firstOf(array->host()), 10);
}

/// What arrays of one program have left idle is another one's to take.
TEST(CudaMemory, IdleMemoryOfArraysIsForWhoNeedsIt) {
  constexpr int64_t mib = 1 << 20;
  Devices all(onMachine({.memoryBytes = 40 * mib}), 1);
  {
    auto large = Buffer::allocate(30 * mib);
    all.run([&](int64_t, Device &device) {
      Region regions[1] = {{large.get(), 0, /*isRead=*/true,
                            /*isWritten=*/false, /*isOfArray=*/true}};
      BufferTable table;
      device.bind(table, regions);
      device.record(compute);
      device.finish();
    });
    EXPECT_GT(machine->gpus[0].usedBytes, 30 * mib);
  }
  std::shared_ptr<Buffer> other;
  all.run([&](int64_t, Device &device) {
    other = device.allocate(MemorySpace::Device, 30 * mib);
  });
  EXPECT_LT(machine->gpus[0].usedBytes, 40 * mib);
  EXPECT_EQ(machine->takeFaults(), std::vector<std::string>());
}

/// Who is asked for memory gives, and who is at work does not.
TEST(CudaMemory, LendersAreAskedInTheirTurn) {
  constexpr int64_t mib = 1 << 20;
  Machine own({.memoryBytes = 64 * mib});
  cuda::Gpu gpu(own.libraries(), 0);
  gpu.attach();
  std::vector<cuda::Address> kept = {gpu.allocate(30 * mib),
                                     gpu.allocate(30 * mib)};
  std::string asked;
  auto give = [&](char name, size_t which) {
    return [&, name, which] {
      asked += name;
      if (!kept[which])
        return false;
      gpu.driver.memFree.function(std::exchange(kept[which], 0));
      return true;
    };
  };
  cuda::Lender busy(gpu, cuda::Lender::Turn::First, [&] {
    asked += 'b';
    return false;
  });
  std::optional<cuda::Lender> last(std::in_place, gpu, cuda::Lender::Turn::Last,
                                   give('l', 1));
  cuda::Lender first(gpu, cuda::Lender::Turn::First, give('f', 0));
  cuda::Address taken = gpu.allocate(30 * mib);
  EXPECT_EQ(asked, "f");
  cuda::Address more = gpu.allocate(30 * mib);
  EXPECT_EQ(asked, "ffbl");
  asked.clear();
  last.reset();
  EXPECT_THROW(gpu.allocate(30 * mib), Error);
  EXPECT_EQ(asked, "fb");
  for (cuda::Address address : {taken, more})
    gpu.driver.memFree.function(address);
  EXPECT_EQ(own.takeFaults(), std::vector<std::string>());
}

/// Modules, graphs and libraries take some of the GPU, too: what others keep is
/// asked back for them, and one that finds none is said.
TEST(CudaMemory, WhatTheDriverMakesTakesWhatOthersKeep) {
  constexpr int64_t mib = 1 << 20;
  auto make = [&](bool isLent) {
    Devices all(onMachine({.memoryBytes = 40 * mib, .objectBytes = 8 * mib}),
                1);
    cuda::Gpu gpu(machine->libraries(), 0);
    gpu.attach();
    auto keep = [&] {
      int64_t bytes = 40 * mib - machine->gpus[0].usedBytes - mib;
      return gpu.allocate(bytes);
    };
    cuda::Address kept = keep();
    int asked = 0;
    auto lend = [&] {
      ++asked;
      if (!isLent || !kept)
        return false;
      gpu.driver.memFree.function(std::exchange(kept, 0));
      return true;
    };
    cuda::Lender lender(gpu, cuda::Lender::Turn::Last, lend);

    cuda::Module module = nullptr;
    std::string name = "box_copy_4";
    gpu.load(cuda::boxKernelText(name), name, module);
    EXPECT_EQ(asked, 1);
    kept = keep();
    cuda::BlasHandle blas = nullptr;
    EXPECT_EQ(gpu.tryLibrary(gpu.blas.create, &blas), 0);
    EXPECT_EQ(asked, 2);
    kept = keep();
    cuda::Graph graph = nullptr;
    cuda::GraphExec executable = nullptr;
    gpu.call(gpu.driver.streamBeginCapture, gpu.compute, cuda::kCaptureRelaxed);
    gpu.call(gpu.driver.streamEndCapture, gpu.compute, &graph);
    gpu.call(gpu.driver.graphInstantiate, &executable, graph, 0ull);
    EXPECT_EQ(asked, 3);
    gpu.driver.moduleUnload.function(module);
    gpu.blas.destroy.function(blas);
    gpu.driver.graphExecDestroy.function(executable);
    gpu.driver.graphDestroy.function(graph);
  };
  make(true);
  EXPECT_EQ(machine->takeFaults(), std::vector<std::string>());
  EXPECT_THROW(make(false), Error);
}

/// A library loads its kernels when they are first run.
TEST(CudaMemory, AProductTakesWhatOthersKeep) {
  constexpr int64_t mib = 1 << 20;
  Machine own({.memoryBytes = 80 * mib, .objectBytes = 8 * mib});
  cuda::Gpu gpu(own.libraries(), 0);
  gpu.attach();
  cuda::BlasHandle blas = nullptr;
  EXPECT_EQ(gpu.blas.create.function(&blas), 0);
  Matmul op = {};
  op.m = op.n = op.k = op.mLhs = op.kRhs = op.mOut = 16;
  op.kLhs = op.nRhs = op.nOut = 1;
  op.lhsType = op.rhsType = op.outType = DType::F32;
  auto data = reinterpret_cast<float *>(gpu.allocate(3 * mib));
  std::fill_n(data, 3 * 256, 1.0f);
  cuda::Address kept = gpu.allocate(80 * mib - own.gpus[0].usedBytes - mib);
  int asked = 0;
  cuda::Lender lender(gpu, cuda::Lender::Turn::Last, [&] {
    ++asked;
    gpu.driver.memFree.function(std::exchange(kept, 0));
    return true;
  });
  {
    cuda::Product product(gpu, blas, op, 256, 0, nullptr, nullptr);
    for (int run = 0; run < 2; ++run)
      product.run(data, data + 256, data + 512, nullptr, nullptr, nullptr,
                  gpu.compute);
  }
  gpu.synchronize(gpu.compute);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(data[512], 16);
  gpu.driver.memFree.function(cuda::addressOf(data));
  gpu.blas.destroy.function(blas);
  EXPECT_EQ(own.takeFaults(), std::vector<std::string>());
}

/// A step takes memory for its results while an array is read.
TEST(CudaMemory, AReaderHoldsNothingThatAStepWaitsFor) {
  Devices all(onMachine({}), 1);
  auto read = arrayOf(1), from = arrayOf(5), to = arrayOf(0);
  addOneTo(all, 0, *from, *read);
  machine->hold(true);
  std::atomic<bool> isRead = false;
  std::thread reader([&] {
    EXPECT_EQ(firstOf(read->host()), 6);
    isRead = true;
  });
  // Until its copy is on a stream, which is held.
  auto isPut = [] {
    std::lock_guard lock(machine->mutex);
    return std::ranges::any_of(machine->streams, [](const auto &stream) {
      return !stream.second->operations.empty();
    });
  };
  while (!isPut())
    std::this_thread::yield();
  all.run([&](int64_t, Device &device) {
    Region regions[1] = {{to.get(), 0, /*isRead=*/false, /*isWritten=*/true,
                          /*isOfArray=*/true}};
    BufferTable table;
    device.bind(table, regions);
    EXPECT_FALSE(isRead);
    machine->hold(false);
  });
  reader.join();
  EXPECT_EQ(machine->takeFaults(), std::vector<std::string>());
}

TEST(CudaMemory, AnArrayOutlivesItsDevice) {
  auto array = arrayOf(0);
  {
    Devices all(onMachine({}), 1);
    addOneTo(all, 0, *array, *array);
  }
  EXPECT_EQ(firstOf(array->host()), 1);
  array.reset();
  EXPECT_TRUE(machine->memory.empty());
}

} // namespace
} // namespace whale::runtime::test
