//===- NextAfter.cpp - Neighbours of floating-point numbers ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Expr.h"

using namespace mlir;

namespace whale::elementwise {

static Expr bitcast(Expr x, Type element) {
  auto &builder = x.getBuilder();
  return {builder, stablehlo::BitcastConvertOp::create(
                       builder, x.getType().clone(element), x.getValue())};
}

/// Interpreted as sign and magnitude, neighbouring numbers have neighbouring
/// bits.
Expr nextAfter(Expr x, Expr y) {
  auto &builder = x.getBuilder();
  auto floatType = cast<FloatType>(x.getType().getElementType());
  unsigned width = floatType.getWidth();
  Type intType = builder.getIntegerType(width);
  auto splat = [&](const APInt &bits) -> Expr {
    auto type = x.getType().clone(intType);
    return {builder, stablehlo::ConstantOp::create(
                         builder, DenseElementsAttr::get(type, bits))};
  };
  Expr zero = splat(APInt::getZero(width));
  Expr one = splat(APInt(width, 1));
  Expr minusOne = splat(APInt::getAllOnes(width));
  Expr signMask = splat(APInt::getSignMask(width));
  Expr magnitudeMask = splat(APInt::getSignedMaxValue(width));

  Expr xBits = bitcast(x, intType), yBits = bitcast(y, intType);
  Expr xMagnitude = xBits & magnitudeMask, yMagnitude = yBits & magnitudeMask;
  Expr xSign = xBits & signMask, ySign = yBits & signMask;
  // From 0 the next is the smallest number with the sign of y, or y itself.
  Expr fromZero = select(yMagnitude.equals(zero), yBits, ySign | one);
  // Else the magnitude shrinks towards a smaller y or one on the other side.
  Expr shrinks =
      xMagnitude.compare(stablehlo::ComparisonDirection::GT, yMagnitude) |
      xSign.differs(ySign);
  Expr stepped = xBits + select(shrinks, minusOne, one);
  Expr result = select(xMagnitude.equals(zero), fromZero, stepped);
  result = select(x.equals(y), yBits, result);
  Expr isNan = x.differs(x) | y.differs(y);
  Expr nan =
      splat(APFloat::getNaN(floatType.getFloatSemantics()).bitcastToAPInt());
  return bitcast(select(isNan, nan, result), floatType);
}

} // namespace whale::elementwise
