//===- SplitLoop.h - One loop as several ------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cuts a counted loop at iterations, as a scan over layers between two layers.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_CUTTASKGRAPHS_SPLITLOOP_H
#define WHALE_LIB_TRANSFORMS_IMPORT_CUTTASKGRAPHS_SPLITLOOP_H

#include "whale/Dialect/Whale/IR/WhaleAttrs.h"
#include "whale/Transforms/OpCost.h"

#include "llvm/ADT/MapVector.h"

namespace whale {

/// Some iterations of a loop, and where they are computed.
struct LoopPiece {
  /// Iterations [begin, end), counted from 0 in the order of the loop.
  int64_t begin = 0, end = 0;
  StrategyAttr strategy;
};

/// Splits counted loops.
class LoopSplitter {
public:
  /// Whether the loop can be split: a counted one of several iterations.
  static bool canSplit(mlir::stablehlo::WhileOp loop);

  /// Which carried values the iterations fill row by row (the stacked results
  /// of a scan): nothing of them passes from one iteration to the next.
  static llvm::SmallDenseSet<unsigned>
  stackedResults(mlir::stablehlo::WhileOp loop);

  /// Whether each iteration reads but one row of a value from outside.
  static bool readsRows(mlir::stablehlo::WhileOp loop, mlir::Value value);

  /// Replaces the loop by one for each piece, one after the other. Of an array
  /// that the body only reads a row of in each iteration, a piece gets its
  /// rows: those are sliced where the array is made, an argument's on `owner`.
  /// Results that are filled row by row are concatenated.
  void split(mlir::stablehlo::WhileOp loop, llvm::ArrayRef<LoopPiece> pieces,
             StrategyAttr owner);

private:
  /// Rows of a value that were sliced before: an array is cut once for the
  /// forward and the backward.
  llvm::DenseMap<std::tuple<mlir::Value, int64_t, int64_t>, mlir::Value> rows;
  mlir::Value rowsOf(mlir::OpBuilder &builder, mlir::Value value, int64_t begin,
                     int64_t size, StrategyAttr owner);
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_CUTTASKGRAPHS_SPLITLOOP_H
