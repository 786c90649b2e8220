//===- ExpandChlo.cpp - chlo to StableHLO ---------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module with operations of chlo, and custom calls that mean some. Out:
// the same with StableHLO alone; an operation of chlo that is left is an error.
//
// The table of expansions: for each operation of chlo a pattern, most of them a
// formula of ExpandChlo/Expr.h that is computed in f32, or in f64 for f64. What
// replaces an operation keeps its strategy and phase. Custom calls are expanded
// first, since some of them become operations of chlo; comparators that nothing
// refers to any more are erased. Cost: a few walks over the module, and one
// more for each comparator, to find whether it has uses; the operations of each
// formula.
//
//===----------------------------------------------------------------------===//

#include "CarryAttributes.h"
#include "ExpandChlo/Expr.h"
#include "ExpandChlo/Structured.h"
#include "whale/Dialect/CHLO/IR/CHLOOps.h"
#include "whale/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace whale {
#define GEN_PASS_DEF_EXPANDCHLO
#include "whale/Transforms/Import/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;
using elementwise::Expr;

namespace {

/// Float types are computed in f32, or in f64 if they are f64.
FailureOr<Type> computeType(Type element) {
  auto type = dyn_cast<FloatType>(element);
  if (!type || type.getWidth() > 64)
    return failure();
  return type.getWidth() > 32 ? Type(type)
                              : Float32Type::get(type.getContext());
}

Expr convert(Expr x, Type element) {
  if (x.getType().getElementType() == element)
    return x;
  return {x.getBuilder(),
          stablehlo::ConvertOp::create(
              x.getBuilder(), x.getType().clone(element), x.getValue())};
}

// Pattern: chlo.f(x) -> formula(x), narrow floats in f32
template <typename Op>
struct ExpandUnary : OpRewritePattern<Op> {
  using Formula = Expr (*)(Expr);
  ExpandUnary(MLIRContext *context, Formula formula)
      : OpRewritePattern<Op>(context), formula(formula) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Expr x(builder, op.getOperand());
    Type element = x.getType().getElementType();
    FailureOr<Type> type = computeType(element);
    if (failed(type))
      return failure();
    Expr result = formula(convert(x, *type));
    rewriter.replaceOp(op, convert(result, element).getValue());
    return success();
  }
  Formula formula;
};

// Pattern: chlo.f(x, y) -> formula(x, y), narrow floats in f32
template <typename Op>
struct ExpandBinary : OpRewritePattern<Op> {
  using Formula = Expr (*)(Expr, Expr);
  ExpandBinary(MLIRContext *context, Formula formula)
      : OpRewritePattern<Op>(context), formula(formula) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Expr x(builder, op->getOperand(0)), y(builder, op->getOperand(1));
    Type element = x.getType().getElementType();
    FailureOr<Type> type = computeType(element);
    if (failed(type))
      return failure();
    Expr result = formula(convert(x, *type), convert(y, *type));
    rewriter.replaceOp(op, convert(result, element).getValue());
    return success();
  }
  Formula formula;
};

// Pattern: chlo.is_inf(x) -> formula(x) with an i1 result
template <typename Op>
struct ExpandTest : OpRewritePattern<Op> {
  using Formula = Expr (*)(Expr);
  ExpandTest(MLIRContext *context, Formula formula)
      : OpRewritePattern<Op>(context), formula(formula) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    rewriter.replaceOp(op, formula(Expr(builder, op.getOperand())).getValue());
    return success();
  }
  Formula formula;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
Expr isInf(Expr x) { return elementwise::abs(x).equals(kInfinity); }
Expr isPosInf(Expr x) { return x.equals(kInfinity); }
Expr isNegInf(Expr x) { return x.equals(-kInfinity); }

// Pattern: chlo.next_after(x, y) -> integer arithmetic on the bits
struct ExpandNextAfter : OpRewritePattern<mlir::chlo::NextAfterOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(mlir::chlo::NextAfterOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Expr x(builder, op.getX()), y(builder, op.getY());
    if (!isa<FloatType>(x.getType().getElementType()))
      return failure();
    rewriter.replaceOp(op, elementwise::nextAfter(x, y).getValue());
    return success();
  }
};

// Pattern: chlo.square(x) -> x * x
struct ExpandSquare : OpRewritePattern<mlir::chlo::SquareOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(mlir::chlo::SquareOp op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<stablehlo::MulOp>(
        op, op.getType(), op.getOperand(), op.getOperand());
    return success();
  }
};

// Pattern: chlo.tan(x) -> stablehlo.tan(x)
struct ExpandTan : OpRewritePattern<mlir::chlo::TanOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(mlir::chlo::TanOp op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<stablehlo::TanOp>(op, op.getType(),
                                                  op.getOperand());
    return success();
  }
};

// Pattern: chlo.conj(x) -> complex(real(x), -imag(x)); a real x is its own
struct ExpandConj : OpRewritePattern<mlir::chlo::ConjOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(mlir::chlo::ConjOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    auto complex = dyn_cast<ComplexType>(type.getElementType());
    if (!complex) {
      rewriter.replaceOp(op, op.getOperand());
      return success();
    }
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type part = type.clone(complex.getElementType());
    Value real = stablehlo::RealOp::create(b, part, op.getOperand());
    Value imag = stablehlo::ImagOp::create(b, part, op.getOperand());
    Value negated = stablehlo::NegOp::create(b, part, imag);
    rewriter.replaceOpWithNewOp<stablehlo::ComplexOp>(op, type, real, negated);
    return success();
  }
};

// Pattern: chlo.constant -> stablehlo.constant
struct ExpandConstant : OpRewritePattern<mlir::chlo::ConstantOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(mlir::chlo::ConstantOp op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(op, op.getValue());
    return success();
  }
};

// Pattern: chlo.constant_like(x) -> a splat of x's shape
struct ExpandConstantLike : OpRewritePattern<mlir::chlo::ConstantLikeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(mlir::chlo::ConstantLikeOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!type || !type.hasStaticShape())
      return failure();
    rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(
        op, DenseElementsAttr::get(type, Attribute(op.getValue())));
    return success();
  }
};

class ExpandChlo : public whale::impl::ExpandChloBase<ExpandChlo> {
  using ExpandChloBase::ExpandChloBase;

  void runOnOperation() override {
    namespace chlo = mlir::chlo;
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<ExpandUnary<chlo::AcosOp>>(context, elementwise::acos);
    patterns.add<ExpandUnary<chlo::AcoshOp>>(context, elementwise::acosh);
    patterns.add<ExpandUnary<chlo::AsinOp>>(context, elementwise::asin);
    patterns.add<ExpandUnary<chlo::AsinhOp>>(context, elementwise::asinh);
    patterns.add<ExpandUnary<chlo::AtanOp>>(context, elementwise::atan);
    patterns.add<ExpandUnary<chlo::AtanhOp>>(context, elementwise::atanh);
    patterns.add<ExpandUnary<chlo::BesselI1eOp>>(context,
                                                 elementwise::besselI1e);
    patterns.add<ExpandUnary<chlo::CoshOp>>(context, elementwise::cosh);
    patterns.add<ExpandUnary<chlo::DigammaOp>>(context, elementwise::digamma);
    patterns.add<ExpandUnary<chlo::ErfOp>>(context, elementwise::erf);
    patterns.add<ExpandUnary<chlo::ErfInvOp>>(context, elementwise::erfInv);
    patterns.add<ExpandUnary<chlo::ErfcOp>>(context, elementwise::erfc);
    patterns.add<ExpandUnary<chlo::LgammaOp>>(context, elementwise::lgamma);
    patterns.add<ExpandUnary<chlo::SinhOp>>(context, elementwise::sinh);
    patterns.add<ExpandBinary<chlo::PolygammaOp>>(context,
                                                  elementwise::polygamma);
    patterns.add<ExpandBinary<chlo::ZetaOp>>(context, elementwise::zeta);
    patterns.add<ExpandTest<chlo::IsInfOp>>(context, isInf);
    patterns.add<ExpandTest<chlo::IsPosInfOp>>(context, isPosInf);
    patterns.add<ExpandTest<chlo::IsNegInfOp>>(context, isNegInf);
    patterns.add<ExpandConj, ExpandConstant, ExpandConstantLike,
                 ExpandNextAfter, ExpandSquare, ExpandTan>(context);
    elementwise::populateComplexPatterns(patterns);
    elementwise::populateStructuredPatterns(patterns);
    // Functions that only custom calls name.
    llvm::SetVector<func::FuncOp> comparators;
    getOperation()->walk([&](stablehlo::CustomCallOp call) {
      for (Attribute name : call.getCalledComputations())
        if (auto function = getOperation().lookupSymbol<func::FuncOp>(
                cast<FlatSymbolRefAttr>(name)))
          comparators.insert(function);
    });
    CarryAttributes carry;
    // Some of them stand for operations of chlo.
    RewritePatternSet customCalls(context);
    elementwise::populateCustomCallPatterns(customCalls);
    walkAndApplyPatterns(getOperation(), std::move(customCalls), &carry);
    walkAndApplyPatterns(getOperation(), std::move(patterns), &carry);

    for (func::FuncOp function : comparators)
      if (SymbolTable::symbolKnownUseEmpty(function, getOperation()))
        function.erase();

    WalkResult rest = getOperation()->walk([](Operation *op) {
      if (!isa_and_nonnull<chlo::ChloDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError("has no expansion for ") << op->getOperandTypes();
      return WalkResult::interrupt();
    });
    if (rest.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
