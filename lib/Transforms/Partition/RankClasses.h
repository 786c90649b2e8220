//===- RankClasses.h - Ranks that run the same schedule ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PARTITION_RANKCLASSES_H
#define WHALE_LIB_TRANSFORMS_PARTITION_RANKCLASSES_H

#include "ResolveReshards.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Sharding/OpRule.h"
#include "llvm/ADT/SetVector.h"

namespace whale {

/// What the code of a rank depends on: the sizes of what it holds under some
/// placements, and how convolutions pad its parts of images.
class LocalSizes {
public:
  /// `PlacementAttr`s, those known already are left out.
  void addPlacement(mlir::Attribute placement) { placements.insert(placement); }
  /// The placements between the steps of a reshard, too.
  void addSteps(const ResolvedReshard &reshard, mlir::MLIRContext *context);
  void addConvolution(mlir::stablehlo::ConvolutionOp op);

  /// Equal for ranks with the same code.
  std::vector<int64_t> of(int64_t rank) const;

private:
  struct Convolution {
    mlir::stablehlo::ConvolutionOp op;
    OpRule rule;
    llvm::SmallVector<Placement> operands;
  };
  llvm::SetVector<mlir::Attribute> placements;
  std::vector<Convolution> convolutions;
};

/// The ranks of each class, ascending, classes in the order of their first
/// ranks. Those with equal local sizes in the whole step are one class.
std::vector<std::vector<int64_t>>
findRankClasses(mlir::func::FuncOp main, const ResolvedReshards &reshards,
                int64_t rankCount);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PARTITION_RANKCLASSES_H
