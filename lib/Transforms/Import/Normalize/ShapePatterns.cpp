//===- ShapePatterns.cpp - Re-shaping, broadcasting, converting -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: operations that move elements, and constants. Out: fewer of them, with
// the same results.
//
// Pairs of broadcasts, reshapes or transposes become one; those that change
// nothing go. Constants are folded where that makes nothing larger: splats
// through all, others through reshape and transpose only, in time linear in
// their elements. A conversion of a splat to a float type is folded, rounded to
// the nearest; one that overflows is left to the target. `dot` becomes
// `dot_general`.
//
// Cost: each pattern looks at an operation and at those that make its operands.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;

namespace whale::normalize {

static bool isIdentity(ArrayRef<int64_t> dims) {
  return llvm::all_of(llvm::enumerate(dims), [](auto dim) {
    return static_cast<int64_t>(dim.index()) == dim.value();
  });
}

static DenseElementsAttr constantOf(Value value) {
  DenseElementsAttr attr;
  matchPattern(value, m_Constant(&attr));
  return attr;
}

// Pattern: convert(x : T) : T -> x
// Pattern: reshape(x : T) : T -> x
// Pattern: broadcast_in_dim(x : T), dims = identity : T -> x
// Pattern: transpose(x), dims = identity -> x
template <typename Op>
static LogicalResult removeNoOp(Op op, PatternRewriter &rewriter) {
  if (op.getOperand().getType() != op.getType())
    return failure();
  if constexpr (std::is_same_v<Op, stablehlo::BroadcastInDimOp>)
    if (!isIdentity(op.getBroadcastDimensions()))
      return failure();
  if constexpr (std::is_same_v<Op, stablehlo::TransposeOp>)
    if (!isIdentity(op.getPermutation()))
      return failure();
  rewriter.replaceOp(op, op.getOperand());
  return success();
}

// Pattern: broadcast_in_dim(broadcast_in_dim(x, a), b)
//   -> broadcast_in_dim(x, b o a)
static LogicalResult mergeBroadcasts(stablehlo::BroadcastInDimOp op,
                                     PatternRewriter &rewriter) {
  auto inner = op.getOperand().getDefiningOp<stablehlo::BroadcastInDimOp>();
  if (!inner)
    return failure();
  SmallVector<int64_t> dims;
  for (int64_t dim : inner.getBroadcastDimensions())
    dims.push_back(op.getBroadcastDimensions()[dim]);
  rewriter.replaceOpWithNewOp<stablehlo::BroadcastInDimOp>(
      op, op.getType(), inner.getOperand(),
      rewriter.getDenseI64ArrayAttr(dims));
  return success();
}

// Pattern: reshape(reshape(x)) -> reshape(x)
static LogicalResult mergeReshapes(stablehlo::ReshapeOp op,
                                   PatternRewriter &rewriter) {
  auto inner = op.getOperand().getDefiningOp<stablehlo::ReshapeOp>();
  if (!inner)
    return failure();
  rewriter.replaceOpWithNewOp<stablehlo::ReshapeOp>(op, op.getType(),
                                                    inner.getOperand());
  return success();
}

// Pattern: transpose(transpose(x, a), b) -> transpose(x, a o b)
static LogicalResult mergeTransposes(stablehlo::TransposeOp op,
                                     PatternRewriter &rewriter) {
  auto inner = op.getOperand().getDefiningOp<stablehlo::TransposeOp>();
  if (!inner)
    return failure();
  SmallVector<int64_t> permutation;
  for (int64_t dim : op.getPermutation())
    permutation.push_back(inner.getPermutation()[dim]);
  rewriter.replaceOpWithNewOp<stablehlo::TransposeOp>(
      op, op.getType(), inner.getOperand(),
      rewriter.getDenseI64ArrayAttr(permutation));
  return success();
}

// Pattern: broadcast_in_dim(splat) -> splat
// Pattern: transpose(splat) -> splat
// Pattern: reshape(constant) -> constant
template <typename Op>
static LogicalResult foldSplat(Op op, PatternRewriter &rewriter) {
  DenseElementsAttr value = constantOf(op.getOperand());
  auto type = cast<RankedTensorType>(op.getType());
  if (!value || !type.hasStaticShape())
    return failure();
  if (value.isSplat())
    value = value.resizeSplat(type);
  else if (std::is_same_v<Op, stablehlo::ReshapeOp>)
    value = value.reshape(type);
  else
    return failure();
  rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(op, value);
  return success();
}

// Pattern: transpose(constant) -> constant
static LogicalResult foldTranspose(stablehlo::TransposeOp op,
                                   PatternRewriter &rewriter) {
  DenseElementsAttr value = constantOf(op.getOperand());
  auto type = cast<RankedTensorType>(op.getType());
  if (!value || value.isSplat())
    return failure();
  auto inputShape = cast<RankedTensorType>(value.getType()).getShape();
  SmallVector<int64_t> strides(inputShape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(inputShape.size()) - 2; dim >= 0;
       --dim)
    strides[dim] = strides[dim + 1] * inputShape[dim + 1];

  auto elements = value.getValues<Attribute>();
  SmallVector<Attribute> moved;
  moved.reserve(type.getNumElements());
  SmallVector<int64_t> index(type.getRank(), 0);
  for (int64_t count = type.getNumElements(); count > 0; --count) {
    int64_t source = 0;
    for (auto [dim, from] : llvm::enumerate(op.getPermutation()))
      source += index[dim] * strides[from];
    moved.push_back(elements[source]);
    for (int64_t dim = type.getRank() - 1;
         dim >= 0 && ++index[dim] == type.getDimSize(dim); --dim)
      index[dim] = 0;
  }
  rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(
      op, DenseElementsAttr::get(type, moved));
  return success();
}

// Pattern: convert(splat) -> splat, between floats, or to a float from an
// integer: conversions whose rounding is the nearest
static LogicalResult foldConvert(stablehlo::ConvertOp op,
                                 PatternRewriter &rewriter) {
  DenseElementsAttr value = constantOf(op.getOperand());
  auto type = cast<RankedTensorType>(op.getType());
  auto to = dyn_cast<FloatType>(type.getElementType());
  if (!value || !value.isSplat() || !to)
    return failure();
  APFloat result(to.getFloatSemantics());
  if (isa<FloatType>(value.getElementType())) {
    result = value.getSplatValue<APFloat>();
    // What overflows is left to the target.
    if (!result.isFinite())
      return failure();
    bool losesInfo;
    result.convert(to.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
  } else if (auto from = dyn_cast<IntegerType>(value.getElementType())) {
    bool isSigned = !from.isUnsigned() && from.getWidth() != 1;
    result.convertFromAPInt(value.getSplatValue<APInt>(), isSigned,
                            APFloat::rmNearestTiesToEven);
  } else {
    return failure();
  }
  if (!result.isFinite())
    return failure();
  rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(
      op, DenseElementsAttr::get(type, result));
  return success();
}

// Pattern: slice(x : T) : T -> x
// Pattern: slice(splat) -> splat
static LogicalResult foldSlice(stablehlo::SliceOp op,
                               PatternRewriter &rewriter) {
  DenseElementsAttr value = constantOf(op.getOperand());
  auto type = cast<RankedTensorType>(op.getType());
  if (op.getOperand().getType() == type) {
    rewriter.replaceOp(op, op.getOperand());
    return success();
  }
  if (!value || !value.isSplat())
    return failure();
  rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(op,
                                                     value.resizeSplat(type));
  return success();
}

// Pattern: concatenate(x, empty, y) -> concatenate(x, y)
// Pattern: concatenate(x) -> x
static LogicalResult dropEmptyPieces(stablehlo::ConcatenateOp op,
                                     PatternRewriter &rewriter) {
  auto isFull = [&](Value piece) {
    return cast<RankedTensorType>(piece.getType())
               .getDimSize(op.getDimension()) != 0;
  };
  auto full = llvm::filter_to_vector(op->getOperands(), isFull);
  if (full.empty())
    full.push_back(op->getOperand(0));
  if (full.size() == 1 && full.front().getType() == op.getType()) {
    rewriter.replaceOp(op, full.front());
    return success();
  }
  if (full.size() == op->getNumOperands())
    return failure();
  rewriter.replaceOpWithNewOp<stablehlo::ConcatenateOp>(op, op.getType(), full,
                                                        op.getDimension());
  return success();
}

// Pattern: dot(x, y) -> dot_general(x, y)
static LogicalResult generalizeDot(stablehlo::DotOp op,
                                   PatternRewriter &rewriter) {
  int64_t last = op.getLhs().getType().getRank() - 1;
  auto numbers = stablehlo::DotDimensionNumbersAttr::get(rewriter.getContext(),
                                                         {}, {}, last, 0);
  rewriter.replaceOpWithNewOp<stablehlo::DotGeneralOp>(
      op, op.getType(), op.getLhs(), op.getRhs(), numbers,
      op.getPrecisionConfigAttr(), stablehlo::DotAlgorithmAttr());
  return success();
}

void populateShapePatterns(RewritePatternSet &patterns) {
  addAll(
      patterns, dropEmptyPieces, foldConvert, foldSlice, generalizeDot,
      foldSplat<stablehlo::BroadcastInDimOp>, foldSplat<stablehlo::ReshapeOp>,
      foldSplat<stablehlo::TransposeOp>, foldTranspose, mergeBroadcasts,
      mergeReshapes, mergeTransposes, removeNoOp<stablehlo::BitcastConvertOp>,
      removeNoOp<stablehlo::BroadcastInDimOp>, removeNoOp<stablehlo::ConvertOp>,
      removeNoOp<stablehlo::ReshapeOp>, removeNoOp<stablehlo::TransposeOp>);
}

} // namespace whale::normalize
