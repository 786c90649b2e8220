//===- LowerToFit.h - Lower a step so that it fits --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_LOWERTOFIT_H
#define WHALE_LIB_PROGRAM_LOWERTOFIT_H

#include "FitReport.h"
#include "PlanSummary.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "whale/Program/MemoryNeeds.h"

#include <functional>
#include <vector>

namespace whale {

class LevelRunner;
class Reporter;

/// What is known of a module besides, once it is lowered.
struct LoweredStep {
  /// What the manifest says of the plan, but for its devices.
  PlanSummary summary;
  /// By device; empty if the module has no cluster.
  std::vector<MemoryNeed> needs;
  /// Where that is to be reported: what the step needs as it is, and whether
  /// the module came to the last level.
  FittedStep fitted = {};
  /// The module as it came to the last level, which orders what the others have
  /// made.
  mlir::OwningOpRef<mlir::ModuleOp> unordered = nullptr;
  bool isLowered = true;
};

/// Returns the seconds of a step by its model, or an error where it has none;
/// `lowered` is at the last level, and devices have these needs.
using PriceStep = std::function<mlir::FailureOr<double>(
    mlir::ModuleOp lowered, llvm::ArrayRef<MemoryNeed> needs)>;

/// Lowers the module from the level `first` to the last one, with a plan that
/// fits into the memory of its cluster's devices: with options that are chosen,
/// where the step asks for that (`fit`). If none is found, or a pass fails,
/// that is an error. With `reports`, a step that does not fit stays as it is.
mlir::FailureOr<LoweredStep>
lowerToFit(mlir::ModuleOp module, llvm::StringRef first,
           const LevelRunner &levels, const format::Libraries &libraries,
           Reporter &reporter, PriceStep price, bool reports);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_LOWERTOFIT_H
