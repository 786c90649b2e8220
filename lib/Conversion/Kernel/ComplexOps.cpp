//===- ComplexOps.cpp - Complex arithmetic on scalars ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an elementwise operation on complex numbers, and its operands as scalars.
// Out: its result, by arithmetic on real and imaginary parts. Whatever is more
// than an addition or a product is computed in f64, in which no intermediate
// value of an f32 pair overflows or cancels; what is special is selected,
// without a branch. Cost: a constant number of operations; a power has most
// functions (roots, logarithms and the like) among them, eight.
//
//===----------------------------------------------------------------------===//

#include "Kernel/ScalarOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace whale;

namespace {

/// A real number in scalar code.
struct Real {
  OpBuilder *b;
  Location loc;
  Value value;

  Real like(double number) const {
    return with(arith::ConstantOp::create(
        *b, loc, b->getFloatAttr(value.getType(), number)));
  }
  Real with(Value other) const { return {b, loc, other}; }
  template <typename Op>
  Real unary() const {
    return with(Op::create(*b, loc, value));
  }
  template <typename Op>
  Real binary(Real other) const {
    return with(Op::create(*b, loc, value, other.value));
  }
  Value compare(arith::CmpFPredicate predicate, Real other) const {
    return arith::CmpFOp::create(*b, loc, predicate, value, other.value);
  }
  Value less(double number) const {
    return compare(arith::CmpFPredicate::OLT, like(number));
  }
  Value is(double number) const {
    return compare(arith::CmpFPredicate::OEQ, like(number));
  }
};

Real operator+(Real x, Real y) { return x.binary<arith::AddFOp>(y); }
Real operator-(Real x, Real y) { return x.binary<arith::SubFOp>(y); }
Real operator*(Real x, Real y) { return x.binary<arith::MulFOp>(y); }
Real operator/(Real x, Real y) { return x.binary<arith::DivFOp>(y); }
Real operator-(Real x) { return x.unary<arith::NegFOp>(); }
Real operator+(Real x, double y) { return x + x.like(y); }
Real operator-(Real x, double y) { return x - x.like(y); }
Real operator*(Real x, double y) { return x * x.like(y); }
Real abs(Real x) { return x.unary<math::AbsFOp>(); }
Real sqrt(Real x) { return x.unary<math::SqrtOp>(); }
Real exp(Real x) { return x.unary<math::ExpOp>(); }
Real expm1(Real x) { return x.unary<math::ExpM1Op>(); }
Real log(Real x) { return x.unary<math::LogOp>(); }
Real log1p(Real x) { return x.unary<math::Log1pOp>(); }
Real sin(Real x) { return x.unary<math::SinOp>(); }
Real cos(Real x) { return x.unary<math::CosOp>(); }
Real sinh(Real x) { return x.unary<math::SinhOp>(); }
Real cosh(Real x) { return x.unary<math::CoshOp>(); }
Real tan(Real x) { return x.unary<math::TanOp>(); }
Real cbrt(Real x) { return x.unary<math::CbrtOp>(); }
Real pow(Real x, Real y) { return x.binary<math::PowFOp>(y); }
Real atan2(Real y, Real x) { return y.binary<math::Atan2Op>(x); }
Real copysign(Real x, Real y) { return x.binary<math::CopySignOp>(y); }
Real max(Real x, Real y) { return x.binary<arith::MaximumFOp>(y); }
Real min(Real x, Real y) { return x.binary<arith::MinimumFOp>(y); }
Real select(Value condition, Real yes, Real no) {
  return yes.with(
      arith::SelectOp::create(*yes.b, yes.loc, condition, yes.value, no.value));
}
Value isInf(Real x) { return abs(x).is(INFINITY); }
Value isNaN(Real x) { return x.compare(arith::CmpFPredicate::UNO, x); }
Value either(Real x, Value a, Value b) {
  return arith::OrIOp::create(*x.b, x.loc, a, b);
}
Value both(Real x, Value a, Value b) {
  return arith::AndIOp::create(*x.b, x.loc, a, b);
}

struct Complex {
  Real re, im;
};

Complex operator+(Complex x, Complex y) { return {x.re + y.re, x.im + y.im}; }
Complex operator-(Complex x, Complex y) { return {x.re - y.re, x.im - y.im}; }
Complex operator*(Complex x, Complex y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
Complex operator-(Complex x) { return {-x.re, -x.im}; }
Complex select(Value condition, Complex yes, Complex no) {
  return {select(condition, yes.re, no.re), select(condition, yes.im, no.im)};
}
Value isZero(Complex z) { return both(z.re, z.re.is(0), z.im.is(0)); }
Value isInf(Complex z) { return either(z.re, isInf(z.re), isInf(z.im)); }

/// The direction of an infinite number: one for its infinite parts.
Complex direction(Complex z) {
  auto part = [](Real x) {
    return copysign(select(isInf(x), x.like(1), x.like(0)), x);
  };
  return {part(z.re), part(z.im)};
}

/// The magnitude, scaled by the larger part so that no square overflows.
Real abs(Complex z) {
  Real x = abs(z.re), y = abs(z.im);
  Real large = max(x, y), small = min(x, y);
  Real ratio = small / large;
  Real result = large * sqrt(ratio * ratio + 1.0);
  result = select(large.is(0), large, result);
  return select(isInf(z), x.like(INFINITY), result);
}

/// The same of a pair of f32 in f64, in which no square overflows.
Real absOfF32(Complex z) {
  Real result = sqrt(z.re * z.re + z.im * z.im);
  return select(isInf(z), z.re.like(INFINITY), result);
}

/// By Smith's method: the larger part of the divisor divides first. What is
/// infinite or divided by zero is as in annex G of the C standard.
Complex operator/(Complex x, Complex y) {
  Value isInfinite = isInf(y);
  Complex d = select(isInfinite, direction(y), y);
  Value wide = abs(d.re).compare(arith::CmpFPredicate::OGE, abs(d.im));
  Real large = select(wide, d.re, d.im), small = select(wide, d.im, d.re);
  Real ratio = small / large;
  Real scale = large + small * ratio;
  Real re = select(wide, x.re + x.im * ratio, x.re * ratio + x.im) / scale;
  Real im = select(wide, x.im - x.re * ratio, x.im * ratio - x.re) / scale;
  Value lost = both(re, both(re, isNaN(re), isNaN(im)), isInf(x));
  Complex n = direction(x);
  Complex usual = select(lost,
                         {(n.re * d.re + n.im * d.im) * INFINITY,
                          (n.im * d.re - n.re * d.im) * INFINITY},
                         {re, im});
  Real infinity = copysign(re.like(INFINITY), y.re);
  usual = select(isZero(y), {x.re * infinity, x.im * infinity}, usual);
  return select(isInfinite, {re * 0.0, im * 0.0}, usual);
}

Complex exp(Complex z) {
  // In two steps: the second can undo what the first overflows.
  Real half = exp(z.re * 0.5);
  // Zero times infinity is no number, but the parts are.
  Value real = z.im.is(0), nothing = z.re.is(-INFINITY);
  Real re = half * select(real, half, half * cos(z.im));
  Real im = select(real, z.im, half * (half * sin(z.im)));
  Real zero = z.re.like(0);
  return select(nothing, {zero, copysign(zero, z.im)}, {re, im});
}

Complex expm1(Complex z) {
  Real half = sin(z.im * 0.5);
  Real re = expm1(z.re) * cos(z.im) - half * half * 2.0;
  Real im = exp(z.re) * sin(z.im);
  return select(z.im.is(0), {expm1(z.re), z.im}, {re, im});
}

Complex log(Complex z) {
  // log |z| = log(larger) + log(1 + ratio^2) / 2.
  Real x = abs(z.re), y = abs(z.im);
  Real large = max(x, y), small = min(x, y), ratio = small / large;
  Value special = either(large, large.is(0), isInf(large));
  Real near = log1p((large - 1.0) * (large + 1.0) + small * small) * 0.5;
  Real far = log(large) + log1p(ratio * ratio) * 0.5;
  Value isNear = both(large, large.less(1.5),
                      large.compare(arith::CmpFPredicate::OGT, x.like(0.5)));
  Real size = select(special, log(large), select(isNear, near, far));
  size = select(isInf(z), x.like(INFINITY), size);
  return {size, atan2(z.im, z.re)};
}

Complex log1p(Complex z) {
  Complex shifted = {z.re + 1.0, z.im};
  Real square = z.re * (z.re + 2.0) + z.im * z.im;
  Value small = both(z.re, abs(z.re).less(1), abs(z.im).less(1));
  Complex usual = log(shifted);
  return {select(small, log1p(square) * 0.5, usual.re), usual.im};
}

Complex sqrt(Complex z) {
  Real size = abs(z), x = abs(z.re);
  Real root = sqrt((size + x) * 0.5);
  Real other = z.im / (root * 2.0);
  Value right = z.re.compare(arith::CmpFPredicate::OGE, z.re.like(0));
  Complex usual = select(right, Complex{root, other},
                         Complex{abs(other), copysign(root, z.im)});
  Real zero = z.re.like(0);
  // Zero, or NaN if that is what it is.
  Real small = z.im * 0.0;
  Complex infinite = select(right, Complex{z.re, small},
                            Complex{abs(small), copysign(abs(z.re), z.im)});
  usual = select(isInf(z.re), infinite, usual);
  usual = select(isInf(z.im), {abs(z.im), z.im}, usual);
  return select(isZero(z), {zero, z.im}, usual);
}

Complex rsqrt(Complex z) {
  Complex root = sqrt(z);
  Real size = abs(z);
  Complex usual = {root.re / size, -root.im / size};
  Real zero = z.re.like(0);
  usual = select(isInf(size), {zero, zero}, usual);
  return select(isZero(z), {z.re.like(INFINITY), z.re.like(NAN)}, usual);
}

Complex polar(Real size, Real angle) {
  return {size * cos(angle), size * sin(angle)};
}

Complex cbrt(Complex z) {
  Real third = z.re.like(1.0 / 3.0);
  return polar(cbrt(abs(z)), atan2(z.im, z.re) * third);
}

Complex sin(Complex z) {
  return {sin(z.re) * cosh(z.im), cos(z.re) * sinh(z.im)};
}

Complex cos(Complex z) {
  return {cos(z.re) * cosh(z.im), -(sin(z.re) * sinh(z.im))};
}

/// By Kahan's formula; far from the imaginary axis it is one of two limits.
Complex tanh(Complex z) {
  Real t = tan(z.im), s = sinh(z.re);
  Real beta = t * t + 1.0, rho = sqrt(s * s + 1.0);
  Real below = beta * s * s + 1.0;
  Complex usual = {beta * rho * s / below, select(z.im.is(0), z.im, t / below)};
  Value far = abs(z.re).compare(arith::CmpFPredicate::OGT, z.re.like(30));
  Real fade = sin(z.im) * cos(z.im) * exp(abs(z.re) * -2.0) * 4.0;
  // The angle of an infinity means nothing.
  fade = select(isInf(z.re), copysign(z.re.like(0), z.im), fade);
  // No number if the angle is none.
  Real one = copysign(z.re.like(1) + fade * 0.0, z.re);
  return select(far, {one, fade}, usual);
}

Complex tan(Complex z) {
  Complex turned = tanh({-z.im, z.re});
  return {turned.im, -turned.re};
}

Complex logistic(Complex z) {
  Complex one = {z.re.like(1), z.re.like(0)};
  return one / (one + exp(-z));
}

Complex power(Complex base, Complex exponent) {
  Real size = abs(base), angle = atan2(base.im, base.re);
  Real c = exponent.re, d = exponent.im;
  Complex usual =
      polar(pow(size, c) * exp(-(d * angle)), c * angle + d * log(size));
  Real nought = c.like(0), one = c.like(1);
  // Powers of nothing and of the real infinity.
  Value rises = c.compare(arith::CmpFPredicate::OGT, nought);
  usual = select(both(c, rises, isZero(base)), {nought, nought}, usual);
  Value isLarge = both(c, base.re.is(INFINITY), base.im.is(0));
  usual = select(both(c, isLarge, d.is(0)), {pow(size, c), nought}, usual);
  return select(isZero(exponent), {one, nought}, usual);
}

Complex sign(Complex z) {
  Real size = abs(z);
  return select(isZero(z), z, Complex{z.re / size, z.im / size});
}

/// The angle of x + iy, also where both are complex: -i log of the direction.
Complex atan2(Complex y, Complex x) {
  Complex turned = {-y.im, y.re};
  Complex direction = log((x + turned) / sqrt(x * x + y * y));
  return {direction.im, -direction.re};
}

/// Splits operands and joins results.
struct Emitter {
  OpBuilder &b;
  Location loc;

  Complex split(Value value, bool widen) {
    auto type = dyn_cast<ComplexType>(value.getType());
    Type part = type ? type.getElementType() : value.getType();
    Real re{&b, loc, value}, im{&b, loc, {}};
    if (type) {
      re.value = complex::ReOp::create(b, loc, part, value);
      im.value = complex::ImOp::create(b, loc, part, value);
    } else {
      im = re.like(0);
    }
    if (widen && part.isF32())
      for (Real *real : {&re, &im})
        real->value =
            arith::ExtFOp::create(b, loc, b.getF64Type(), real->value);
    return {re, im};
  }

  Value narrow(Real real, Type type) {
    if (real.value.getType() == type)
      return real.value;
    return arith::TruncFOp::create(b, loc, type, real.value);
  }

  Value join(Complex z, ComplexType type) {
    Type part = type.getElementType();
    return complex::CreateOp::create(b, loc, type, narrow(z.re, part),
                                     narrow(z.im, part));
  }
};

} // namespace

FailureOr<Value> whale::emitComplexOp(OpBuilder &b, Operation *op,
                                      ValueRange operands) {
  Emitter emitter{b, op->getLoc()};
  Type result = getElementTypeOrSelf(op->getResult(0).getType());
  if (isa<stablehlo::SelectOp>(op)) {
    // Of the parts: loops that select pairs do not become vectors.
    Complex yes = emitter.split(operands[1], /*widen=*/false);
    Complex no = emitter.split(operands[2], /*widen=*/false);
    return emitter.join(select(operands[0], yes, no),
                        cast<ComplexType>(result));
  }
  if (isa<stablehlo::BitcastConvertOp>(op)) {
    if (operands[0].getType() != result)
      return failure();
    return operands[0];
  }
  if (isa<stablehlo::ComplexOp>(op))
    return complex::CreateOp::create(b, op->getLoc(), result, operands[0],
                                     operands[1])
        .getResult();
  // The parts of a real number of any type.
  if (!isa<ComplexType>(operands[0].getType())) {
    if (isa<stablehlo::RealOp>(op))
      return operands[0];
    if (isa<stablehlo::ImagOp>(op))
      return makeConstant(b, op->getLoc(), b.getFloatAttr(result, 0.0), result);
    return failure();
  }

  bool simple = isa<stablehlo::AddOp, stablehlo::SubtractOp, stablehlo::MulOp,
                    stablehlo::NegOp, stablehlo::RealOp, stablehlo::ImagOp,
                    stablehlo::CompareOp>(op);
  SmallVector<Complex> z;
  for (Value operand : operands)
    z.push_back(emitter.split(operand, !simple));
  if (isa<stablehlo::RealOp>(op))
    return z[0].re.value;
  if (isa<stablehlo::ImagOp>(op))
    return z[0].im.value;
  if (isa<stablehlo::AbsOp>(op))
    return emitter.narrow(result.isF32() ? absOfF32(z[0]) : abs(z[0]), result);
  if (auto compare = dyn_cast<stablehlo::CompareOp>(op)) {
    using Direction = stablehlo::ComparisonDirection;
    bool equal = compare.getComparisonDirection() == Direction::EQ;
    if (!equal && compare.getComparisonDirection() != Direction::NE)
      return failure();
    auto predicate =
        equal ? arith::CmpFPredicate::OEQ : arith::CmpFPredicate::UNE;
    Value re = z[0].re.compare(predicate, z[1].re);
    Value im = z[0].im.compare(predicate, z[1].im);
    return equal ? both(z[0].re, re, im) : either(z[0].re, re, im);
  }
  using Result = std::optional<Complex>;
  auto complexType = dyn_cast<ComplexType>(result);
  if (!complexType)
    return failure();
  auto value = llvm::TypeSwitch<Operation *, Result>(op)
                   .Case([&](stablehlo::AddOp) { return z[0] + z[1]; })
                   .Case([&](stablehlo::Atan2Op) { return atan2(z[0], z[1]); })
                   .Case([&](stablehlo::CbrtOp) { return cbrt(z[0]); })
                   .Case([&](stablehlo::CosineOp) { return cos(z[0]); })
                   .Case([&](stablehlo::DivOp) { return z[0] / z[1]; })
                   .Case([&](stablehlo::ExpOp) { return exp(z[0]); })
                   .Case([&](stablehlo::Expm1Op) { return expm1(z[0]); })
                   .Case([&](stablehlo::Log1pOp) { return log1p(z[0]); })
                   .Case([&](stablehlo::LogOp) { return log(z[0]); })
                   .Case([&](stablehlo::LogisticOp) { return logistic(z[0]); })
                   .Case([&](stablehlo::MulOp) { return z[0] * z[1]; })
                   .Case([&](stablehlo::NegOp) { return -z[0]; })
                   .Case([&](stablehlo::PowOp) { return power(z[0], z[1]); })
                   .Case([&](stablehlo::RsqrtOp) { return rsqrt(z[0]); })
                   .Case([&](stablehlo::SignOp) { return sign(z[0]); })
                   .Case([&](stablehlo::SineOp) { return sin(z[0]); })
                   .Case([&](stablehlo::SqrtOp) { return sqrt(z[0]); })
                   .Case([&](stablehlo::SubtractOp) { return z[0] - z[1]; })
                   .Case([&](stablehlo::TanOp) { return tan(z[0]); })
                   .Case([&](stablehlo::TanhOp) { return tanh(z[0]); })
                   .Default([](Operation *) { return Result(); });
  if (!value)
    return failure();
  return emitter.join(*value, complexType);
}
