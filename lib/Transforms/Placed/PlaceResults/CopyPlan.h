//===- CopyPlan.h - Where operations are computed ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operation is computed once for each placement in which its results are
// wanted: each of these is a copy.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_PLACERESULTS_COPYPLAN_H
#define WHALE_LIB_TRANSFORMS_PLACED_PLACERESULTS_COPYPLAN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "llvm/ADT/DenseMap.h"

#include <memory>
#include <vector>

namespace whale {

/// The placements in which each value is wanted, the last use first.
using WantedPlacements =
    llvm::DenseMap<mlir::Value, llvm::SmallVector<PlacementAttr, 1>>;

struct BlockPlan;

/// An operation as some devices compute it.
struct CopyPlan {
  mlir::Operation *op = nullptr;
  llvm::SmallVector<PlacementAttr> operands, results;
  /// Of a loop or branch.
  std::vector<BlockPlan> regions;
  /// The result that is wanted in parts, and that devices compute whole, as the
  /// operation can't be split so.
  std::optional<unsigned> wholeResult = std::nullopt;
};

struct BlockPlan {
  /// From the last operation to the first.
  std::vector<CopyPlan> copies;
  /// Where what the block is given, and what it gives, is wanted.
  llvm::SmallVector<PlacementAttr> arguments, yielded;
};

/// Plans the body of a function from where its results are wanted: null for
/// those that nobody wants. Adds where it wants its arguments. Emits an error
/// for what has no place.
llvm::FailureOr<BlockPlan> planCopies(mlir::func::FuncOp function,
                                      llvm::ArrayRef<PlacementAttr> wanted,
                                      WantedPlacements &arguments);

/// All of a value on each of the devices.
PlacementAttr getWhole(mlir::Value value, llvm::ArrayRef<DeviceId> devices);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_PLACERESULTS_COPYPLAN_H
