//===- SortLines.h - What the kernels of a sort do -------------------*- C++
//-*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sort is a stable merge sort of positions on all targets: what its kernels
// ask of a line, and do to it, is here.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_KERNEL_SORTLINES_H
#define WHALE_LIB_CONVERSION_KERNEL_SORTLINES_H

#include "Kernel/KernelBuilder.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace whale {

/// The dimension that a sort sorts along, from 0.
int64_t getSortedDim(mlir::stablehlo::SortOp op);

/// The lines that a sort sorts. A line's number counts through the dimensions
/// but the sorted one; a position is a place in the line. The first buffers of
/// kernels are the operands, without those that count positions if these are
/// computed.
class SortLines {
public:
  SortLines(mlir::PatternRewriter &rewriter, mlir::stablehlo::SortOp op,
            bool computesPositions = false);

protected:
  /// Whether the element at position `right` must go before that at `left`.
  mlir::Value isBefore(KernelBuilder &k, mlir::Value row, mlir::Value right,
                       mlir::Value left);
  /// Whether of two runs that are merged the right one gives the next element.
  /// A run may be at its end; where none is, `getRight` and `getLeft` give the
  /// positions of their next elements.
  mlir::Value takesRight(KernelBuilder &k, mlir::Value row,
                         mlir::Value hasRight, mlir::Value hasLeft,
                         llvm::function_ref<mlir::Value()> getRight,
                         llvm::function_ref<mlir::Value()> getLeft);
  /// Writes what the operands have at `position` to `place` of the buffers from
  /// `firstResult` on.
  void move(KernelBuilder &k, mlir::Value row, mlir::Value position,
            mlir::Value place, unsigned firstResult);

  mlir::PatternRewriter &rewriter;
  mlir::stablehlo::SortOp op;
  mlir::Location loc;
  mlir::RankedTensorType type;
  int64_t dim, size, rows;
  llvm::SmallVector<mlir::Value> inputs;
  llvm::SmallVector<mlir::Type> types; // As they are stored.
  bool good = true;                    // The comparator is supported so far.

private:
  llvm::SmallVector<mlir::Value> locate(KernelBuilder &k, mlir::Value row,
                                        mlir::Value position) const;
  /// Element `position` of operand `number`, i1 as i1.
  mlir::Value read(KernelBuilder &k, unsigned number, mlir::Value row,
                   mlir::Value position);

  /// Of each operand, or nothing where it counts positions.
  llvm::SmallVector<std::optional<unsigned>> buffers;
};

} // namespace whale

#endif // WHALE_LIB_CONVERSION_KERNEL_SORTLINES_H
