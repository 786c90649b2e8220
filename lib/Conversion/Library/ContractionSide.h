//===- ContractionSide.h - Operands of a contraction ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_LIBRARY_CONTRACTIONSIDE_H
#define WHALE_LIB_CONVERSION_LIBRARY_CONTRACTIONSIDE_H

#include "Library/TensorView.h"
#include "mlir/IR/Builders.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

namespace whale {

/// Dimensions that are walked together, with a stride in each of two buffers.
struct Group {
  int64_t size = 1, first = 0, second = 0;
};

/// Merges neighbours of `dims` (outermost first) that one stride covers in both
/// buffers.
llvm::SmallVector<Group> collapse(llvm::ArrayRef<Group> dims);

/// One operand of a contraction.
struct Side {
  mlir::Value value;
  /// Of the operand; they are those of `value` in another order (`from`: its
  /// dimensions) where `value` is what the operand was transposed from.
  llvm::SmallVector<int64_t> shape, strides, from;
  llvm::SmallVector<int64_t> batch, contracting, free;
  /// Whether the library needs the contracted elements to be neighbours.
  bool contractsNeighbours = false;

  void set(mlir::Value operand);

  /// Reads the operand where it was before it was transposed.
  void skipTranspose();

  void findFree();

  int64_t countFree() const;

  /// Copies the operand to the order batch, free, contracting; or contracting
  /// before free, if then lines of memory stay lines.
  void transpose(mlir::OpBuilder &b, mlir::Location loc);

  /// A copy in this order that another contraction needed before.
  mlir::stablehlo::TransposeOp
  findCopy(mlir::OpBuilder &b, llvm::ArrayRef<int64_t> permutation) const;

  llvm::SmallVector<Group> groups(llvm::ArrayRef<int64_t> dims,
                                  llvm::ArrayRef<int64_t> other) const;

  /// True if one stride covers the contracted dimensions in their order.
  bool contractsInOneStride() const;

  /// True if the library can walk the operand as it lies, its free dimensions
  /// in these groups.
  bool fits(llvm::ArrayRef<Group> groups) const;
};

} // namespace whale

#endif // WHALE_LIB_CONVERSION_LIBRARY_CONTRACTIONSIDE_H
