//===- Kernels.cpp - The kernels of a program on a GPU --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Kernels.h"

#include <charconv>

namespace whale::runtime::cuda {

GpuKernels::GpuKernels(std::shared_ptr<const Gpu> given,
                       const BoundProgram &program)
    : gpu(std::move(given)) {
  if (!program.program.gpu)
    return;
  const format::GpuCode &code = *program.program.gpu;
  // The thread may be at work for several GPUs.
  gpu->attach();
  int needed = 0;
  std::from_chars(code.arch.data() + 3, code.arch.data() + code.arch.size(),
                  needed);
  if (gpu->capability() < needed)
    throw Error(
        gpu->name() + " is of sm_" + std::to_string(gpu->capability()) +
        ", the kernels are compiled for " + code.arch +
        " and later: compile with --gpu-arch=sm_" +
        std::to_string(gpu->capability()) +
        (gpu->capability() < 75 ? ", which Whale has no code for" : ""));
  // A cubin is for one architecture alone; the driver compiles PTX for others,
  // and where it refuses the cubin, as one of a later toolkit.
  bool hasOwn = gpu->capability() == needed && !code.cubins.empty();
  for (size_t i = 0; i < code.modules.size(); ++i) {
    Module module = nullptr;
    if (!hasOwn ||
        gpu->driver.moduleLoadDataEx.function(
            &module, program.gpuCubins.at(i).c_str(), 0, nullptr, nullptr))
      module = load(program.gpuTexts.at(i), code.modules[i].name, code.arch);
    modules.push_back(module);
  }
  for (const auto &[symbol, signature] : *program.program.kernelSignatures) {
    if (!signature.gpu)
      continue;
    GpuKernel &kernel = kernels[symbol];
    kernel.blocks = signature.gpu->blocks;
    kernel.threads = signature.gpu->threads;
    Module module = modules[static_cast<size_t>(signature.gpu->module)];
    Status status = gpu->driver.moduleGetFunction.function(
        &kernel.function, module, symbol.c_str());
    if (status == kNotFound)
      throw Error(
          code.modules[static_cast<size_t>(signature.gpu->module)].name +
          " has no kernel '" + symbol + "'");
    gpu->check(gpu->driver.moduleGetFunction.symbol, status);
  }
}

Module GpuKernels::load(const std::string &text, const std::string &file,
                        const std::string &arch) const {
  char log[4096] = {};
  int options[] = {kJitErrorLogBuffer, kJitErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
  Module module = nullptr;
  Status status = gpu->driver.moduleLoadDataEx.function(&module, text.c_str(),
                                                        2, options, values);
  if (!status)
    return module;
  int version = 0;
  gpu->call(gpu->driver.driverGetVersion, &version);
  std::string driver = "the driver, for CUDA " + versionText(version) + ",";
  switch (status) {
  case kUnsupportedPtxVersion:
    throw Error(file + ": " + driver + " is too old for this PTX for " + arch +
                ": install a later one");
  case kNoBinaryForGpu:
    throw Error(file + ": " + driver + " cannot run code for " + arch + " on " +
                gpu->name());
  case kInvalidImage:
  case kInvalidPtx:
    throw Error(file + ": " + driver + " refuses the PTX: " + log);
  default:
    gpu->fail(gpu->driver.moduleLoadDataEx.symbol, status);
  }
}

GpuKernels::~GpuKernels() {
  if (!gpu->tryAttach())
    return;
  for (Module module : modules)
    gpu->driver.moduleUnload.function(module);
}

} // namespace whale::runtime::cuda
