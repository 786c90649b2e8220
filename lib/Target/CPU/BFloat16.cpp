//===- BFloat16.cpp - bf16 on processors without it -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Target/CPU/BFloat16.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

/// The constant's bits, as integers of the same shape.
static TypedAttr getBits(TypedAttr value, Type integers) {
  if (auto scalar = dyn_cast<FloatAttr>(value))
    return IntegerAttr::get(integers, scalar.getValue().bitcastToAPInt());
  return cast<DenseElementsAttr>(value).bitcast(getElementTypeOrSelf(integers));
}

/// Whether a value of f32 that is no number has zeros in the 16 bits that bf16
/// lacks: of what instructions compute from such operands, as the processor's
/// own NaNs do and those that it passes on keep their bits.
static bool hasShortNans(Value value, int depth = 3) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (auto wider = dyn_cast<arith::ExtFOp>(op))
    return getElementTypeOrSelf(wider.getIn()).isBF16();
  FloatAttr constant;
  DenseFPElementsAttr constants;
  if (matchPattern(op, m_Constant(&constants)) && constants.isSplat())
    return !constants.getSplatValue<APFloat>().isNaN();
  if (matchPattern(op, m_Constant(&constant)))
    return !constant.getValue().isNaN();
  if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
           arith::NegFOp>(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return hasShortNans(operand, depth - 1);
  });
}

namespace {

/// Pattern: rounds an f32 to bf16 in five integer instructions where it needn't
/// ask whether the value is a number: adding to the bits of a short NaN half of
/// the last place carries into none of those that stay.
struct RoundShortNans : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isBF16() ||
        !getElementTypeOrSelf(op.getIn()).isF32() || !hasShortNans(op.getIn()))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto like = [&](Type element) -> Type {
      auto shaped = dyn_cast<ShapedType>(op.getType());
      return shaped ? shaped.clone(element) : element;
    };
    Type i32 = like(b.getI32Type());
    auto makeConstant = [&](int64_t value) -> Value {
      TypedAttr attribute = b.getI32IntegerAttr(value);
      if (auto shaped = dyn_cast<ShapedType>(i32))
        attribute = DenseElementsAttr::get(shaped, attribute);
      return arith::ConstantOp::create(b, attribute);
    };
    Value bits = arith::BitcastOp::create(b, i32, op.getIn());
    Value sixteen = makeConstant(16);
    Value isOdd = arith::AndIOp::create(
        b, arith::ShRUIOp::create(b, bits, sixteen), makeConstant(1));
    Value rounded = arith::AddIOp::create(
        b, arith::AddIOp::create(b, bits, makeConstant(0x7fff)), isOdd);
    Value upper = arith::TruncIOp::create(
        b, like(b.getI16Type()), arith::ShRUIOp::create(b, rounded, sixteen));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), upper);
    return success();
  }
};

/// Pattern: an integer becomes bf16 by way of f32. MLIR's own folds make the
/// one conversion of the two.
template <typename ConvertOp>
struct ConvertThroughF32 : OpRewritePattern<ConvertOp> {
  using OpRewritePattern<ConvertOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(ConvertOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isBF16())
      return failure();
    Type type = rewriter.getF32Type();
    if (auto shaped = dyn_cast<ShapedType>(op.getType()))
      type = shaped.clone(type);
    auto wide = ConvertOp::create(rewriter, op.getLoc(), type, op.getIn());
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), wide);
    return success();
  }
};

} // namespace

void whale::expandBFloat16(Operation *root, bool makesShortNans) {
  // Before others take from it what operands were.
  if (makesShortNans) {
    RewritePatternSet patterns(root->getContext());
    patterns.add<RoundShortNans>(root->getContext());
    walkAndApplyPatterns(root, std::move(patterns));
  }
  {
    RewritePatternSet patterns(root->getContext());
    patterns.add<ConvertThroughF32<arith::SIToFPOp>,
                 ConvertThroughF32<arith::UIToFPOp>>(root->getContext());
    walkAndApplyPatterns(root, std::move(patterns));
  }
  RewritePatternSet patterns(root->getContext());
  arith::populateExpandBFloat16Patterns(patterns);
  walkAndApplyPatterns(root, std::move(patterns));
  root->walk([](arith::ConstantOp constant) {
    Type type = constant.getType();
    if (!getElementTypeOrSelf(type).isBF16())
      return;
    OpBuilder b(constant);
    Type integers = b.getI16Type();
    if (auto shaped = dyn_cast<ShapedType>(type))
      integers = shaped.clone(integers);
    auto bits = arith::ConstantOp::create(
        b, constant.getLoc(), getBits(constant.getValue(), integers));
    auto floats = arith::BitcastOp::create(b, constant.getLoc(), type, bits);
    constant.replaceAllUsesWith(floats.getResult());
    constant.erase();
  });
}

void whale::holdBFloat16AsBits(LLVMTypeConverter &converter) {
  converter.addConversion([](BFloat16Type type) -> Type {
    return IntegerType::get(type.getContext(), 16);
  });
  converter.addConversion([](VectorType type) -> std::optional<Type> {
    if (!type.getElementType().isBF16() || type.getRank() != 1)
      return std::nullopt;
    return type.clone(IntegerType::get(type.getContext(), 16));
  });
}
