//===- StableHLOIndexingOps.cpp - Slices, gather, scatter, sort -*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Folds, verifiers and type inference of slices and sort.
//
// In: the operation, or the operands and attributes of a new one. Out: the
// operand of a slice that takes all of it; success, or an error that states the
// first violated constraint; the type of the result. Comments such as slice_c2
// name the constraint of the StableHLO specification that is checked. Cost:
// linear in the rank, of a sort in its operands.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace mlir::stablehlo;
using whale::Checker;
using whale::elementType;
using whale::mayBeEqual;
using whale::tensorType;

#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOIndexingOps.cpp.inc"

OpFoldResult SliceOp::fold(FoldAdaptor) {
  // A slice of the operand's static shape is the whole operand.
  bool isIdentity =
      getOperand().getType() == getType() && getType().hasStaticShape() &&
      llvm::all_of(getStrides(), [](int64_t stride) { return stride == 1; });
  return isIdentity ? getOperand() : OpFoldResult();
}

void SortOp::build(OpBuilder &builder, OperationState &state, ValueRange inputs,
                   int64_t dimension, bool isStable) {
  state.addOperands(inputs);
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.dimension = builder.getI64IntegerAttr(dimension);
  properties.is_stable = builder.getBoolAttr(isStable);
  state.addRegion();
  state.addTypes(inputs.getTypes());
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

LogicalResult SliceOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  auto operand = tensorType(adaptor.getOperand().getType());
  int64_t rank = operand.getRank();
  ArrayRef<int64_t> starts = adaptor.getStartIndices();
  ArrayRef<int64_t> limits = adaptor.getLimitIndices();
  ArrayRef<int64_t> strides = adaptor.getStrides();
  // slice_c2
  if (failed(check.count("start_indices", starts.size(), rank)) ||
      failed(check.count("limit_indices", limits.size(), rank)) ||
      failed(check.count("strides", strides.size(), rank)) ||
      // slice_c4
      failed(check.atLeast("strides", strides, 1)))
    return failure();
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < rank; ++i) {
    // slice_c3
    bool fits = operand.isDynamicDim(i) || limits[i] <= operand.getDimSize(i);
    if (starts[i] < 0 || starts[i] > limits[i] || !fits)
      return check.error("expects 0 <= start <= limit <= size in dimension ", i,
                         " (got ", starts[i], ":", limits[i], " of ", operand,
                         ")");
    // slice_c5
    int64_t length = limits[i] - starts[i];
    shape.push_back(length / strides[i] + (length % strides[i] != 0));
  }
  results.push_back(RankedTensorType::get(shape, operand.getElementType()));
  return success();
}

/// Checks the start indices of a dynamic slice: one for each dimension, of one
/// type.
static LogicalResult verifyStarts(const Checker &check, ValueRange starts,
                                  int64_t rank) {
  if (failed(check.count("start_indices", starts.size(), rank)))
    return failure();
  for (Value start : starts)
    if (failed(check.sameElements("start_indices", starts.front().getType(),
                                  start.getType())))
      return failure();
  return success();
}

LogicalResult DynamicSliceOp::inferReturnTypes(MLIRContext *context,
                                               std::optional<Location> location,
                                               Adaptor adaptor,
                                               SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  auto operand = tensorType(adaptor.getOperand().getType());
  ArrayRef<int64_t> sizes = adaptor.getSliceSizes();
  // dynamic_slice_c2, dynamic_slice_c3
  if (failed(check.count("slice_sizes", sizes.size(), operand.getRank())) ||
      failed(verifyStarts(check, adaptor.getStartIndices(), operand.getRank())))
    return failure();
  // dynamic_slice_c4
  for (auto [i, size] : llvm::enumerate(sizes))
    if (size < 0 || (!operand.isDynamicDim(i) && size > operand.getDimSize(i)))
      return check.error("expects 0 <= slice size <= size in dimension ", i,
                         " (got ", size, " of ", operand, ")");
  // dynamic_slice_c5
  results.push_back(RankedTensorType::get(sizes, operand.getElementType()));
  return success();
}

LogicalResult DynamicUpdateSliceOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
    SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  auto operand = tensorType(adaptor.getOperand().getType());
  auto update = tensorType(adaptor.getUpdate().getType());
  // dynamic_update_slice_c2, c3, c4, c5
  if (failed(check.sameElements("operand and update", operand, update)) ||
      failed(check.count("dimensions of the update", update.getRank(),
                         operand.getRank())) ||
      failed(verifyStarts(check, adaptor.getStartIndices(), operand.getRank())))
    return failure();
  // dynamic_update_slice_c6
  for (int64_t i = 0; i < operand.getRank(); ++i)
    if (!update.isDynamicDim(i) && !operand.isDynamicDim(i) &&
        update.getDimSize(i) > operand.getDimSize(i))
      return check.error("expects an update that fits in dimension ", i,
                         " (got ", update, " in ", operand, ")");
  // dynamic_update_slice_c1
  results.push_back(operand);
  return success();
}

LogicalResult RealDynamicSliceOp::verify() {
  Checker check(*this);
  RankedTensorType operand = getOperand().getType();
  if (failed(check.sameElements("operand and result", operand, getType())) ||
      failed(check.count("dimensions of the result", getType().getRank(),
                         operand.getRank())))
    return failure();
  for (Value bounds : {getStartIndices(), getLimitIndices(), getStrides()})
    if (!mayBeEqual(tensorType(bounds.getType()).getDimSize(0),
                    operand.getRank()))
      return check.error("expects bounds for each of ", operand.getRank(),
                         " dimensions");
  return success();
}

//===----------------------------------------------------------------------===//
// SortOp
//===----------------------------------------------------------------------===//

LogicalResult SortOp::verify() {
  Checker check(*this);
  // sort_c1 is a part of SameOperandsAndResultShape; sort_c2, sort_c3
  if (failed(check.count("results", getNumResults(), getInputs().size())))
    return failure();
  for (auto [input, result] : llvm::zip_equal(getInputs(), getResults()))
    if (failed(check.sameElements("input and result", input.getType(),
                                  result.getType())))
      return failure();
  // sort_c4
  int64_t rank = tensorType(getInputs().front().getType()).getRank();
  int64_t dimension = static_cast<int64_t>(getDimension());
  if (rank == 0)
    return check.error("expects a dimension to sort along (got ",
                       getInputs().front().getType(), ")");
  if (dimension < -rank || dimension >= rank)
    return check.error("expects dimension in range [", -rank, ", ", rank,
                       ") (got ", dimension, ")");
  // sort_c5
  return check.comparator(getComparator(), getInputs().getTypes());
}
