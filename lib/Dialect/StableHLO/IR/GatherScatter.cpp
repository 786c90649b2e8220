//===- GatherScatter.cpp - Verifiers of gather and scatter ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers and type inference of gather and scatter.
//
// In: the operation, or the operands and attributes of a new one. Out: success,
// or an error that states the first violated constraint; of a gather also the
// type of the result. Both take windows of an operand at positions that indices
// give, so they share the checks of dimension numbers. Comments such as
// gather_c2 name the constraint of the StableHLO specification that is checked.
// Cost: at most quadratic in the rank; of a scatter also its inputs times their
// rank.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::stablehlo;
using whale::Checker;
using whale::mayBeEqual;
using whale::tensorType;

static SmallVector<int64_t> concat(ArrayRef<int64_t> lhs,
                                   ArrayRef<int64_t> rhs) {
  SmallVector<int64_t> both(lhs);
  both.append(rhs.begin(), rhs.end());
  return both;
}

/// Returns the size of an index vector; collects the sizes of the other
/// dimensions.
static int64_t splitIndices(RankedTensorType indices, int64_t indexVectorDim,
                            SmallVectorImpl<int64_t> &batch) {
  batch.assign(indices.getShape().begin(), indices.getShape().end());
  if (indexVectorDim == indices.getRank())
    return 1;
  batch.erase(batch.begin() + indexVectorDim);
  return indices.getDimSize(indexVectorDim);
}

namespace {
/// The common part of gather and scatter: windows of an operand, some of whose
/// dimensions are batched with those of the indices.
struct WindowedDims {
  RankedTensorType operand;
  RankedTensorType indices;
  int64_t indexVectorDim;
  ArrayRef<int64_t> droppedDims;
  ArrayRef<int64_t> operandBatchingDims;
  ArrayRef<int64_t> indicesBatchingDims;
  ArrayRef<int64_t> indexMap;
  StringRef droppedName;
  StringRef operandBatchingName;
  StringRef indicesBatchingName;
  StringRef indexMapName;
};
} // namespace

/// gather_c2, c3, c6 to c8, c10, c11, c13 to c19;
/// scatter_c9 to c22
static LogicalResult verifyWindowedDims(const Checker &check,
                                        const WindowedDims &dims) {
  int64_t rank = dims.operand.getRank();
  int64_t indicesRank = dims.indices.getRank();
  if (dims.indexVectorDim < 0 || dims.indexVectorDim > indicesRank)
    return check.error("expects index_vector_dim in range [0, ", indicesRank,
                       "] (got ", dims.indexVectorDim, ")");
  if (failed(check.unique(
          (dims.droppedName + " and " + dims.operandBatchingName).str(),
          concat(dims.droppedDims, dims.operandBatchingDims))) ||
      failed(check.sorted(dims.droppedName, dims.droppedDims)) ||
      failed(check.inRange(dims.droppedName, dims.droppedDims, rank)) ||
      failed(
          check.sorted(dims.operandBatchingName, dims.operandBatchingDims)) ||
      failed(check.inRange(dims.operandBatchingName, dims.operandBatchingDims,
                           rank)) ||
      failed(check.rangeAndUnique(dims.indicesBatchingName,
                                  dims.indicesBatchingDims, indicesRank)))
    return failure();
  if (llvm::is_contained(dims.indicesBatchingDims, dims.indexVectorDim))
    return check.error("expects index_vector_dim not to be one of ",
                       dims.indicesBatchingName);
  if (failed(check.count(dims.indicesBatchingName,
                         dims.indicesBatchingDims.size(),
                         dims.operandBatchingDims.size())))
    return failure();
  for (auto [operandDim, indicesDim] :
       llvm::zip_equal(dims.operandBatchingDims, dims.indicesBatchingDims)) {
    int64_t operandSize = dims.operand.getDimSize(operandDim);
    int64_t indicesSize = dims.indices.getDimSize(indicesDim);
    if (!mayBeEqual(operandSize, indicesSize))
      return check.error("expects batching dimensions of equal sizes (got ",
                         operandSize, " and ", indicesSize, ")");
  }
  SmallVector<int64_t> batch;
  int64_t vectorSize = splitIndices(dims.indices, dims.indexVectorDim, batch);
  if (!mayBeEqual(vectorSize, dims.indexMap.size()))
    return check.error("expects ", vectorSize, " dimensions in ",
                       dims.indexMapName, " (got ", dims.indexMap.size(), ")");
  return success(
      succeeded(check.unique(
          (dims.indexMapName + " and " + dims.operandBatchingName).str(),
          concat(dims.indexMap, dims.operandBatchingDims))) &&
      succeeded(check.inRange(dims.indexMapName, dims.indexMap, rank)));
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

static WindowedDims getGatherDims(RankedTensorType operand,
                                  RankedTensorType indices,
                                  GatherDimensionNumbersAttr numbers) {
  return {operand,
          indices,
          numbers.getIndexVectorDim(),
          numbers.getCollapsedSliceDims(),
          numbers.getOperandBatchingDims(),
          numbers.getStartIndicesBatchingDims(),
          numbers.getStartIndexMap(),
          "collapsed_slice_dims",
          "operand_batching_dims",
          "start_indices_batching_dims",
          "start_index_map"};
}

/// Checks gather_c1, c4, c5; returns the rank of the result.
static FailureOr<int64_t> verifyGatherRank(const Checker &check,
                                           const WindowedDims &dims,
                                           ArrayRef<int64_t> offsetDims) {
  int64_t windowRank = dims.operand.getRank() - dims.droppedDims.size() -
                       dims.operandBatchingDims.size();
  if (failed(check.count("offset_dims", offsetDims.size(), windowRank)))
    return failure();
  SmallVector<int64_t> batch;
  splitIndices(dims.indices, dims.indexVectorDim, batch);
  int64_t rank = batch.size() + offsetDims.size();
  if (failed(check.sorted("offset_dims", offsetDims)) ||
      failed(check.rangeAndUnique("offset_dims", offsetDims, rank)))
    return failure();
  return rank;
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> location,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  auto operand = tensorType(adaptor.getOperand().getType());
  auto indices = tensorType(adaptor.getStartIndices().getType());
  GatherDimensionNumbersAttr numbers = adaptor.getDimensionNumbers();
  WindowedDims dims = getGatherDims(operand, indices, numbers);
  ArrayRef<int64_t> offsetDims = numbers.getOffsetDims();
  ArrayRef<int64_t> sizes = adaptor.getSliceSizes();
  if (failed(verifyWindowedDims(check, dims)))
    return failure();
  FailureOr<int64_t> rank = verifyGatherRank(check, dims, offsetDims);
  // gather_c20
  if (failed(rank) ||
      failed(check.count("slice_sizes", sizes.size(), operand.getRank())))
    return failure();
  SmallVector<int64_t> dropped =
      concat(dims.droppedDims, dims.operandBatchingDims);
  SmallVector<int64_t> window;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    // gather_c21
    if (size < 0 || (!operand.isDynamicDim(i) && size > operand.getDimSize(i)))
      return check.error("expects 0 <= slice size <= size in dimension ", i,
                         " (got ", size, " of ", operand, ")");
    if (!llvm::is_contained(dropped, static_cast<int64_t>(i)))
      window.push_back(size);
    else if (size > 1) // gather_c9, gather_c12
      return check.error("expects slice size 0 or 1 in the collapsed or "
                         "batching dimension ",
                         i, " (got ", size, ")");
  }
  // gather_c22
  SmallVector<int64_t> batch, shape;
  splitIndices(indices, dims.indexVectorDim, batch);
  auto nextWindow = window.begin(), nextBatch = batch.begin();
  for (int64_t i = 0; i < *rank; ++i)
    shape.push_back(llvm::is_contained(offsetDims, i) ? *nextWindow++
                                                      : *nextBatch++);
  // gather_c23
  results.push_back(RankedTensorType::get(shape, operand.getElementType()));
  return success();
}

LogicalResult DynamicGatherOp::verify() {
  Checker check(*this);
  WindowedDims dims =
      getGatherDims(getOperand().getType(), getStartIndices().getType(),
                    getDimensionNumbers());
  if (failed(verifyWindowedDims(check, dims)) ||
      failed(check.sameElements("operand and result", getOperand().getType(),
                                getType())))
    return failure();
  FailureOr<int64_t> rank =
      verifyGatherRank(check, dims, getDimensionNumbers().getOffsetDims());
  if (failed(rank) || failed(check.count("dimensions of the result",
                                         getType().getRank(), *rank)))
    return failure();
  if (!mayBeEqual(getSliceSizes().getType().getDimSize(0),
                  getOperand().getType().getRank()))
    return check.error("expects ", getOperand().getType().getRank(),
                       " slice_sizes");
  return success();
}

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

/// Checks scatter_c4: the updates have a window for each index vector.
static LogicalResult verifyUpdates(const Checker &check, RankedTensorType input,
                                   RankedTensorType indices,
                                   RankedTensorType update,
                                   ScatterDimensionNumbersAttr numbers) {
  ArrayRef<int64_t> windowDims = numbers.getUpdateWindowDims();
  SmallVector<int64_t> dropped =
      concat(numbers.getInsertedWindowDims(), numbers.getInputBatchingDims());
  SmallVector<int64_t> batch, window;
  splitIndices(indices, numbers.getIndexVectorDim(), batch);
  for (int64_t i = 0; i < input.getRank(); ++i)
    if (!llvm::is_contained(dropped, i))
      window.push_back(input.getDimSize(i));
  // scatter_c7, scatter_c8
  if (failed(check.count("dimensions of each update", update.getRank(),
                         batch.size() + windowDims.size())) ||
      failed(check.sorted("update_window_dims", windowDims)) ||
      failed(check.rangeAndUnique("update_window_dims", windowDims,
                                  update.getRank())))
    return failure();
  auto nextWindow = window.begin(), nextBatch = batch.begin();
  for (int64_t i = 0; i < update.getRank(); ++i) {
    int64_t size = update.getDimSize(i);
    if (!llvm::is_contained(windowDims, i)) {
      int64_t expected = *nextBatch++;
      if (!mayBeEqual(size, expected))
        return check.error("expects size ", expected, " of update dimension ",
                           i, ", as in the indices (got ", size, ")");
      continue;
    }
    int64_t limit = *nextWindow++;
    if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(limit) &&
        size > limit)
      return check.error("expects a window of at most ", limit,
                         " in update dimension ", i, " (got ", size, ")");
  }
  return success();
}

LogicalResult ScatterOp::verify() {
  Checker check(*this);
  // scatter_c5
  if (getInputs().empty())
    return check.error("expects at least one input");
  ScatterDimensionNumbersAttr numbers = getScatterDimensionNumbers();
  auto input = tensorType(getInputs().front().getType());
  auto update = tensorType(getUpdates().front().getType());
  RankedTensorType indices = getScatterIndices().getType();
  for (auto [otherInput, otherUpdate] :
       llvm::zip_equal(getInputs(), getUpdates())) {
    auto inputType = tensorType(otherInput.getType());
    auto updateType = tensorType(otherUpdate.getType());
    // scatter_c1, scatter_c3, scatter_c6
    if (failed(check.sameShape("each input", inputType.getShape(),
                               input.getShape())) ||
        failed(check.sameShape("each update", updateType.getShape(),
                               update.getShape())) ||
        failed(check.sameElements("input and update", inputType, updateType)))
      return failure();
  }
  if (failed(verifyWindowedDims(
          check,
          {input, indices, numbers.getIndexVectorDim(),
           numbers.getInsertedWindowDims(), numbers.getInputBatchingDims(),
           numbers.getScatterIndicesBatchingDims(),
           numbers.getScatterDimsToOperandDims(), "inserted_window_dims",
           "input_batching_dims", "scatter_indices_batching_dims",
           "scatter_dims_to_operand_dims"})))
    return failure();
  // scatter_c2
  int64_t windowRank = input.getRank() -
                       numbers.getInsertedWindowDims().size() -
                       numbers.getInputBatchingDims().size();
  if (failed(check.count("update_window_dims",
                         numbers.getUpdateWindowDims().size(), windowRank)) ||
      failed(verifyUpdates(check, input, indices, update, numbers)))
    return failure();
  // scatter_c23
  if (failed(check.reducer(getUpdateComputation(), getInputs().getTypes(),
                           getUpdates().getTypes())))
    return failure();
  // scatter_c24, scatter_c25
  if (failed(check.count("results", getNumResults(), getInputs().size())))
    return failure();
  for (auto [operand, result, argument] :
       llvm::zip(getInputs(), getResults(),
                 getUpdateComputation().front().getArguments())) {
    if (failed(check.sameShape("each result",
                               tensorType(result.getType()).getShape(),
                               input.getShape())) ||
        failed(check.sameElements("result and region", result.getType(),
                                  argument.getType())))
      return failure();
  }
  return success();
}
