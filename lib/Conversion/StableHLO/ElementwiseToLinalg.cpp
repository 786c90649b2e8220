//===- ElementwiseToLinalg.cpp - Elementwise operations -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an elementwise operation, a bit cast to another width or a map. Out: one
// parallel linalg operation. Its body is that of ScalarOps.cpp, or the shifts
// of the bit cast; an operand that has one value everywhere is a constant in
// it. Cost: linear in the operands, or in the body of a map; if nothing fuses
// with it, the loop reads the operands and writes the result once.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "StableHLO/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

namespace {

/// Pattern: add(a, b) -> linalg.generic { arith.addf }
///
/// An operand that is the same everywhere becomes a constant of the body.
struct ElementwiseToLinalg : RewritePattern {
  ElementwiseToLinalg(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isElementwise(op))
      return failure();
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    RankedTensorType storage = type ? getStorageType(type) : type;
    if (!storage)
      return failure();
    SmallVector<Input> inputs;
    SmallVector<Attribute> constants;
    for (Value operand : op->getOperands()) {
      auto from = cast<RankedTensorType>(operand.getType());
      if (!getStorageType(from))
        return failure();
      constants.push_back(matchSplat(operand));
      if (constants.back())
        continue;
      // Only scalars spread: the predicate of select, the bounds of clamp.
      bool spread = from.getRank() == 0;
      if (!spread && from.getShape() != type.getShape())
        return failure();
      inputs.push_back(
          {stored(rewriter, operand),
           spread ? AffineMap::get(type.getRank(), 0, rewriter.getContext())
                  : rewriter.getMultiDimIdentityMap(type.getRank())});
    }
    auto generic = makeParallel(
        rewriter, op->getLoc(), storage.getShape(), storage.getElementType(),
        inputs,
        [&](OpBuilder &b, Location loc,
            ValueRange elements) -> FailureOr<SmallVector<Value>> {
          SmallVector<Value> operands;
          unsigned next = 0;
          for (auto [operand, constant] :
               llvm::zip_equal(op->getOperands(), constants))
            operands.push_back(constant
                                   ? makeConstant(b, loc, constant,
                                                  getElementTypeOrSelf(operand))
                                   : elements[next++]);
          FailureOr<Value> result = emitScalarOp(b, op, operands);
          if (failed(result))
            return failure();
          return SmallVector<Value>{*result};
        });
    if (failed(generic))
      return failure();
    replaceWithStored(rewriter, op, generic->getResults());
    return success();
  }
};

/// Pattern: a bit cast to another width splits an element along a new last
/// dimension, or joins those of the last dimension; the first is the lowest.
struct BitcastConvertToLinalg : OpRewritePattern<stablehlo::BitcastConvertOp> {
  BitcastConvertToLinalg(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(stablehlo::BitcastConvertOp op,
                                PatternRewriter &rewriter) const override {
    auto from = cast<RankedTensorType>(op.getOperand().getType());
    auto to = cast<RankedTensorType>(op.getType());
    RankedTensorType storage = getStorageType(to);
    if (!storage || !getStorageType(from) ||
        !from.getElementType().isIntOrFloat() ||
        !to.getElementType().isIntOrFloat())
      return failure();
    unsigned fromWidth = from.getElementTypeBitWidth();
    unsigned toWidth = to.getElementTypeBitWidth();
    if (fromWidth == toWidth || fromWidth == 1 || toWidth == 1)
      return failure();
    Value input = stored(rewriter, op.getOperand());
    unsigned rank = to.getRank();
    SmallVector<AffineExpr> exprs;
    for (unsigned dim = 0; dim < std::min<unsigned>(rank, from.getRank());
         ++dim)
      exprs.push_back(rewriter.getAffineDimExpr(dim));
    SmallVector<Input> inputs;
    if (fromWidth > toWidth) {
      inputs.push_back(
          {input, AffineMap::get(rank, 0, exprs, rewriter.getContext())});
    } else {
      for (unsigned part = 0; part < toWidth / fromWidth; ++part) {
        SmallVector<AffineExpr> partExprs(exprs);
        partExprs.push_back(rewriter.getAffineConstantExpr(part));
        inputs.push_back(
            {input, AffineMap::get(rank, 0, partExprs, rewriter.getContext())});
      }
    }
    // What has less than 8 bits is stored in 8.
    auto bits = [&](OpBuilder &b, Location loc, Value value) -> Value {
      Type type = b.getIntegerType(fromWidth);
      if (value.getType() == type)
        return value;
      if (value.getType().isInteger())
        return arith::TruncIOp::create(b, loc, type, value);
      return arith::BitcastOp::create(b, loc, type, value);
    };
    auto generic = makeParallel(
        rewriter, op.getLoc(), storage.getShape(), storage.getElementType(),
        inputs,
        [&](OpBuilder &b, Location loc,
            ValueRange elements) -> FailureOr<SmallVector<Value>> {
          Type toBits = b.getIntegerType(toWidth);
          Value result;
          if (fromWidth > toWidth) {
            Type fromBits = b.getIntegerType(fromWidth);
            Value part = arith::IndexCastOp::create(
                b, loc, fromBits, linalg::IndexOp::create(b, loc, rank - 1));
            Value amount = arith::MulIOp::create(
                b, loc, part,
                arith::ConstantOp::create(b, loc,
                                          b.getIntegerAttr(fromBits, toWidth)));
            Value shifted = arith::ShRUIOp::create(
                b, loc, bits(b, loc, elements[0]), amount);
            result = arith::TruncIOp::create(b, loc, toBits, shifted);
          } else {
            for (auto [part, element] : llvm::enumerate(elements)) {
              Value wide =
                  arith::ExtUIOp::create(b, loc, toBits, bits(b, loc, element));
              wide = arith::ShLIOp::create(
                  b, loc, wide,
                  arith::ConstantOp::create(
                      b, loc, b.getIntegerAttr(toBits, part * fromWidth)));
              result =
                  result
                      ? arith::OrIOp::create(b, loc, result, wide).getResult()
                      : wide;
            }
          }
          result = toStored(b, loc, result, to.getElementType());
          Type element = storage.getElementType();
          if (result.getType() != element)
            result = toWidth < element.getIntOrFloatBitWidth()
                         ? arith::ExtUIOp::create(b, loc, element, result)
                               .getResult()
                         : arith::BitcastOp::create(b, loc, element, result)
                               .getResult();
          return SmallVector<Value>{result};
        });
    if (failed(generic))
      return failure();
    replaceWithStored(rewriter, op, generic->getResults());
    return success();
  }
};

/// Pattern: map(a, b) { scalar code } -> linalg.generic { the code }
struct MapToLinalg : OpRewritePattern<stablehlo::MapOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::MapOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    RankedTensorType storage = getStorageType(type);
    if (!storage)
      return failure();
    SmallVector<Input> inputs;
    for (Value operand : op->getOperands())
      inputs.push_back({stored(rewriter, operand),
                        rewriter.getMultiDimIdentityMap(type.getRank())});
    auto generic = makeParallel(
        rewriter, op.getLoc(), storage.getShape(), storage.getElementType(),
        inputs, [&](OpBuilder &b, Location, ValueRange elements) {
          return emitScalarBlock(b, op->getRegion(0).front(), elements);
        });
    if (failed(generic))
      return failure();
    replaceWithStored(rewriter, op, generic->getResults());
    return success();
  }
};

} // namespace

void whale::populateElementwisePatterns(RewritePatternSet &patterns) {
  patterns.add<ElementwiseToLinalg, BitcastConvertToLinalg, MapToLinalg>(
      patterns.getContext());
}
