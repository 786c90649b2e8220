//===- Lifting.h - Statistics of each micro-batch ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_MICROBATCH_LIFTING_H
#define WHALE_LIB_TRANSFORMS_IMPORT_MICROBATCH_LIFTING_H

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Transforms/Attributes.h"
#include "llvm/ADT/DenseMap.h"

namespace whale {

/// Statistics with a leading dimension for the micro-batches.
class Lifting {
public:
  Lifting(int64_t moments,
          llvm::function_ref<bool(mlir::Value)> dependsOnSamples,
          llvm::function_ref<bool(mlir::Value)> isOfSamples,
          llvm::function_ref<bool(mlir::Operation *)> mayBeOwn)
      : moments(moments), dependsOnSamples(dependsOnSamples),
        isOfSamples(isOfSamples), mayBeOwn(mayBeOwn) {}

  /// Whether a value is computed of sums over samples, by operations that have
  /// a form for all micro-batches at once. What the backward pass computes of
  /// the forward's statistics needs those that were lifted there.
  bool canLift(mlir::Value value, Phase phase);

  mlir::Value lift(mlir::Value value);

  /// What the operation makes of the statistics of each micro-batch.
  mlir::Value spread(mlir::stablehlo::BroadcastInDimOp op);

  mlir::Value lookup(mlir::Value value) const { return lifted.lookup(value); }

  /// Whether there is one value for all micro-batches of what was lifted.
  static bool canJoin(mlir::Value value);

  /// That value: the mean, or whether any of them has a NaN.
  mlir::Value getJoined(mlir::Value value);

private:
  bool isSum(mlir::Operation *op) const;
  mlir::Value group(mlir::OpBuilder &builder, mlir::Value samples) const;
  mlir::RankedTensorType liftType(mlir::Value value) const;

  int64_t moments;
  llvm::function_ref<bool(mlir::Value)> dependsOnSamples, isOfSamples;
  llvm::function_ref<bool(mlir::Operation *)> mayBeOwn;
  llvm::DenseMap<mlir::Value, mlir::Value> lifted, joined;
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, bool> known;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_MICROBATCH_LIFTING_H
