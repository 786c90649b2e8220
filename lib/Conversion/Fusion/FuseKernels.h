//===- FuseKernels.h - Rewrites of linalg operations ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_FUSION_FUSEKERNELS_H
#define WHALE_LIB_CONVERSION_FUSION_FUSEKERNELS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

namespace whale {

/// Adds the operations of a body to another one whose loops are, by loop of the
/// first, `loops` (dimensions or constant zero); `mapping` has its arguments,
/// `yielded` gets what it yields.
void inlineBody(mlir::OpBuilder &b, mlir::linalg::GenericOp from,
                llvm::ArrayRef<mlir::AffineExpr> loops,
                mlir::IRMapping &mapping,
                llvm::SmallVectorImpl<mlir::Value> &yielded);

/// Whether each point of the loops gives an element from what it reads alone.
bool isParallel(mlir::linalg::GenericOp op);

/// Whether `value` is there before `op`.
bool isBefore(mlir::Value value, mlir::Operation *op);

/// `op`, with one operand for the same tensor read through the same map.
mlir::linalg::GenericOp mergeInputs(mlir::RewriterBase &rewriter,
                                    mlir::linalg::GenericOp op);

/// `op` without its results that have no users, if others have.
mlir::linalg::GenericOp dropUnusedResults(mlir::RewriterBase &rewriter,
                                          mlir::linalg::GenericOp op);

/// Lets parallel operations of the block give results without the dimensions of
/// size one that a reshape drops, or with those that it adds. An operation with
/// other users than the reshape must be cheap enough to be repeated.
void absorbUnitReshapes(
    mlir::RewriterBase &rewriter, mlir::Block &block,
    llvm::function_ref<bool(mlir::linalg::GenericOp)> isCheap);

/// One operation that does what `to` and `op` do, where `to` is; `loops` says
/// by loop of `op` which one of `to` it is, or constant zero. What `op` reads
/// of `to` it reads at the same point; what else it needs is there before `to`.
mlir::linalg::GenericOp joinOperations(mlir::RewriterBase &rewriter,
                                       mlir::linalg::GenericOp to,
                                       mlir::linalg::GenericOp op,
                                       llvm::ArrayRef<mlir::AffineExpr> loops);

/// Makes each reduction of the block a part of an earlier one with the same
/// loops that reads or makes an operand of it, where it can be earlier.
void joinReductions(mlir::RewriterBase &rewriter, mlir::Block &block);

/// Makes each parallel operation of the block whose results are only stored in
/// slices a part of an earlier one with the same points that makes or reads
/// what it stores.
void joinStores(mlir::RewriterBase &rewriter, mlir::Block &block);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_FUSION_FUSEKERNELS_H
