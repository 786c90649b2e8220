//===- MemoryAdvice.h - What lets a step fit --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_MEMORYADVICE_H
#define WHALE_LIB_PROGRAM_MEMORYADVICE_H

#include "mlir/IR/BuiltinOps.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Program/MemoryNeeds.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace whale {

/// A change of a step, as a user could make it.
struct StepChange {
  /// "16 micro-batches (num_micro_batch)".
  std::string name;
  std::function<void(mlir::ModuleOp)> apply;
};

/// Plans the step with a change; returns what devices are expected to need
/// then, or nothing if there is no such plan.
using TryChange = llvm::function_ref<std::optional<std::vector<MemoryNeed>>(
    const StepChange &)>;

/// What of its results a device would not need, if arguments of their types
/// were donated. `lowered` has planned buffers.
int64_t findDonatableBytes(mlir::ModuleOp lowered, int64_t device);

/// Says what the fullest device would need with changes that help, the best
/// first; each of at most four is tried. `input` is the step as it was read,
/// `needs` are those of its plan, in which `device` lacks memory.
std::string adviseOnMemory(mlir::ModuleOp input, const Cluster &cluster,
                           llvm::ArrayRef<MemoryNeed> needs, int64_t device,
                           int64_t donatableBytes, TryChange tryChange);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_MEMORYADVICE_H
