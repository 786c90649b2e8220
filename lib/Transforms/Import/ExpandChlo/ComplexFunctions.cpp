//===- ComplexFunctions.cpp - Functions of complex numbers ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: inverse trigonometric and hyperbolic functions, cosh and sinh of complex
// numbers. Out: elementwise operations on their real and imaginary parts.
//
// Inverse functions after Hull, Fairgrieve and Tang ("Implementing the complex
// arcsine and arccosine functions using exception handling", 1997), in f64, and
// the hyperbolic ones by their parts. Instead of exceptions, selects avoid 0 /
// 0. Cost: for an arcsine about 50 elementwise operations, for an arctangent
// about half as many; all in f64, however narrow the numbers are.
//
//===----------------------------------------------------------------------===//

#include "Structured.h"

#include "Expr.h"
#include "whale/Dialect/CHLO/IR/CHLOOps.h"

using namespace mlir;

namespace whale::elementwise {

namespace {

struct Parts {
  Expr re, im;
};

/// `magnitude`, which is not negative, with the sign of `sign`, also of zeros.
Expr withSign(Expr magnitude, Expr sign) {
  // atan2(-0, -1) is -pi.
  Expr isNegative = atan2(sign, sign.like(-1)) < 0.0;
  return select(isNegative, -magnitude, magnitude);
}

/// What arcsine and arccosine share, for |re| and |im|.
struct Arc {
  Expr x, y;
  /// The sine's counterpart on the real axis, sqrt(1 - b^2) scaled as b = x.
  Expr cosine;
  /// The imaginary part of either.
  Expr height;
};

Arc arc(Parts z) {
  Expr x = abs(z.re), y = abs(z.im);
  Expr r = sqrt((x + 1.0) * (x + 1.0) + y * y);
  Expr s = sqrt((x - 1.0) * (x - 1.0) + y * y);
  Expr a = (r + s) * 0.5;
  // y^2 / (r + x + 1) and y^2 / (s + |x - 1|), without 0 / 0.
  Expr fromRight = y * y / (r + x + 1.0);
  Expr below = s + abs(x - 1.0);
  Expr fromLeft = select(below.equals(0.0), 0.0, y * y / below);
  Expr inside = x < x.like(1);
  Expr excess = (fromRight + select(inside, fromLeft, below)) * 0.5;
  Expr height = log1p(excess + sqrt(excess * (a + 1.0)));
  Expr rest = (fromRight + select(inside, below, fromLeft)) * 0.5;
  return {x, y, sqrt((a + x) * rest), height};
}

Parts complexAsin(Parts z) {
  Arc common = arc(z);
  return {withSign(atan2(common.x, common.cosine), z.re),
          withSign(common.height, z.im)};
}

Parts complexAcos(Parts z) {
  Arc common = arc(z);
  Expr isNegative = atan2(z.re, z.re.like(-1)) < 0.0;
  Expr turned = select(isNegative, -common.x, common.x);
  return {atan2(common.cosine, turned), -withSign(common.height, z.im)};
}

/// asinh(z) = -i asin(i z)
Parts complexAsinh(Parts z) {
  Parts turned = complexAsin({-z.im, z.re});
  return {turned.im, -turned.re};
}

Parts complexAcosh(Parts z) {
  Parts angle = complexAcos(z);
  return {abs(angle.im), withSign(angle.re, z.im)};
}

Parts complexAtanh(Parts z) {
  Expr x = abs(z.re), left = 1.0 - x;
  Expr below = left * left + z.im * z.im;
  Expr re = log1p(x * 4.0 / below) * 0.25;
  Expr im = atan2(z.im * 2.0, left * (1.0 + x) - z.im * z.im) * 0.5;
  return {withSign(re, z.re), im};
}

/// atan(z) = -i atanh(i z)
Parts complexAtan(Parts z) {
  Parts turned = complexAtanh({-z.im, z.re});
  return {turned.im, -turned.re};
}

Parts complexSinh(Parts z) {
  return {sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im)};
}

Parts complexCosh(Parts z) {
  return {cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im)};
}

// Pattern: chlo.f(z) -> complex(f.re(real(z), imag(z)), f.im(...)), in f64
template <typename Op>
struct ExpandComplex : OpRewritePattern<Op> {
  using Formula = Parts (*)(Parts);
  ExpandComplex(MLIRContext *context, Formula formula)
      : OpRewritePattern<Op>(context), formula(formula) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getOperand().getType());
    auto element =
        type ? dyn_cast<ComplexType>(type.getElementType()) : nullptr;
    if (!element)
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type part = type.clone(element.getElementType());
    Type wide = type.clone(b.getF64Type());
    auto widen = [&](Value value) -> Expr {
      if (part == wide)
        return {b, value};
      return {b, stablehlo::ConvertOp::create(b, wide, value)};
    };
    auto narrow = [&](Expr expr) -> Value {
      if (part == wide)
        return expr.getValue();
      return stablehlo::ConvertOp::create(b, part, expr.getValue());
    };
    Parts z = {widen(stablehlo::RealOp::create(b, part, op.getOperand())),
               widen(stablehlo::ImagOp::create(b, part, op.getOperand()))};
    Parts result = formula(z);
    Value re = narrow(result.re), im = narrow(result.im);
    rewriter.replaceOpWithNewOp<stablehlo::ComplexOp>(op, type, re, im);
    return success();
  }
  Formula formula;
};

} // namespace

void populateComplexPatterns(RewritePatternSet &patterns) {
  namespace chlo = mlir::chlo;
  MLIRContext *context = patterns.getContext();
  patterns.add<ExpandComplex<chlo::AcosOp>>(context, complexAcos);
  patterns.add<ExpandComplex<chlo::AcoshOp>>(context, complexAcosh);
  patterns.add<ExpandComplex<chlo::AsinOp>>(context, complexAsin);
  patterns.add<ExpandComplex<chlo::AsinhOp>>(context, complexAsinh);
  patterns.add<ExpandComplex<chlo::AtanOp>>(context, complexAtan);
  patterns.add<ExpandComplex<chlo::AtanhOp>>(context, complexAtanh);
  patterns.add<ExpandComplex<chlo::CoshOp>>(context, complexCosh);
  patterns.add<ExpandComplex<chlo::SinhOp>>(context, complexSinh);
}

} // namespace whale::elementwise
