//===- LoopDivision.h - A loop in two, one after the other ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop in which something needs sums over all samples can't wait for them in
// each round. Where nothing else of the loop depends on it, it becomes a loop
// of its own behind the first one, which keeps the sums of each round.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_MICROBATCH_LOOPDIVISION_H
#define WHALE_LIB_TRANSFORMS_IMPORT_MICROBATCH_LOOPDIVISION_H

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"

namespace whale {

/// Puts operations of a counted loop's body, with all that depends on them in
/// this or a later round, into a loop behind it, which it returns. What they
/// read is kept for each round in a stack. Null, and nothing changes, where the
/// rest of the loop depends on them, or they read what `mayKeep` refuses.
mlir::stablehlo::WhileOp
divideLoop(mlir::stablehlo::WhileOp loop,
           const llvm::SetVector<mlir::Operation *> &seeds,
           llvm::function_ref<bool(mlir::Value)> mayKeep);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_MICROBATCH_LOOPDIVISION_H
