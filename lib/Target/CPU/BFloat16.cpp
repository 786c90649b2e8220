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
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

/// The constant's bits, as integers of the same shape.
static TypedAttr getBits(TypedAttr value, Type integers) {
  if (auto scalar = dyn_cast<FloatAttr>(value))
    return IntegerAttr::get(integers, scalar.getValue().bitcastToAPInt());
  return cast<DenseElementsAttr>(value).bitcast(getElementTypeOrSelf(integers));
}

namespace {

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

void whale::expandBFloat16(Operation *root) {
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
