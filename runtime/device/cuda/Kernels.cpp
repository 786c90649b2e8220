//===- Kernels.cpp - The kernels of a program on a GPU --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Kernels.h"

#include <algorithm>

namespace whale::runtime::cuda {

GpuKernels::GpuKernels(std::shared_ptr<const Gpu> given,
                       const BoundProgram &program)
    : gpu(std::move(given)) {
  // Neither are there kernels for older ones, nor libraries of CUDA 13.
  constexpr int least = 75;
  const std::string own = "sm_" + std::to_string(gpu->capability());
  if (gpu->capability() < least)
    throw Error(gpu->name() + " is of " + own +
                ": 'cuda' programs need a GPU of sm_" + std::to_string(least) +
                " (Turing) or later");
  const std::vector<format::GpuCode> &codes = program.program.gpu;
  if (codes.empty())
    return;
  // The thread may be at work for several GPUs.
  gpu->attach();
  // The latest that it runs.
  auto later = std::ranges::upper_bound(codes, gpu->capability(), {},
                                        &format::GpuCode::capability);
  if (later == codes.begin())
    throw Error(gpu->name() + " is of " + own +
                ", the kernels are compiled for " + codes.front().arch +
                " and later: compile with --gpu-arch=" + own);
  // A cubin is for one architecture alone; the driver compiles PTX for others,
  // and where it refuses the cubin, as one of a later toolkit.
  const format::GpuCode &code = *std::prev(later);
  const BoundProgram::GpuCode &contents =
      program.gpu.at(static_cast<size_t>(std::prev(later) - codes.begin()));
  bool hasOwn = gpu->capability() == code.capability() && !code.cubins.empty();
  for (size_t i = 0; i < code.modules.size(); ++i) {
    Module module = nullptr;
    if (!hasOwn ||
        gpu->driver.moduleLoadDataEx.function(
            &module, contents.cubins.at(i).c_str(), 0, nullptr, nullptr))
      module = load(contents.texts.at(i), code.modules[i].name, code.arch);
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
