//===- Kernels.h - The kernels of a program on a GPU ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_KERNELS_H
#define WHALE_RUNTIME_DEVICE_CUDA_KERNELS_H

#include "cuda/Gpu.h"
#include "device/cuda/CudaDevice.h"

#include <map>

namespace whale::runtime::cuda {

/// The modules of a rank's class, loaded for its GPU.
class GpuKernels {
public:
  /// Throws Error where the GPU cannot run them: it is older than what they
  /// are compiled for, or the driver does not know their code. `remark` is told
  /// of cubins in whose place the driver compiles PTX.
  GpuKernels(std::shared_ptr<const Gpu> gpu, const BoundProgram &program,
             int64_t rank,
             const std::function<void(const std::string &)> &remark);
  ~GpuKernels();
  GpuKernels(const GpuKernels &) = delete;
  GpuKernels &operator=(const GpuKernels &) = delete;

  GpuKernel find(const KernelLaunch &launch) const {
    return kernels.at(*launch.symbol);
  }

private:
  std::string describeRefusal(const std::string &file, Status status) const;
  Status loadCubin(const std::string &cubin, Module &module) const;
  Module load(const std::string &text, const std::string &file,
              const std::string &arch) const;

  void find(const BoundProgram &program, size_t code);

  std::shared_ptr<const Gpu> gpu;
  std::vector<Module> modules;
  std::map<std::string, GpuKernel> kernels;
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_KERNELS_H
