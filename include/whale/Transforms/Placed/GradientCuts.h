//===- GradientCuts.h - Where backwards are cut -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_PLACED_GRADIENTCUTS_H
#define WHALE_TRANSFORMS_PLACED_GRADIENTCUTS_H

#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "llvm/ADT/MapVector.h"

namespace whale {

/// By TaskGraph that makes terms of sums over micro-batches which devices then
/// sum up among themselves: behind which of its operations it is cut, so that
/// they can begin while it computes the rest. `yield` ends a body of the loop;
/// `bytesOfTerm` says what is exchanged of a sum to which this TaskGraph makes
/// the term, 0 where nothing is.
llvm::MapVector<TaskGraphOp, llvm::SmallVector<mlir::Operation *>>
findGradientCuts(
    MicroBatchesOp loop, mlir::Operation *yield,
    llvm::function_ref<int64_t(TaskGraphOp, mlir::OpResult)> bytesOfTerm);

} // namespace whale

#endif // WHALE_TRANSFORMS_PLACED_GRADIENTCUTS_H
