//===- StepAnalysis.h - Phases and TaskGraphs of a step ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What whale-import-scopes knows about the operations of @main, and the rules
// that fill in what locations don't say.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_IMPORTSCOPES_STEPANALYSIS_H
#define WHALE_LIB_TRANSFORMS_IMPORT_IMPORTSCOPES_STEPANALYSIS_H

#include "whale/Dialect/Whale/IR/WhaleAttrs.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include <optional>

namespace whale {

/// One operation directly in the body of @main.
struct StepOp {
  /// From its name path, or written by hand.
  std::optional<Phase> phase;
  /// From its scope, or written by hand; filled in by joinTaskGraphs.
  StrategyAttr strategy;
  /// Nothing but constants goes in: follows its users.
  bool constant = false;
};

/// The operations of @main in their order, without the terminator.
using Step = llvm::MapVector<mlir::Operation *, StepOp>;

/// The operation of @main's body that holds the use or is the definition.
mlir::Operation *ancestorInMain(mlir::Operation *op, mlir::Block *body);

/// Whether the operation computes nothing: its data are those of operand 0, or
/// a part of them.
bool movesData(mlir::Operation *op);

/// Marks the operations that only depend on constants.
void findConstants(Step &step);

/// Gives every operation a phase. Where nothing is backward, all is forward.
/// Otherwise an operation outside of the gradient's computation is
/// - apply if it depends on a backward operation (backward, if only backward
///   operations use it), or if all that it feeds is apply and the results that
///   feed back to arguments;
/// - of the last phase that it reads of, if callbacks alone get what it
///   computes: nothing else follows from these;
/// - forward else.
void assignPhases(Step &step, mlir::func::FuncOp main);

/// The strategy that an operation has by its own scope, inside of loops too.
using StrategyOfOp = llvm::function_ref<StrategyAttr(mlir::Operation *)>;

/// Gives operations outside of scopes a strategy. With a default strategy,
/// forward and backward operations take it; without one, they join the
/// TaskGraph of a producer, else that of a user, such that no sample comes back
/// to a TaskGraph. Apply operations follow the parameter that they update.
void joinTaskGraphs(Step &step, mlir::func::FuncOp main,
                    StrategyAttr defaultStrategy, StrategyOfOp scopeOf);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_IMPORTSCOPES_STEPANALYSIS_H
