//===- CudaDeviceTest.cpp - The CUDA device on a test machine -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/CudaDevice.h"
#include "DeviceConformance.h"
#include "cuda/test/Machine.h"

#include <cstring>

namespace whale::runtime::test {
namespace {

using cuda::test::Machine;
using cuda::test::MachineOptions;

std::unique_ptr<Machine> machine;

/// Kernels of tests are functions; all but their last buffer are inputs, of an
/// i32 for each iteration.
GpuKernel findKernel(const KernelLaunch &launch) {
  constexpr int64_t threads = 128;
  size_t buffers = launch.buffers.size();
  cuda::test::TestKernel kernel{
      launch.function,
      launch.extent,
      buffers ? buffers - 1 : 0,
      std::vector<int64_t>(buffers, 4 * launch.extent),
      threads,
      "test"};
  return {machine->addKernel(std::move(kernel)),
          (launch.extent + threads - 1) / threads, threads};
}

std::vector<std::unique_ptr<Device>>
createDevices(const format::Program &program, Transport &transport) {
  std::vector<std::unique_ptr<Device>> devices;
  for (size_t rank = 0; rank < program.ranks.size(); ++rank)
    devices.push_back(createCudaDevice(
        machine->libraries(), program, findKernel, &transport,
        static_cast<int64_t>(rank), {.gpu = static_cast<int>(rank)}));
  return devices;
}

DeviceMaker onMachine(MachineOptions options) {
  return [options](const format::Program &program, Transport &transport) {
    machine.reset();
    MachineOptions own = options;
    own.gpus = static_cast<int>(program.ranks.size());
    machine = std::make_unique<Machine>(own);
    return createDevices(program, transport);
  };
}

DeviceMaker seeded(uint64_t seed) {
  DeviceConformance::afterwards = [] {
    if (machine)
      EXPECT_EQ(machine->takeFaults(), std::vector<std::string>());
  };
  return onMachine({.seed = seed});
}

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformance,
                         testing::Values(seeded(0), seeded(1), seeded(2)));

void addOne(void **buffers, int64_t begin, int64_t end) {
  auto *in = static_cast<int32_t *>(buffers[0]);
  auto *out = static_cast<int32_t *>(buffers[1]);
  for (int64_t i = begin; i < end; ++i)
    out[i] = in[i] + 1;
}

//===----------------------------------------------------------------------===//
// What the machine tells
//===----------------------------------------------------------------------===//

/// The error of a run of one rank with four buffers of four integers, and all
/// faults after it.
std::string errorOf(const MachineOptions &options,
                    const std::function<void(Device &, BufferTable &)> &job) {
  Devices all(onMachine(options), 1);
  std::string text;
  {
    Integers memory(*all.devices[0], 4);
    all.run([&](int64_t, Device &device) {
      try {
        job(device, memory.table);
        device.finish();
      } catch (const Error &error) {
        text = error.what();
        machine->takeFaults();
      }
    });
  }
  for (const std::string &fault : machine->takeFaults())
    text += "; " + fault;
  return text;
}

#define EXPECT_SAYS(text, part)                                                \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

constexpr Queue compute = Queue::Compute;
constexpr Queue communication = Queue::Communication;

TEST(CudaDevice, AMissingEventIsAFault) {
  Copy first = {0, 1, 16}, second = {1, 2, 16};
  auto run = [&](bool hasEvent) {
    return errorOf({}, [&](Device &device, BufferTable &table) {
      device.copy(compute, first, table);
      if (hasEvent)
        device.wait(communication, device.record(compute));
      device.copy(communication, second, table);
    });
  };
  EXPECT_EQ(run(true), "");
  EXPECT_SAYS(run(false), "use the same memory, and no event is between them");
}

TEST(CudaDevice, TooLittleMemoryIsSaidInNumbers) {
  std::string text =
      errorOf({.memoryBytes = 64 << 20}, [](Device &device, BufferTable &) {
        device.allocate(MemorySpace::Device, 65 << 20);
      });
  EXPECT_SAYS(text, "GPU 0 (Test GPU) has too little free memory: 65 MiB more "
                    "are needed, ");
  EXPECT_SAYS(text, "MiB of its 64 MiB are free");
}

TEST(CudaDevice, AKernelThatFaultsIsAnError) {
  KernelLaunch launch = {addOne, {0, 1}, 4, 1};
  std::string text =
      errorOf({.faultingKernel = 1}, [&](Device &device, BufferTable &table) {
        device.launch(compute, launch, table);
        device.launch(compute, launch, table);
      });
  EXPECT_SAYS(text, "kernel test: an injected fault");
}

TEST(CudaDevice, FreedMemoryIsAFault) {
  std::string text = errorOf({}, [](Device &device, BufferTable &) {
    auto memory = device.allocate(MemorySpace::Device, 16);
    BufferTable table;
    Region regions[2] = {{memory.get(), 0}, {memory.get(), 8}};
    device.bind(table, regions);
    memory.reset();
    Copy copy = {0, 1, 8};
    device.copy(compute, copy, table);
  });
  EXPECT_SAYS(text, "was freed");
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

TEST(CudaDevice, RunsThatAreAlikeBecomeAGraph) {
  Devices all(onMachine({.seed = 3}), 1);
  Integers memory(*all.devices[0], 3);
  KernelLaunch add = {addOne, {0, 1}, 4, 1}, next = {addOne, {1, 2}, 4, 1};
  int repeated = 0;
  for (int run = 0; run < 5; ++run) {
    memory.fill(0, 10 * run);
    all.run([&](int64_t, Device &device) {
      if (device.repeat(memory.table)) {
        ++repeated;
        return;
      }
      device.beginRecording(memory.table);
      device.launch(compute, add, memory.table);
      device.launch(compute, next, memory.table);
      device.endRecording();
    });
    EXPECT_EQ(memory.at(2)[0], 10 * run + 2);
  }
  EXPECT_EQ(repeated, 3);
  EXPECT_EQ(machine->takeFaults(), std::vector<std::string>());
}

TEST(CudaDevice, WhatTheProcessorDoesIsInNoGraph) {
  Devices all(onMachine({}), 1);
  Integers memory(*all.devices[0], 2);
  int calls = 0;
  Call call = {{0}, {1}, [&](auto, auto) { ++calls; }, {16, 16}};
  for (int run = 0; run < 3; ++run)
    all.run([&](int64_t, Device &device) {
      EXPECT_FALSE(device.repeat(memory.table));
      device.beginRecording(memory.table);
      device.call(compute, call, memory.table);
      device.endRecording();
    });
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(machine->takeFaults(), std::vector<std::string>());
}

TEST(CudaDevice, ForbiddenCallsDuringACaptureAreFaults) {
  auto run = [&](const std::function<void(Device &, BufferTable &)> &job) {
    return errorOf({}, [&](Device &device, BufferTable &table) {
      for (int i = 0; i < 2; ++i) {
        device.beginRecording(table);
        if (i == 1)
          job(device, table);
        device.endRecording();
      }
    });
  };
  EXPECT_EQ(run([](Device &, BufferTable &) {}), "");
  EXPECT_SAYS(run([](Device &device, BufferTable &) {
                device.allocate(MemorySpace::Device, 16);
              }),
              "cuMemAlloc during a capture");
  EXPECT_SAYS(run([](Device &device, BufferTable &table) {
                device.readInteger(compute, table, 0, DType::I32);
              }),
              "during a capture");
}

} // namespace
} // namespace whale::runtime::test
