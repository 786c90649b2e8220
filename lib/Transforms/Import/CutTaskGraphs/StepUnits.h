//===- StepUnits.h - Which operations are together --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Puts the operations of a step into units in topological order, so that any
// cut between two units gives stages of which none waits for a later one.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_CUTTASKGRAPHS_STEPUNITS_H
#define WHALE_LIB_TRANSFORMS_IMPORT_CUTTASKGRAPHS_STEPUNITS_H

#include "../ImportScopes/StepAnalysis.h"

#include "llvm/ADT/DenseSet.h"

namespace whale {

/// The unit of an operation; only a loop that can be split has several units,
/// one for each iteration: those of a backward loop are in reverse.
struct UnitRange {
  int64_t first = 0, last = 0;
};

/// The forward operations of a step that depend on its data, each with what
/// is in a stage with it.
struct StepUnits {
  /// In topological order; a loop that can be split is listed here once for
  /// each iteration.
  llvm::SmallVector<mlir::Operation *> operations;
  /// The units of every forward and backward operation but those in `free`.
  llvm::DenseMap<mlir::Operation *, UnitRange> unitOf;
  /// Operations that no argument goes into, constants among them.
  llvm::DenseSet<mlir::Operation *> free;
};

/// - A forward operation on the mini-batch (arguments with `whale.batch_dim`;
///   where there is none, those without a next value; where no operation uses
///   such, all) is a unit of its own.
/// - One on parameters alone, as a cast, goes with its first forward user.
/// - A backward operation goes with the earliest of what it uses: of a
///   gradient, its unit; of a forward value or an argument, the last forward
///   user of that, at least its own unit. What rematerialisation computes again
///   goes with the latest of what it uses, as the forward did.
/// - A backward loop with as many iterations as a forward loop whose values or
///   parameters it uses goes with that, iteration by iteration.
/// - Where nothing decides, an operation goes with its last user.
///
/// Cutting keeps all of this: the rules only compare units, and a stage is an
/// interval of units.
StepUnits findUnits(const Step &step, mlir::func::FuncOp main);

/// The first and last unit with a forward operation that uses the value; none
/// if there is none.
std::optional<UnitRange> forwardUsers(const Step &step, const StepUnits &units,
                                      mlir::Value value);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_CUTTASKGRAPHS_STEPUNITS_H
