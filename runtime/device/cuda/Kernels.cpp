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

/// The code of the rank's class: what it was compiled for, or, where it does
/// not say, the latest that its GPU runs.
static size_t findCode(const std::vector<format::GpuCode> &codes,
                       const std::string &arch, const Gpu &gpu) {
  if (!arch.empty()) {
    auto own = std::ranges::find(codes, arch, &format::GpuCode::arch);
    return static_cast<size_t>(own - codes.begin());
  }
  auto later = std::ranges::upper_bound(codes, gpu.capability(), {},
                                        &format::GpuCode::capability);
  if (!codes.empty() && later == codes.begin())
    throw Error(gpu.name() + " is of " + format::archOf(gpu.capability()) +
                ", the kernels are compiled for " + codes.front().arch +
                " and later: compile with --gpu-arch=" +
                format::archOf(gpu.capability()));
  return codes.empty() ? 0 : static_cast<size_t>(later - codes.begin()) - 1;
}

GpuKernels::GpuKernels(std::shared_ptr<const Gpu> given,
                       const BoundProgram &program, int64_t rank,
                       const std::function<void(const std::string &)> &remark)
    : gpu(std::move(given)) {
  const format::GpuArchitecture &least = format::getGpuArchitectures().front();
  if (gpu->capability() < least.capability)
    throw Error(gpu->name() + " is of " + format::archOf(gpu->capability()) +
                ": 'cuda' programs need a GPU of " + std::string(least.name) +
                " (Pascal) or later");
  const std::string &arch = program.classOf(rank).arch;
  if (!arch.empty() && gpu->capability() < format::capabilityOf(arch))
    throw Error(gpu->name() + " is of " + format::archOf(gpu->capability()) +
                ", the program of rank " + std::to_string(rank) +
                " is compiled for " + arch +
                " and later: compile with --gpu-arch=" +
                format::archOf(gpu->capability()));
  const std::vector<format::GpuCode> &codes = program.program.gpu;
  size_t number = findCode(codes, arch, *gpu);
  if (number == codes.size())
    return; // no kernel is for it
  // The thread may be at work for several GPUs.
  gpu->attach();
  // A cubin is for one architecture alone; the driver compiles PTX for others,
  // and where it refuses the cubin, as one of a later toolkit.
  const format::GpuCode &code = codes[number];
  const BoundProgram::GpuCode &contents = program.gpu.at(number);
  bool hasOwn = gpu->capability() == code.capability() && !code.cubins.empty();
  // Once it has refused one, it is not asked for the others.
  bool isRefused = false;
  for (size_t i = 0; i < code.modules.size(); ++i) {
    Module module = nullptr;
    if (hasOwn && !isRefused)
      if (Status status = loadCubin(contents.cubins.at(i), module)) {
        isRefused = true;
        if (remark)
          remark(describeRefusal(code.cubins[i].name, status));
      }
    if (!hasOwn || isRefused)
      module = load(contents.texts.at(i), code.modules[i].name, code.arch);
    modules.push_back(module);
  }
  find(program, number);
}

void GpuKernels::find(const BoundProgram &program, size_t code) {
  const std::vector<format::GpuCode> &codes = program.program.gpu;
  for (const auto &[symbol, signature] : *program.program.kernelSignatures) {
    if (!signature.gpu)
      continue;
    auto [own, number] = format::findModule(codes, signature.gpu->module);
    if (own != code)
      continue;
    GpuKernel &kernel = kernels[symbol];
    kernel.blocks = signature.gpu->blocks;
    kernel.threads = signature.gpu->threads;
    Status status = gpu->driver.moduleGetFunction.function(
        &kernel.function, modules[number], symbol.c_str());
    if (status == kNotFound)
      throw Error(codes[code].modules[number].name + " has no kernel '" +
                  symbol + "'");
    gpu->check(gpu->driver.moduleGetFunction.symbol, status);
  }
}

/// What refuses it.
Status GpuKernels::loadCubin(const std::string &cubin, Module &module) const {
  const auto &load = gpu->driver.moduleLoadDataEx;
  Status status =
      gpu->tryCall(load, &module, static_cast<const void *>(cubin.c_str()), 0u,
                   static_cast<int *>(nullptr), static_cast<void **>(nullptr));
  // The PTX beside it would take as much.
  if (status == kOutOfMemory)
    gpu->fail(load.symbol, status);
  return status;
}

/// Why a cubin is not used, which costs the time that compiling takes.
std::string GpuKernels::describeRefusal(const std::string &file,
                                        Status status) const {
  int version = 0;
  gpu->call(gpu->driver.driverGetVersion, &version);
  return gpu->name() + ": the driver, for CUDA " + versionText(version) +
         ", cannot load " + file + ": " + gpu->describe(status) +
         "; it compiles the PTX beside it instead, each time that the program "
         "is loaded";
}

Module GpuKernels::load(const std::string &text, const std::string &file,
                        const std::string &arch) const {
  char log[4096] = {};
  int options[] = {kJitErrorLogBuffer, kJitErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
  Module module = nullptr;
  Status status = gpu->tryCall(gpu->driver.moduleLoadDataEx, &module,
                               static_cast<const void *>(text.c_str()), 2u,
                               options, values);
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
