//===- Expr.cpp - Elementwise arithmetic as C++ expressions ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Expr.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace whale::elementwise {

Expr Expr::like(double number) const {
  auto type = cast<FloatType>(getType().getElementType());
  APFloat rounded(number);
  bool losesInfo;
  rounded.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
  return {*builder, stablehlo::ConstantOp::create(
                        *builder, DenseElementsAttr::get(getType(), rounded))};
}

double Expr::largest() const {
  auto type = cast<FloatType>(getType().getElementType());
  return APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
}

Expr Expr::compare(stablehlo::ComparisonDirection direction, Expr other) const {
  auto kind = isa<FloatType>(getType().getElementType())
                  ? stablehlo::ComparisonType::FLOAT
                  : stablehlo::ComparisonType::SIGNED;
  Type type = getType().clone(builder->getI1Type());
  return {*builder,
          stablehlo::CompareOp::create(
              *builder, type, value, other.value,
              stablehlo::ComparisonDirectionAttr::get(builder->getContext(),
                                                      direction),
              stablehlo::ComparisonTypeAttr::get(builder->getContext(), kind))};
}

Expr select(Expr condition, Expr onTrue, Expr onFalse) {
  auto &builder = condition.getBuilder();
  return {builder, stablehlo::SelectOp::create(
                       builder, onTrue.getType(), condition.getValue(),
                       onTrue.getValue(), onFalse.getValue())};
}

Expr clamp(double low, Expr x, double high) {
  auto &builder = x.getBuilder();
  return {builder, stablehlo::ClampOp::create(
                       builder, x.getType(), x.like(low).getValue(),
                       x.getValue(), x.like(high).getValue())};
}

Expr polynomial(Expr x, ArrayRef<double> coefficients) {
  Expr sum = x.like(coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = sum * x + coefficient;
  return sum;
}

Expr chebyshev(Expr x, ArrayRef<double> coefficients) {
  Expr b0 = x.like(0.0), b1 = b0, b2 = b0;
  for (double coefficient : coefficients) {
    b2 = b1;
    b1 = b0;
    b0 = x * b1 - b2 + coefficient;
  }
  return (b0 - b2) * 0.5;
}

} // namespace whale::elementwise
