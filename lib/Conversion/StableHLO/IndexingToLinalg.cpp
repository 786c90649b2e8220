//===- IndexingToLinalg.cpp - Gather and dynamic slices -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: gather, dynamic_slice and dynamic_update_slice. Out: a parallel linalg
// operation. Its body reads with tensor.extract at an index that is computed
// and clamped; that of dynamic_update_slice copies the update, and its loop
// later stores it in the operand's buffer. Cost: for each element of the result
// the loop reads its indices and one element; a slice that is stored costs the
// elements of the update alone. To lower: quadratic in the rank.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "StableHLO/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

namespace {

/// Pattern: gather(x, i) -> x[clamp(i) + offset]
struct GatherToLinalg : OpRewritePattern<stablehlo::GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::GatherOp op,
                                PatternRewriter &rewriter) const override {
    auto from = cast<RankedTensorType>(op.getOperand().getType());
    auto to = cast<RankedTensorType>(op.getType());
    auto starts = cast<RankedTensorType>(op.getStartIndices().getType());
    RankedTensorType storage = getStorageType(to);
    Value source = stored(rewriter, op.getOperand());
    Value indices = stored(rewriter, op.getStartIndices());
    if (!storage || !source || !indices)
      return failure();
    auto numbers = op.getDimensionNumbers();
    int64_t vectorDim = numbers.getIndexVectorDim();

    // The result's dimensions are offsets into a slice or number the indices.
    SmallVector<int64_t> batchDims;
    for (int64_t dim = 0; dim < to.getRank(); ++dim)
      if (!llvm::is_contained(numbers.getOffsetDims(), dim))
        batchDims.push_back(dim);
    auto batchDimOf = [&](int64_t indicesDim) {
      return batchDims[indicesDim < vectorDim ? indicesDim : indicesDim - 1];
    };

    // One input for each component of the index.
    SmallVector<Input> inputs;
    for (size_t part = 0; part < numbers.getStartIndexMap().size(); ++part) {
      SmallVector<AffineExpr> exprs;
      for (int64_t dim = 0; dim < starts.getRank(); ++dim)
        exprs.push_back(dim == vectorDim
                            ? rewriter.getAffineConstantExpr(part)
                            : rewriter.getAffineDimExpr(batchDimOf(dim)));
      inputs.push_back({indices, AffineMap::get(to.getRank(), 0, exprs,
                                                rewriter.getContext())});
    }
    auto generic = makeParallel(
        rewriter, op.getLoc(), storage.getShape(), storage.getElementType(),
        inputs,
        [&](OpBuilder &b, Location loc,
            ValueRange elements) -> FailureOr<SmallVector<Value>> {
          SmallVector<Value> place(from.getRank());
          for (auto [operandDim, indicesDim] :
               llvm::zip_equal(numbers.getOperandBatchingDims(),
                               numbers.getStartIndicesBatchingDims()))
            place[operandDim] =
                linalg::IndexOp::create(b, loc, batchDimOf(indicesDim));
          unsigned nextOffset = 0;
          for (int64_t dim = 0; dim < from.getRank(); ++dim) {
            if (place[dim] ||
                llvm::is_contained(numbers.getCollapsedSliceDims(), dim))
              continue;
            place[dim] = linalg::IndexOp::create(
                b, loc, numbers.getOffsetDims()[nextOffset++]);
          }
          for (auto [dim, element] :
               llvm::zip_equal(numbers.getStartIndexMap(), elements)) {
            Value start = clampIndex(
                b, loc, toIndex(b, loc, element, starts.getElementType()), 0,
                from.getDimSize(dim) - op.getSliceSizes()[dim]);
            place[dim] = place[dim]
                             ? arith::AddIOp::create(b, loc, start, place[dim])
                                   .getResult()
                             : start;
          }
          for (Value &index : place)
            if (!index) // Collapsed, of size one, and not indexed.
              index = constantIndex(b, loc, 0);
          return SmallVector<Value>{
              tensor::ExtractOp::create(b, loc, source, place)};
        });
    if (failed(generic))
      return failure();
    replaceWithStored(rewriter, op, generic->getResults());
    return success();
  }
};

/// Pattern: dynamic_slice(x, i) -> x[clamp(i) + offset]
struct DynamicSliceToLinalg : OpRewritePattern<stablehlo::DynamicSliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::DynamicSliceOp op,
                                PatternRewriter &rewriter) const override {
    auto from = cast<RankedTensorType>(op.getOperand().getType());
    auto to = cast<RankedTensorType>(op.getType());
    RankedTensorType storage = getStorageType(to);
    Value source = stored(rewriter, op.getOperand());
    if (!storage || !source)
      return failure();
    SmallVector<Input> inputs;
    SmallVector<int> inputOf;
    SmallVector<int64_t> constants;
    for (auto [dim, start] : llvm::enumerate(op.getStartIndices())) {
      inputOf.push_back(-1);
      constants.push_back(0);
      int64_t room = from.getDimSize(dim) - to.getDimSize(dim);
      if (room == 0)
        continue;
      if (auto constant = dyn_cast_or_null<IntegerAttr>(matchSplat(start))) {
        constants.back() = clampConstant(
            constant.getValue(), getElementTypeOrSelf(start.getType()), room);
        continue;
      }
      inputOf.back() = inputs.size();
      inputs.push_back(
          {stored(rewriter, start),
           AffineMap::get(to.getRank(), 0, rewriter.getContext())});
    }
    auto generic = makeParallel(
        rewriter, op.getLoc(), storage.getShape(), storage.getElementType(),
        inputs,
        [&](OpBuilder &b, Location loc,
            ValueRange elements) -> FailureOr<SmallVector<Value>> {
          SmallVector<Value> place;
          for (int64_t dim = 0; dim < from.getRank(); ++dim) {
            Value start;
            if (inputOf[dim] < 0) {
              start = constantIndex(b, loc, constants[dim]);
            } else {
              Type type =
                  getElementTypeOrSelf(op.getStartIndices()[dim].getType());
              start = clampIndex(b, loc,
                                 toIndex(b, loc, elements[inputOf[dim]], type),
                                 0, from.getDimSize(dim) - to.getDimSize(dim));
            }
            place.push_back(arith::AddIOp::create(
                b, loc, start, linalg::IndexOp::create(b, loc, dim)));
          }
          return SmallVector<Value>{
              tensor::ExtractOp::create(b, loc, source, place)};
        });
    if (failed(generic))
      return failure();
    replaceWithStored(rewriter, op, generic->getResults());
    return success();
  }
};

/// Pattern: dynamic_update_slice(x, u, i) -> the same on stored tensors, of a
/// loop that gives u: what computes u becomes a part of that loop, and it
/// writes into the buffer of x.
struct StoreUpdateSlice : OpRewritePattern<stablehlo::DynamicUpdateSliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::DynamicUpdateSliceOp op,
                                PatternRewriter &rewriter) const override {
    Value operand = stored(rewriter, op.getOperand());
    Value update = stored(rewriter, op.getUpdate());
    if (!operand || !update)
      return failure();
    if (cast<ShapedType>(update.getType()).getNumElements() == 0) {
      rewriter.replaceOp(op, op.getOperand());
      return success();
    }
    if (update.getType() == operand.getType()) {
      rewriter.replaceOp(op, op.getUpdate());
      return success();
    }
    auto copy = makeCopy(rewriter, op.getLoc(), update);
    auto store = stablehlo::DynamicUpdateSliceOp::create(
        rewriter, op.getLoc(), operand.getType(), operand, copy.getResult(0),
        op.getStartIndices());
    replaceWithStored(rewriter, op, store->getResults());
    return success();
  }
};

} // namespace

void whale::populateIndexingPatterns(RewritePatternSet &patterns) {
  patterns.add<GatherToLinalg, DynamicSliceToLinalg, StoreUpdateSlice>(
      patterns.getContext());
}
