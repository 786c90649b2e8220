//===- Patterns.h - Patterns of whale-normalize -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_NORMALIZE_PATTERNS_H
#define WHALE_LIB_TRANSFORMS_IMPORT_NORMALIZE_PATTERNS_H

#include "mlir/IR/PatternMatch.h"

namespace whale::normalize {

/// Adds patterns that are functions, each for one operation.
template <typename... Ops>
void addAll(mlir::RewritePatternSet &patterns,
            mlir::LogicalResult (*...functions)(Ops, mlir::PatternRewriter &)) {
  (patterns.add(functions), ...);
}

/// batch_norm_training, batch_norm_inference, batch_norm_grad.
void populateBatchNormPatterns(mlir::RewritePatternSet &patterns);
/// Gathers and scatters one index of which is the result's own place.
void populateBatchedIndexPatterns(mlir::RewritePatternSet &patterns);
/// Operations that only re-shape, broadcast or convert.
void populateShapePatterns(mlir::RewritePatternSet &patterns);
/// Operations of dynamic shape, where constants say it; tuples.
void populateDynamicPatterns(mlir::RewritePatternSet &patterns);
/// Reductions and scatters that start from something else than an identity.
void populateReductionPatterns(mlir::RewritePatternSet &patterns);
/// What tells where a ReLU lets pass.
void populateReluPatterns(mlir::RewritePatternSet &patterns);
/// Loops, branches, barriers.
void populateControlFlowPatterns(mlir::RewritePatternSet &patterns);

/// Converts what a reduction's region takes in a wider type, so that operands,
/// region and results have one element type. Fails with an error where one type
/// can't stand for both.
mlir::LogicalResult promoteReducers(mlir::ModuleOp module);

/// Lets the regions in `root` that compute one element, those of reducers and
/// comparators, use nothing but their arguments: constants from outside come
/// inside. Fails with an error at the first operation whose region uses
/// anything else.
mlir::LogicalResult closeRegions(mlir::Operation *root);

/// Writes out sdy.manual_computation (shard_map, pmap) for all devices of its
/// mesh, collectives included.
mlir::LogicalResult expandManualComputations(mlir::ModuleOp module);

/// Replaces the collectives of a program that is written for one process by
/// their operands, its number by 0.
void dropLoneCollectives(mlir::ModuleOp module);

/// Keeps the shardings of one mesh (sdy) if whale-propagate can follow them,
/// and removes all others, with a remark for each kind of them that said
/// something.
void selectShardings(mlir::ModuleOp module);

/// Fails with an error at the first operation of @main that Whale can't
/// partition or run, which names the operation or the call's target.
mlir::LogicalResult verifySupported(mlir::ModuleOp module);

/// Fails, when all is folded, with an error at the first call into Python that
/// has an effect and would not be made, because nothing uses its results.
mlir::LogicalResult verifyCallsAreUsed(mlir::ModuleOp module);

} // namespace whale::normalize

#endif // WHALE_LIB_TRANSFORMS_IMPORT_NORMALIZE_PATTERNS_H
