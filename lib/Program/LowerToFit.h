//===- LowerToFit.h - Lower a step so that it fits --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_LOWERTOFIT_H
#define WHALE_LIB_PROGRAM_LOWERTOFIT_H

#include "PlanSummary.h"
#include "mlir/IR/BuiltinOps.h"
#include "whale/Program/MemoryNeeds.h"

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
};

/// Lowers the module from the level `first` to the last one, with a plan that
/// fits into the memory of its cluster's devices. If none is found, or a pass
/// fails, that is an error.
mlir::FailureOr<LoweredStep> lowerToFit(mlir::ModuleOp module,
                                        llvm::StringRef first,
                                        const LevelRunner &levels,
                                        const format::Libraries &libraries,
                                        Reporter &reporter);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_LOWERTOFIT_H
