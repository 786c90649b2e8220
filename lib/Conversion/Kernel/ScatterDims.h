//===- ScatterDims.h - What a scatter writes where ------------------*- C++
//-*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What lowerings of scatters ask about dimensions. In: the operation. Out:
// which dimensions of the updates number windows and which are in one, how far
// windows move, whether two updates can have the same place, and where a window
// begins. Cost: linear in the dimensions.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_KERNEL_SCATTERDIMS_H
#define WHALE_LIB_CONVERSION_KERNEL_SCATTERDIMS_H

#include "Kernel/KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

namespace whale {

/// How the dimensions of a scatter's operands belong together.
struct ScatterDims {
  mlir::RankedTensorType operand, updates, indices;
  mlir::stablehlo::ScatterDimensionNumbersAttr numbers;
  /// Dimensions of the updates that stand for places in the indices.
  llvm::SmallVector<int64_t> placeDims;
  /// For each window dimension of the updates the dimension of the operand.
  llvm::SmallVector<int64_t> operandOfWindow;

  explicit ScatterDims(mlir::stablehlo::ScatterOp op)
      : operand(
            mlir::cast<mlir::RankedTensorType>(op.getInputs()[0].getType())),
        updates(
            mlir::cast<mlir::RankedTensorType>(op.getUpdates()[0].getType())),
        indices(mlir::cast<mlir::RankedTensorType>(
            op.getScatterIndices().getType())),
        numbers(op.getScatterDimensionNumbers()) {
    for (int64_t dim = 0; dim < updates.getRank(); ++dim)
      if (!llvm::is_contained(numbers.getUpdateWindowDims(), dim))
        placeDims.push_back(dim);
    for (int64_t dim = 0; dim < operand.getRank(); ++dim)
      if (!llvm::is_contained(numbers.getInsertedWindowDims(), dim) &&
          !llvm::is_contained(numbers.getInputBatchingDims(), dim))
        operandOfWindow.push_back(dim);
  }

  /// The dimension of the updates that belongs to one of the indices.
  int64_t placeDimOf(int64_t indicesDim) const {
    return placeDims[indicesDim < numbers.getIndexVectorDim() ? indicesDim
                                                              : indicesDim - 1];
  }

  /// The size of the window in a dimension of the operand.
  int64_t windowSize(int64_t operandDim) const {
    for (auto [window, dim] :
         llvm::zip_equal(numbers.getUpdateWindowDims(), operandOfWindow))
      if (dim == operandDim)
        return updates.getDimSize(window);
    return 1;
  }

  /// Whether the indices move a window in a dimension of the operand: there is
  /// one place alone for one that is as large.
  bool isMoved(int64_t operandDim) const {
    return llvm::is_contained(numbers.getScatterDimsToOperandDims(),
                              operandDim) &&
           windowSize(operandDim) < operand.getDimSize(operandDim);
  }

  /// The updates, and of windows that are moved each element, whose places may
  /// meet.
  int64_t countItems() const {
    int64_t items = 1;
    for (int64_t dim : placeDims)
      items *= updates.getDimSize(dim);
    for (auto [window, dim] :
         llvm::zip_equal(numbers.getUpdateWindowDims(), operandOfWindow))
      if (isMoved(dim))
        items *= updates.getDimSize(window);
    return items;
  }

  /// Whether no two elements of the updates have the same place: of one window,
  /// and of those of different batches, none has.
  bool isUnique(mlir::stablehlo::ScatterOp op) const {
    if (op.getUniqueIndices())
      return true;
    int64_t windows = 1;
    for (int64_t dim = 0; dim < indices.getRank(); ++dim)
      if (dim != numbers.getIndexVectorDim() &&
          !llvm::is_contained(numbers.getScatterIndicesBatchingDims(), dim))
        windows *= indices.getDimSize(dim);
    return windows == 1;
  }

  /// The largest dimension of the updates that alone decides where in a
  /// dimension of the operand an update goes: its points never meet.
  std::optional<int64_t> findParallelDim() const {
    std::optional<int64_t> best;
    auto consider = [&](int64_t dim) {
      if (!best || updates.getDimSize(dim) > updates.getDimSize(*best))
        best = dim;
    };
    for (int64_t dim : numbers.getScatterIndicesBatchingDims())
      consider(placeDimOf(dim));
    for (auto [window, dim] :
         llvm::zip_equal(numbers.getUpdateWindowDims(), operandOfWindow))
      if (!isMoved(dim))
        consider(window);
    return best;
  }

  /// Where the window of the update at `at` begins in each dimension that it
  /// has a number for, and whether all of it is inside: one that is not is
  /// dropped.
  mlir::Value findStart(KernelBuilder &k, unsigned indicesBuffer,
                        llvm::ArrayRef<mlir::Value> at,
                        llvm::SmallVectorImpl<mlir::Value> &start) const {
    start.assign(operand.getRank(), mlir::Value());
    mlir::Value inside =
        mlir::arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true));
    for (auto [part, dim] :
         llvm::enumerate(numbers.getScatterDimsToOperandDims())) {
      llvm::SmallVector<mlir::Value> place;
      for (int64_t d = 0; d < indices.getRank(); ++d)
        place.push_back(d == numbers.getIndexVectorDim() ? k.index(part)
                                                         : at[placeDimOf(d)]);
      start[dim] = toIndex(k.b, k.loc, k.load(indicesBuffer, place),
                           indices.getElementType());
      int64_t room = operand.getDimSize(dim) - windowSize(dim) + 1;
      inside = mlir::arith::AndIOp::create(k.b, k.loc, inside,
                                           k.inside(start[dim], room));
    }
    for (auto [dim, indicesDim] :
         llvm::zip_equal(numbers.getInputBatchingDims(),
                         numbers.getScatterIndicesBatchingDims()))
      start[dim] = at[placeDimOf(indicesDim)];
    return inside;
  }
};

} // namespace whale

#endif // WHALE_LIB_CONVERSION_KERNEL_SCATTERDIMS_H
