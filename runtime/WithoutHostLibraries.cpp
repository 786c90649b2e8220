//===- WithoutHostLibraries.cpp - For machines with CUDA alone ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In place of the files that need oneDNN, LAPACK or Boost: with
// WHALE_HOST_LIBRARIES=OFF the runtime has GPUs, and of CPUs what moves and
// checks data. What would be computed by a library of the host is an error, and
// there are neither emulated kernels nor a test machine.
//
//===----------------------------------------------------------------------===//

#include "cuda/test/TestPrograms.h"
#include "device/cpu/Operations.h"
#include "emulator/Emulator.h"
#include "library/AttentionLayout.h"

namespace whale::runtime {

[[noreturn]] static void fail(const std::string &what) {
  throw Error(what + " on the CPU: this Whale was built without the libraries "
                     "of the host (WHALE_HOST_LIBRARIES)");
}

NoOperation::NoOperation(const char *what) { fail(what); }

std::string productInstructions() { return "no products on the CPU"; }

/// Those that a GPU has, which never come here then.
std::map<std::string, LibraryFactory> lapackFunctions() {
  std::map<std::string, LibraryFactory> functions;
  for (const char *routine :
       {"potrf", "getrf", "geqrf", "orgqr", "ormqr", "syevd", "gesdd"})
    functions["lapack." + std::string(routine)] =
        [](const LibraryRequest &) -> LibraryFunction {
      return [](std::span<void *const>, std::span<void *const>) {
        fail("linear algebra");
      };
    };
  return functions;
}

/// Attention that a GPU has never comes here then.
static LibraryFunction prepareAttention(const LibraryRequest &request,
                                        bool isGradient) {
  AttentionLayout checked(request, isGradient);
  return
      [](std::span<void *const>, std::span<void *const>) { fail("attention"); };
}

LibraryFunction prepareAttention(const LibraryRequest &request) {
  return prepareAttention(request, false);
}

LibraryFunction prepareAttentionGradient(const LibraryRequest &request) {
  return prepareAttention(request, true);
}

const format::EmulatorFunctions &emulatorFunctions() {
  fail("emulated kernels");
}

void setEmulatorSeed(uint64_t) {}

std::optional<std::string> takeEmulatorFault() { return std::nullopt; }

bool hasEmulatorFault() { return false; }

const cuda::Libraries *cuda::test::findTestLibraries() { return nullptr; }

void cuda::test::addTestProgram(const BoundProgram &,
                                const std::shared_ptr<KernelLibrary> &) {}

} // namespace whale::runtime
