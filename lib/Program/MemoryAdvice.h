//===- MemoryAdvice.h - What lets a step fit --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_MEMORYADVICE_H
#define WHALE_LIB_PROGRAM_MEMORYADVICE_H

#include "FitOptions.h"

namespace whale {

/// What of its results a device would not need, if arguments of their types
/// were donated. `lowered` has planned buffers.
int64_t findDonatableBytes(mlir::ModuleOp lowered, int64_t device);

/// Says which combination of options lets the step fit in the least time, with
/// what the fullest device needs then and how much longer a step takes; where
/// none does, what needs least, with other strategies too. `input` is the step
/// as it was read, `without` its plan, in which `device` lacks memory.
std::string adviseOnMemory(mlir::ModuleOp input, const Cluster &cluster,
                           const PlannedStep &without, int64_t device,
                           int64_t donatableBytes, PlanChange plan);

/// The options that let a step fit, and what is said of them.
struct ChosenOptions {
  /// Nothing where none do.
  std::optional<StepChange> change;
  /// Of those: what they are, and what they save and cost. Else the best of
  /// them, and what lacks with it.
  std::string text;
};

/// Chooses options, beside those that the step has, so that it fits in the
/// least time.
ChosenOptions chooseOptions(mlir::ModuleOp input, const Cluster &cluster,
                            const PlannedStep &without, PlanChange plan);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_MEMORYADVICE_H
