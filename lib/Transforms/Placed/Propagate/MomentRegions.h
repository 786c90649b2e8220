//===- MomentRegions.h - Regions of unlike micro-batches --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Micro-batches of equal size share a region until their shares are found to
// differ.
//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_MOMENTREGIONS_H
#define WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_MOMENTREGIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"

namespace whale {

/// How many kinds of micro-batches there may be, each of which is decided and
/// compiled for itself.
int64_t countVariants(mlir::func::FuncOp function);

/// Gives micro-batches that differ from those with the same region a region of
/// their own; `firstAlike` names for each micro-batch the first one that it
/// doesn't differ from. A loop becomes another one: `onCopy` gets both before
/// the first is erased. False if there is nothing to do.
bool multiplyRegions(
    mlir::func::FuncOp function, llvm::ArrayRef<int64_t> firstAlike,
    llvm::function_ref<void(MicroBatchesOp loop, MicroBatchesOp copy)> onCopy);

/// The first of the micro-batches that an operation is computed for; none for
/// operations outside of them.
std::optional<int64_t> momentOf(mlir::Operation *op);
/// The same of a piece that enters micro-batches, and of one that leaves.
std::optional<int64_t> momentOf(mlir::OpOperand &piece);
std::optional<int64_t> momentOf(mlir::OpResult result);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_MOMENTREGIONS_H
