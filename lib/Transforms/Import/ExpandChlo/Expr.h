//===- Expr.h - Elementwise arithmetic as C++ expressions -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lets an expansion be written as the formula that it is: `(x + 1.0) / y`
// creates the StableHLO operations, numbers become splat constants of the shape
// and type of the other operand.
//
// An Expr is a value and the builder by which further operations are created,
// at once, where the builder inserts. Cost: an operation for each operator or
// function, and a constant for each number; nothing is folded, and what is
// written twice is computed twice.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_EXPANDCHLO_EXPR_H
#define WHALE_LIB_TRANSFORMS_IMPORT_EXPANDCHLO_EXPR_H

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/ArrayRef.h"

#include <limits>

namespace whale::elementwise {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class Expr {
public:
  Expr(mlir::ImplicitLocOpBuilder &builder, mlir::Value value)
      : builder(&builder), value(value) {}

  mlir::Value getValue() const { return value; }
  mlir::ImplicitLocOpBuilder &getBuilder() const { return *builder; }
  mlir::RankedTensorType getType() const {
    return mlir::cast<mlir::RankedTensorType>(value.getType());
  }
  bool isF64() const { return getType().getElementType().isF64(); }

  /// A splat of this expression's type.
  Expr like(double number) const;
  /// The largest finite number of this expression's type.
  double largest() const;

  template <typename Op>
  Expr unary() const {
    return {*builder, Op::create(*builder, value.getType(), value)};
  }
  template <typename Op>
  Expr binary(Expr other) const {
    return {*builder,
            Op::create(*builder, value.getType(), value, other.value)};
  }
  Expr compare(mlir::stablehlo::ComparisonDirection direction,
               Expr other) const;
  Expr compare(mlir::stablehlo::ComparisonDirection direction,
               double other) const {
    return compare(direction, like(other));
  }

  Expr operator-() const { return unary<mlir::stablehlo::NegOp>(); }
  Expr operator+(Expr o) const { return binary<mlir::stablehlo::AddOp>(o); }
  Expr operator-(Expr o) const {
    return binary<mlir::stablehlo::SubtractOp>(o);
  }
  Expr operator*(Expr o) const { return binary<mlir::stablehlo::MulOp>(o); }
  Expr operator/(Expr o) const { return binary<mlir::stablehlo::DivOp>(o); }
  Expr operator+(double o) const { return *this + like(o); }
  Expr operator-(double o) const { return *this - like(o); }
  Expr operator*(double o) const { return *this * like(o); }
  Expr operator/(double o) const { return *this / like(o); }
  Expr operator&(Expr o) const { return binary<mlir::stablehlo::AndOp>(o); }
  Expr operator|(Expr o) const { return binary<mlir::stablehlo::OrOp>(o); }

  Expr operator<(Expr o) const {
    return compare(mlir::stablehlo::ComparisonDirection::LT, o);
  }
  Expr operator<(double o) const { return *this < like(o); }
  Expr operator<=(double o) const {
    return compare(mlir::stablehlo::ComparisonDirection::LE, o);
  }
  Expr operator>(double o) const {
    return compare(mlir::stablehlo::ComparisonDirection::GT, o);
  }
  Expr operator>=(double o) const {
    return compare(mlir::stablehlo::ComparisonDirection::GE, o);
  }
  Expr equals(Expr o) const {
    return compare(mlir::stablehlo::ComparisonDirection::EQ, o);
  }
  Expr equals(double o) const { return equals(like(o)); }
  Expr differs(Expr o) const {
    return compare(mlir::stablehlo::ComparisonDirection::NE, o);
  }

private:
  mlir::ImplicitLocOpBuilder *builder;
  mlir::Value value;
};

inline Expr operator+(double a, Expr b) { return b.like(a) + b; }
inline Expr operator-(double a, Expr b) { return b.like(a) - b; }
inline Expr operator*(double a, Expr b) { return b.like(a) * b; }
inline Expr operator/(double a, Expr b) { return b.like(a) / b; }

inline Expr abs(Expr x) { return x.unary<mlir::stablehlo::AbsOp>(); }
inline Expr sqrt(Expr x) { return x.unary<mlir::stablehlo::SqrtOp>(); }
inline Expr exp(Expr x) { return x.unary<mlir::stablehlo::ExpOp>(); }
inline Expr expm1(Expr x) { return x.unary<mlir::stablehlo::Expm1Op>(); }
inline Expr log(Expr x) { return x.unary<mlir::stablehlo::LogOp>(); }
inline Expr log1p(Expr x) { return x.unary<mlir::stablehlo::Log1pOp>(); }
inline Expr sin(Expr x) { return x.unary<mlir::stablehlo::SineOp>(); }
inline Expr cos(Expr x) { return x.unary<mlir::stablehlo::CosineOp>(); }
inline Expr floor(Expr x) { return x.unary<mlir::stablehlo::FloorOp>(); }
inline Expr sign(Expr x) { return x.unary<mlir::stablehlo::SignOp>(); }
inline Expr atan2(Expr y, Expr x) {
  return y.binary<mlir::stablehlo::Atan2Op>(x);
}
inline Expr pow(Expr x, Expr y) { return x.binary<mlir::stablehlo::PowOp>(y); }
inline Expr rem(Expr x, Expr y) { return x.binary<mlir::stablehlo::RemOp>(y); }
Expr select(Expr condition, Expr onTrue, Expr onFalse);
inline Expr select(Expr condition, double onTrue, Expr onFalse) {
  return select(condition, onFalse.like(onTrue), onFalse);
}
Expr clamp(double low, Expr x, double high);

/// The polynomial with `coefficients`, highest power first, at `x`.
Expr polynomial(Expr x, llvm::ArrayRef<double> coefficients);

/// The Chebyshev series with `coefficients`, highest order first, at `x`
/// in [-2, 2].
Expr chebyshev(Expr x, llvm::ArrayRef<double> coefficients);

// The functions of the dialect on f32 and f64, after XLA's own expansions.
Expr erf(Expr x);
Expr erfc(Expr x);
Expr erfInv(Expr x);
Expr lgamma(Expr x);
Expr digamma(Expr x);
Expr zeta(Expr x, Expr q);
Expr polygamma(Expr n, Expr x);
Expr besselI1e(Expr x);
Expr sinh(Expr x);
Expr cosh(Expr x);
Expr asin(Expr x);
Expr acos(Expr x);
Expr atan(Expr x);
Expr asinh(Expr x);
Expr acosh(Expr x);
Expr atanh(Expr x);
/// The next number after `x` towards `y`; of any float type.
Expr nextAfter(Expr x, Expr y);

} // namespace whale::elementwise

#endif // WHALE_LIB_TRANSFORMS_IMPORT_EXPANDCHLO_EXPR_H
