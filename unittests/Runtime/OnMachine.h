//===- OnMachine.h - CUDA devices on a test machine -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_RUNTIME_ONMACHINE_H
#define WHALE_UNITTESTS_RUNTIME_ONMACHINE_H

#include "DeviceConformance.h"
#include "cuda/test/Machine.h"
#include "device/cuda/CudaDevice.h"

namespace whale::runtime::test {

using cuda::test::Machine;
using cuda::test::MachineOptions;
using cuda::test::Mutation;

/// The machine of the devices that were made last.
inline std::unique_ptr<Machine> machine;

/// Kernels of tests are functions; all but their last buffer are inputs, of an
/// i32 for each iteration.
inline GpuKernel findKernel(const KernelLaunch &launch) {
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

/// Devices of a new machine; with `nccl`, which then outlives them, they
/// exchange data by it.
inline DeviceMaker onMachine(MachineOptions options,
                             std::unique_ptr<NcclTransport> *nccl = nullptr) {
  return [=](const format::Program &program, Transport &transport) {
    machine.reset();
    MachineOptions own = options;
    own.gpus = static_cast<int>(program.ranks.size());
    machine = std::make_unique<Machine>(own);
    std::vector<std::shared_ptr<cuda::Gpu>> gpus;
    for (int gpu = 0; gpu < own.gpus; ++gpu)
      gpus.push_back(std::make_shared<cuda::Gpu>(machine->libraries(), gpu));
    if (nccl) {
      auto alone = [](const std::string &mine) {
        return std::vector<std::string>{mine};
      };
      *nccl = withChannels(
          createNcclTransport(machine->libraries(), gpus, alone), program);
    }
    std::vector<std::unique_ptr<Device>> devices;
    for (size_t rank = 0; rank < gpus.size(); ++rank)
      devices.push_back(createCudaDevice(
          gpus[rank], program, findKernel, &transport,
          static_cast<int64_t>(rank), {.nccl = nccl ? nccl->get() : nullptr}));
    return devices;
  };
}

/// A kernel that adds 1 to each integer.
inline void addOne(void **buffers, int64_t begin, int64_t end) {
  auto *in = static_cast<int32_t *>(buffers[0]);
  auto *out = static_cast<int32_t *>(buffers[1]);
  for (int64_t i = begin; i < end; ++i)
    out[i] = in[i] + 1;
}

} // namespace whale::runtime::test

#endif // WHALE_UNITTESTS_RUNTIME_ONMACHINE_H
