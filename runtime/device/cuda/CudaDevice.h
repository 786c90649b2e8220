//===- CudaDevice.h - A device that computes on a GPU -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
#define WHALE_RUNTIME_DEVICE_CUDA_CUDADEVICE_H

#include "cuda/Libraries.h"
#include "device/Device.h"

namespace whale::runtime {

/// The function of a kernel on the GPU whose context is the calling thread's,
/// and how it is launched.
struct GpuKernel {
  cuda::Function function = nullptr;
  int64_t blocks = 1, threads = 1;
};
using FindGpuKernel = std::function<GpuKernel(const KernelLaunch &)>;

struct CudaDeviceOptions {
  /// Of the GPU, counted from 0.
  int gpu = 0;
  /// Of the processor, for what is computed there.
  int64_t threads = 1;
  /// Wait for each operation, so that an error is said of the one that failed.
  bool isSynchronous = false;
};

/// The device of a rank on a GPU. Its kernels are those of the program's PTX,
/// or what `findKernel` finds. Everything that is given outlives it. Throws
/// Error where the GPU cannot run the program.
std::unique_ptr<Device> createCudaDevice(const cuda::Libraries &libraries,
                                         const BoundProgram &program,
                                         Transport *transport, int64_t rank,
                                         const CudaDeviceOptions &options);
std::unique_ptr<Device> createCudaDevice(const cuda::Libraries &libraries,
                                         const format::Program &program,
                                         FindGpuKernel findKernel,
                                         Transport *transport, int64_t rank,
                                         const CudaDeviceOptions &options);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
