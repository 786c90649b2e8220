//===- TestPrograms.cpp - Programs on GPUs that are not there -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cuda/test/TestPrograms.h"

#include "cuda/test/Machine.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace whale::runtime::cuda::test {

/// Like a node of a cluster: more ranks share them.
static constexpr int testGpus = 8;

static std::unique_ptr<Machine> &processMachine() {
  static auto *machine = new std::unique_ptr<Machine>;
  return *machine;
}

const Libraries *findTestLibraries() {
  const char *text = std::getenv("WHALE_TEST_CUDA");
  if (!text || !*text)
    return nullptr;
  MachineOptions options;
  options.gpus = testGpus;
  const char *end = text + std::strlen(text);
  if (auto result = std::from_chars(text, end, options.seed);
      result.ec != std::errc() || result.ptr != end)
    throw Error("WHALE_TEST_CUDA: '" + std::string(text) +
                "' is no whole number");
  if (const char *directory = std::getenv("WHALE_TEST_CUDA_DIRECTORY"))
    options.sharedDirectory = directory;
  std::unique_ptr<Machine> &machine = processMachine();
  if (!machine)
    machine = std::make_unique<Machine>(options);
  return &machine->libraries();
}

void addTestProgram(const BoundProgram &program,
                    const std::shared_ptr<KernelLibrary> &kernels) {
  static auto *kept = new std::vector<std::shared_ptr<KernelLibrary>>;
  if (!program.program.gpu)
    return;
  if (!kernels)
    throw Error("the test machine runs programs for 'cuda-test' alone");
  std::vector<std::map<std::string, TestKernel>> modules(
      program.gpuTexts.size());
  for (const auto &[symbol, signature] : *program.program.kernelSignatures) {
    TestKernel &kernel =
        modules.at(static_cast<size_t>(signature.gpu->module))[symbol];
    kernel.function = kernels->find(symbol);
    kernel.extent = signature.extent;
    kernel.inputs = signature.inputs;
    kernel.bytes = signature.bytes;
    kernel.name = symbol;
  }
  Machine &machine = Machine::get();
  std::lock_guard lock(machine.mutex);
  kept->push_back(kernels);
  const std::string &arch = program.program.gpu->arch;
  int architecture = 0;
  std::from_chars(arch.data() + strlen("sm_"), arch.data() + arch.size(),
                  architecture);
  for (size_t i = 0; i < modules.size(); ++i)
    machine.addModule(program.gpuTexts[i], std::move(modules[i]),
                      program.gpuCubins.empty() ? "" : program.gpuCubins[i],
                      architecture);
}

} // namespace whale::runtime::cuda::test
