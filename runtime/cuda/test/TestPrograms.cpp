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
#include <sstream>

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
  auto read = [](const char *variable, std::string_view text, auto &number) {
    const char *end = text.data() + text.size();
    if (auto result = std::from_chars(text.data(), end, number);
        result.ec != std::errc() || result.ptr != end)
      throw Error(std::string(variable) + ": '" + std::string(text) +
                  "' is no whole number");
  };
  read("WHALE_TEST_CUDA", text, options.seed);
  const char *capabilities = "WHALE_TEST_CUDA_CAPABILITIES";
  if (const char *list = std::getenv(capabilities)) {
    options.capabilities.clear();
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');)
      read(capabilities, word, options.capabilities.emplace_back());
  }
  // As large as any kind: nothing is there that it would be taken of.
  options.memoryBytes = int64_t(1) << 40;
  const char *memories = "WHALE_TEST_CUDA_MEMORIES";
  if (const char *list = std::getenv(memories)) {
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');)
      read(memories, word, options.memories.emplace_back());
  }
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
  if (program.gpu.empty())
    return;
  if (!kernels)
    throw Error("the test machine runs programs for 'cuda-test' alone");
  const std::vector<format::GpuCode> &codes = program.program.gpu;
  std::vector<std::vector<std::map<std::string, TestKernel>>> modules;
  for (const BoundProgram::GpuCode &code : program.gpu)
    modules.emplace_back(code.texts.size());
  for (const auto &[symbol, signature] : *program.program.kernelSignatures) {
    if (!signature.gpu)
      continue;
    auto [code, module] = format::findModule(codes, signature.gpu->module);
    TestKernel &kernel = modules[code][module][symbol];
    kernel.function = kernels->find(symbol);
    kernel.extent = signature.extent;
    kernel.inputs = signature.inputs;
    kernel.bytes = signature.bytes;
    kernel.name = symbol;
  }
  Machine &machine = Machine::get();
  std::lock_guard lock(machine.mutex);
  kept->push_back(kernels);
  for (size_t code = 0; code < program.gpu.size(); ++code) {
    const auto &[texts, cubins] = program.gpu[code];
    for (size_t i = 0; i < texts.size(); ++i)
      machine.addModule(texts[i], modules[code][i],
                        cubins.empty() ? "" : cubins[i],
                        codes[code].capability());
  }
}

} // namespace whale::runtime::cuda::test
