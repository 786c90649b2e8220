//===- CheckAccesses.h - Emulated accesses are checked ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TARGET_CUDA_CHECKACCESSES_H
#define WHALE_LIB_TARGET_CUDA_CHECKACCESSES_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Support/Error.h"

namespace whale {

/// What an address of an emulated kernel may be inside of.
struct EmulatedArray {
  uint64_t bytes;
  bool isShared;
};

/// Asks the emulator before each load and store of `body`, an emulated kernel,
/// except those of a thread's own variables and of constants. `arrays` holds
/// the pointers from which all addresses are made; `loadChecker` makes the
/// pointer to EmulatorFunctions::access.
llvm::Error checkAccesses(
    llvm::Function &body,
    const llvm::DenseMap<llvm::Value *, EmulatedArray> &arrays,
    llvm::function_ref<llvm::Value *(llvm::IRBuilder<> &)> loadChecker);

} // namespace whale

#endif // WHALE_LIB_TARGET_CUDA_CHECKACCESSES_H
