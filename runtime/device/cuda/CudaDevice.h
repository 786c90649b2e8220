//===- CudaDevice.h - A device that computes on a GPU -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
#define WHALE_RUNTIME_DEVICE_CUDA_CUDADEVICE_H

#include "device/Device.h"
#include "transport/nccl/NcclTransport.h"
#include "whale/Runtime/Program.h"

namespace whale::runtime {

/// The function of a kernel on the GPU whose context is the calling thread's,
/// and how it is launched.
struct GpuKernel {
  cuda::Function function = nullptr;
  int64_t blocks = 1, threads = 1;
};
using FindGpuKernel = std::function<GpuKernel(const KernelLaunch &)>;

struct CudaDeviceOptions {
  /// For what is computed on the processor; null for one thread.
  std::shared_ptr<CpuContext> context = nullptr;
  /// Wait for each operation, so that an error is said of the one that failed.
  bool isSynchronous = false;
  /// The file of algorithms that are chosen by time (Choices.h); empty: the
  /// libraries' heuristics choose.
  std::string choices = {};
  /// Moves the data of the channels that it carries; null if there is none.
  NcclTransport *nccl = nullptr;
  /// By how much its numbers of channels are larger than the program's.
  int64_t ncclOffset = 0;
  /// Told what a user may want to know of how a program was loaded.
  std::function<void(const LoadNote &)> remark = {};
};

/// The device of a rank on a GPU. Its kernels are those of the program's PTX,
/// or what `findKernel` finds. Everything that is given outlives it. Throws
/// Error where the GPU cannot run the program.
std::unique_ptr<Device> createCudaDevice(std::shared_ptr<const cuda::Gpu> gpu,
                                         const BoundProgram &program,
                                         Transport *transport, int64_t rank,
                                         const CudaDeviceOptions &options);
std::unique_ptr<Device> createCudaDevice(std::shared_ptr<const cuda::Gpu> gpu,
                                         const format::Program &program,
                                         FindGpuKernel findKernel,
                                         Transport *transport, int64_t rank,
                                         const CudaDeviceOptions &options);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
