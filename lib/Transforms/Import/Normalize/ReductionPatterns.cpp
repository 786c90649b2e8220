//===- ReductionPatterns.cpp - Reductions that start from identities ------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: reductions and scatters by a single operation with a known identity. Out:
// those that can be computed in parts; others stay.
//
// What goes into a reduction besides its terms (an initial value, what is
// scattered into) is combined with its result instead, or each device's partial
// result would have it. A sum over windows that have one element each becomes a
// broadcast, whose dimensions can be split. A sum with zeros is dropped where
// no element can be -0. Cost: a rewrite is linear in the rank; in the program,
// a pass over the result of each reduction or scatter that is rewritten.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Sharding/Reducers.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace whale::normalize {

namespace {

/// The operation that `region` applies to its two arguments, or null.
Operation *getReducer(Region &region) {
  Block &block = region.front();
  if (block.getNumArguments() != 2 || !llvm::hasNItems(block, 2))
    return nullptr;
  Operation *op = &block.front();
  if (op->getNumOperands() != 2 || op->getNumResults() != 1 ||
      block.getTerminator()->getOperands() != op->getResults())
    return nullptr;
  Value a = block.getArgument(0), b = block.getArgument(1);
  Value x = op->getOperand(0), y = op->getOperand(1);
  return (x == a && y == b) || (x == b && y == a) ? op : nullptr;
}

/// The number that doesn't change what `reducer` combines it with.
Attribute getReducerIdentity(Operation *reducer) {
  Type element = getElementTypeOrSelf(reducer->getResult(0).getType());
  if (isa<stablehlo::XorOp>(reducer))
    return Builder(reducer->getContext()).getZeroAttr(element);
  std::optional<Reduction> kind = getReductionKind(*reducer->getParentRegion());
  return kind ? getIdentity(*kind, element) : Attribute();
}

/// Whether `value` is a splat of `identity`; both zeros are that of a sum.
bool isSplatOf(Value value, Attribute identity) {
  DenseElementsAttr constant;
  if (!matchPattern(value, m_Constant(&constant)) || !constant.isSplat())
    return false;
  if (auto number = dyn_cast<FloatAttr>(identity))
    return constant.getSplatValue<APFloat>() == number.getValue();
  return constant.getSplatValue<Attribute>() == identity;
}

Value createSplat(PatternRewriter &rewriter, Location loc, Type type,
                  Attribute value) {
  return stablehlo::ConstantOp::create(
      rewriter, loc, DenseElementsAttr::get(cast<ShapedType>(type), value));
}

Value combine(PatternRewriter &rewriter, Location loc, Operation *reducer,
              Value lhs, Value rhs) {
  OperationState state(loc, reducer->getName(), {lhs, rhs}, {lhs.getType()});
  return rewriter.create(state)->getResult(0);
}

// Pattern: reduce(x, init) -> op(init, reduce(x, identity of op))
//
// A partial result then holds the initial value never instead of once a device.
struct ReduceFromIdentity : OpRewritePattern<stablehlo::ReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ReduceOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getInputs().size() != 1)
      return failure();
    Operation *reducer = getReducer(op.getBody());
    Value init = op.getInitValues()[0];
    if (!reducer)
      return failure();
    Attribute identity = getReducerIdentity(reducer);
    if (!identity || isSplatOf(init, identity))
      return failure();
    Location loc = op.getLoc();
    Value start = createSplat(rewriter, loc, init.getType(), identity);
    auto reduce = cast<stablehlo::ReduceOp>(rewriter.clone(*op));
    reduce.getInitValuesMutable().assign(start);
    Value first = stablehlo::BroadcastInDimOp::create(
        rewriter, loc, op.getResult(0).getType(), init,
        rewriter.getDenseI64ArrayAttr({}));
    rewriter.replaceOp(
        op, combine(rewriter, loc, reducer, first, reduce.getResult(0)));
    return success();
  }
};

// Pattern: scatter-add(x, i, u) -> x + scatter-add(zeros, i, u)
//
// The scatter's result may then be a partial sum. In loops, where an
// accumulator is updated in place, that would cost a pass over it each time.
struct ScatterIntoZeros : OpRewritePattern<stablehlo::ScatterOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ScatterOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getInputs().size() != 1 || op->getParentOfType<stablehlo::WhileOp>())
      return failure();
    Operation *reducer = getReducer(op.getUpdateComputation());
    Value input = op.getInputs()[0];
    if (!isa_and_nonnull<stablehlo::AddOp>(reducer))
      return failure();
    Attribute zero = getReducerIdentity(reducer);
    if (!zero || isSplatOf(input, zero))
      return failure();
    Location loc = op.getLoc();
    Value zeros = createSplat(rewriter, loc, input.getType(), zero);
    auto scatter = cast<stablehlo::ScatterOp>(rewriter.clone(*op));
    scatter.getInputsMutable().assign(zeros);
    rewriter.replaceOp(
        op, combine(rewriter, loc, reducer, input, scatter.getResult(0)));
    return success();
  }
};

/// Whether `value` is `identity` throughout, seen through broadcasts.
bool isBroadcastOf(Value value, Attribute identity) {
  while (auto broadcast = value.getDefiningOp<stablehlo::BroadcastInDimOp>())
    value = broadcast.getOperand();
  return isSplatOf(value, identity);
}

// Pattern: reduce_window-add of size w, stride 1 (pad by w - 1 on both sides
// and between elements) -> broadcast, each element w times
//
// This is how JAX writes the gradient of a mean over windows side by side. As
// it is each window has one element and zeros, and no dimension can be
// split.
struct SumOfSpread : OpRewritePattern<stablehlo::ReduceWindowOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ReduceWindowOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getInputs().size() != 1)
      return failure();
    auto pad = op.getInputs()[0].getDefiningOp<stablehlo::PadOp>();
    Operation *reducer = getReducer(op.getBody());
    if (!pad || !isa_and_nonnull<stablehlo::AddOp>(reducer))
      return failure();
    Attribute zero = getReducerIdentity(reducer);
    if (!zero || !isBroadcastOf(pad.getPaddingValue(), zero) ||
        !isBroadcastOf(op.getInitValues()[0], zero))
      return failure();
    auto isOne = [](std::optional<ArrayRef<int64_t>> list) {
      return !list || llvm::all_of(*list, [](int64_t n) { return n == 1; });
    };
    auto padding = op.getPadding();
    if (!isOne(op.getWindowStrides()) || !isOne(op.getBaseDilations()) ||
        !isOne(op.getWindowDilations()) ||
        (padding && llvm::any_of(padding->getValues<int64_t>(),
                                 [](int64_t n) { return n != 0; })))
      return failure();
    auto type = cast<RankedTensorType>(pad.getOperand().getType());
    if (!type.hasStaticShape())
      return failure();
    SmallVector<int64_t> dims, shape;
    for (auto [size, window, low, high, interior] : llvm::zip_equal(
             type.getShape(), op.getWindowDimensions(), pad.getEdgePaddingLow(),
             pad.getEdgePaddingHigh(), pad.getInteriorPadding())) {
      if (size == 0 || low != window - 1 || high != low || interior != low)
        return failure();
      dims.push_back(shape.size());
      shape.push_back(size);
      if (window != 1)
        shape.push_back(window);
    }
    Value spread = stablehlo::BroadcastInDimOp::create(
        rewriter, op.getLoc(), type.clone(shape), pad.getOperand(),
        rewriter.getDenseI64ArrayAttr(dims));
    rewriter.replaceOpWithNewOp<stablehlo::ReshapeOp>(
        op, op.getResult(0).getType(), spread);
    return success();
  }
};

// Pattern: scatter-add(zeros, i, u) + 0.0 -> scatter-add(zeros, i, u)
//
// JAX adds up what several uses contribute to a gradient, zeros among them.
struct SumWithZero : OpRewritePattern<stablehlo::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::AddOp op,
                                PatternRewriter &rewriter) const override {
    Value lhs = op.getLhs(), rhs = op.getRhs();
    if (isPlusZero(lhs))
      std::swap(lhs, rhs);
    if (!isPlusZero(rhs) || !isNeverMinusZero(lhs))
      return failure();
    rewriter.replaceOp(op, lhs);
    return success();
  }
};

} // namespace

void populateReductionPatterns(RewritePatternSet &patterns) {
  patterns.add<ReduceFromIdentity, ScatterIntoZeros, SumOfSpread, SumWithZero>(
      patterns.getContext());
}

} // namespace whale::normalize
