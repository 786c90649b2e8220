//===- DynamicPatterns.cpp - Dynamic operations of static shape -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: operations that take sizes or padding as operands, where these follow
// from the type of the result or are constants; and elements of tuples. Out:
// the operations that have them as attributes, and the values that the tuples
// were made of. What is not constant stays. Cost: linear in the rank.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;

namespace whale::normalize {

static std::optional<SmallVector<int64_t>> constantValues(Value value) {
  DenseIntElementsAttr attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return std::nullopt;
  bool isUnsigned = attr.getElementType().isUnsignedInteger();
  return llvm::map_to_vector(attr.getValues<APInt>(), [=](const APInt &number) {
    return isUnsigned ? int64_t(number.getLimitedValue(INT64_MAX))
                      : number.getSExtValue();
  });
}

// Pattern: dynamic_broadcast_in_dim(x, shape) -> broadcast_in_dim(x)
static LogicalResult makeBroadcast(stablehlo::DynamicBroadcastInDimOp op,
                                   PatternRewriter &rewriter) {
  rewriter.replaceOpWithNewOp<stablehlo::BroadcastInDimOp>(
      op, op->getResult(0).getType(), op.getOperand(),
      op.getBroadcastDimensions());
  return success();
}

// Pattern: dynamic_iota(shape) -> iota
static LogicalResult makeIota(stablehlo::DynamicIotaOp op,
                              PatternRewriter &rewriter) {
  rewriter.replaceOpWithNewOp<stablehlo::IotaOp>(op, op->getResult(0).getType(),
                                                 op.getIotaDimension());
  return success();
}

// Pattern: dynamic_reshape(x, shape) -> reshape(x)
static LogicalResult makeReshape(stablehlo::DynamicReshapeOp op,
                                 PatternRewriter &rewriter) {
  rewriter.replaceOpWithNewOp<stablehlo::ReshapeOp>(
      op, op->getResult(0).getType(), op.getOperand());
  return success();
}

// Pattern: dynamic_pad(x, v, constants) -> pad(x, v)
static LogicalResult makePad(stablehlo::DynamicPadOp op,
                             PatternRewriter &rewriter) {
  auto low = constantValues(op.getEdgePaddingLow());
  auto high = constantValues(op.getEdgePaddingHigh());
  auto interior = constantValues(op.getInteriorPadding());
  if (!low || !high || !interior)
    return failure();
  rewriter.replaceOpWithNewOp<stablehlo::PadOp>(
      op, op->getResult(0).getType(), op.getOperand(), op.getPaddingValue(),
      *low, *high, *interior);
  return success();
}

// Pattern: real_dynamic_slice(x, constants) -> slice(x)
// Pattern: real_dynamic_slice(x, start, limit, ones) -> dynamic_slice(x, start)
static LogicalResult makeSlice(stablehlo::RealDynamicSliceOp op,
                               PatternRewriter &rewriter) {
  auto start = constantValues(op.getStartIndices());
  auto limit = constantValues(op.getLimitIndices());
  auto strides = constantValues(op.getStrides());
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (!strides)
    return failure();
  if (start && limit) {
    rewriter.replaceOpWithNewOp<stablehlo::SliceOp>(op, type, op.getOperand(),
                                                    *start, *limit, *strides);
    return success();
  }
  if (llvm::any_of(*strides, [](int64_t stride) { return stride != 1; }))
    return failure();
  auto indices = cast<RankedTensorType>(op.getStartIndices().getType());
  SmallVector<Value> starts;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Value one = stablehlo::SliceOp::create(
        rewriter, op.getLoc(), indices.clone(ArrayRef<int64_t>{1}),
        op.getStartIndices(), ArrayRef<int64_t>{dim},
        ArrayRef<int64_t>{dim + 1}, ArrayRef<int64_t>{1});
    starts.push_back(stablehlo::ReshapeOp::create(
        rewriter, op.getLoc(), indices.clone(ArrayRef<int64_t>{}), one));
  }
  rewriter.replaceOpWithNewOp<stablehlo::DynamicSliceOp>(
      op, type, op.getOperand(), starts, type.getShape());
  return success();
}

// Pattern: dynamic_gather(x, i, constant) -> gather(x, i)
static LogicalResult makeGather(stablehlo::DynamicGatherOp op,
                                PatternRewriter &rewriter) {
  auto sizes = constantValues(op.getSliceSizes());
  if (!sizes)
    return failure();
  rewriter.replaceOpWithNewOp<stablehlo::GatherOp>(
      op, op->getResult(0).getType(), op.getOperand(), op.getStartIndices(),
      op.getDimensionNumbers(), *sizes, op.getIndicesAreSorted());
  return success();
}

// Pattern: dynamic_conv(x, k, constant) -> convolution(x, k)
static LogicalResult makeConvolution(stablehlo::DynamicConvOp op,
                                     PatternRewriter &rewriter) {
  auto padding = constantValues(op.getPadding());
  if (!padding)
    return failure();
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.set("padding", stablehlo::makePadding(op.getContext(), *padding));
  OperationState state(
      op.getLoc(), stablehlo::ConvolutionOp::getOperationName(),
      op->getOperands().take_front(2), op->getResultTypes(), attributes);
  rewriter.replaceOp(op, rewriter.create(state));
  return success();
}

// Pattern: get_dimension_size(x) -> constant
static LogicalResult foldDimensionSize(stablehlo::GetDimensionSizeOp op,
                                       PatternRewriter &rewriter) {
  auto from = cast<RankedTensorType>(op.getOperand().getType());
  int64_t size = from.getDimSize(op.getDimension());
  auto type = RankedTensorType::get({}, rewriter.getI32Type());
  rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(
      op, DenseElementsAttr::get(type, rewriter.getI32IntegerAttr(size)));
  return success();
}

// Pattern: get_tuple_element(tuple(..., x, ...)) -> x
static LogicalResult foldTupleElement(stablehlo::GetTupleElementOp op,
                                      PatternRewriter &rewriter) {
  auto tuple = op.getOperand().getDefiningOp<stablehlo::TupleOp>();
  if (!tuple)
    return failure();
  rewriter.replaceOp(op, tuple->getOperand(op.getIndex()));
  return success();
}

void populateDynamicPatterns(RewritePatternSet &patterns) {
  addAll(patterns, foldDimensionSize, foldTupleElement, makeBroadcast,
         makeConvolution, makeGather, makeIota, makePad, makeReshape,
         makeSlice);
}

} // namespace whale::normalize
