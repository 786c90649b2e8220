//===- ScalarConvert.cpp - Conversions between scalars --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a scalar and two element types. Out: the scalar converted as XLA defines
// it. Floats of at most 8 bits are converted by arithmetic on their bits,
// without a table or a branch. Cost: a constant number of operations: one for
// most types, some ten from a float to an integer, which saturates, and some
// twenty each to and from a small float; complex numbers take that for each
// part.
//
//===----------------------------------------------------------------------===//

#include "Kernel/ScalarOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/APFloat.h"

using namespace mlir;
using namespace whale;

static Value makeInteger(OpBuilder &b, Location loc, Type type, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

static Value compare(OpBuilder &b, Location loc, arith::CmpIPredicate predicate,
                     Value lhs, Value rhs) {
  return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
}

static Value select(OpBuilder &b, Location loc, Value condition, Value yes,
                    Value no) {
  return arith::SelectOp::create(b, loc, condition, yes, no);
}

//===----------------------------------------------------------------------===//
// Floats of at most 8 bits
//===----------------------------------------------------------------------===//

/// The value of the bits of a small float: its magnitudes are few enough for
/// the format to be described by its exponent range, and scaling by a power of
/// two in f32 is exact.
static Value decodeSmallFloat(OpBuilder &b, Location loc, Value bits,
                              const llvm::fltSemantics &semantics) {
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  int mantissa = APFloat::semanticsPrecision(semantics) - 1;
  int minExponent = APFloat::semanticsMinExponent(semantics);
  int64_t signBit = int64_t(1) << (APFloat::semanticsSizeInBits(semantics) - 1);
  Value wide = arith::ExtUIOp::create(b, loc, i32, bits);
  Value magnitude = arith::AndIOp::create(
      b, loc, wide, makeInteger(b, loc, i32, signBit - 1));
  Value sign = arith::ShLIOp::create(
      b, loc,
      arith::AndIOp::create(b, loc, wide, makeInteger(b, loc, i32, signBit)),
      makeInteger(b, loc, i32, 32 - APFloat::semanticsSizeInBits(semantics)));
  Value exponent = arith::ShRUIOp::create(b, loc, magnitude,
                                          makeInteger(b, loc, i32, mantissa));
  Value fraction = arith::AndIOp::create(
      b, loc, magnitude, makeInteger(b, loc, i32, (1 << mantissa) - 1));
  Value denormal = compare(b, loc, arith::CmpIPredicate::eq, exponent,
                           makeInteger(b, loc, i32, 0));
  // A denormal is its fraction times the least power of two.
  Value small = arith::MulFOp::create(
      b, loc, arith::UIToFPOp::create(b, loc, f32, fraction),
      arith::ConstantOp::create(
          b, loc, b.getF32FloatAttr(std::ldexp(1.0f, minExponent - mantissa))));
  Value normal = arith::AddIOp::create(
      b, loc,
      arith::ShLIOp::create(b, loc, magnitude,
                            makeInteger(b, loc, i32, 23 - mantissa)),
      makeInteger(b, loc, i32, int64_t(127 + minExponent - 1) << 23));
  Value result = select(b, loc, denormal, small,
                        arith::BitcastOp::create(b, loc, f32, normal));
  // The codes of what is no finite number come last, or, without a
  // negative zero, at its code.
  auto largest = APFloat::getLargest(semantics).bitcastToAPInt();
  Value beyond = compare(b, loc, arith::CmpIPredicate::ugt, magnitude,
                         makeInteger(b, loc, i32, largest.getZExtValue()));
  Value nan = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(NAN));
  Value special = nan;
  if (APFloat::semanticsHasInf(semantics)) {
    auto inf = APFloat::getInf(semantics).bitcastToAPInt();
    Value isInf = compare(b, loc, arith::CmpIPredicate::eq, magnitude,
                          makeInteger(b, loc, i32, inf.getZExtValue()));
    special = select(
        b, loc, isInf,
        arith::ConstantOp::create(b, loc, b.getF32FloatAttr(INFINITY)), nan);
  }
  result = select(b, loc, beyond, special, result);
  Value signedBits = arith::OrIOp::create(
      b, loc, arith::BitcastOp::create(b, loc, i32, result), sign);
  result = arith::BitcastOp::create(b, loc, f32, signedBits);
  if (APFloat::semanticsHasNaN(semantics) &&
      APFloat::getNaN(semantics).bitcastToAPInt() == 0x80)
    result = select(b, loc,
                    compare(b, loc, arith::CmpIPredicate::eq, wide,
                            makeInteger(b, loc, i32, 0x80)),
                    nan, result);
  return result;
}

/// Rounds an f32 to the nearest small float, ties to even; what is too large
/// becomes infinity, or NaN where there is none, or the largest number where
/// there is no NaN either.
static Value encodeSmallFloat(OpBuilder &b, Location loc, Value value,
                              const llvm::fltSemantics &semantics) {
  Type i8 = b.getI8Type(), i32 = b.getI32Type(), f32 = b.getF32Type();
  int mantissa = APFloat::semanticsPrecision(semantics) - 1;
  int minExponent = APFloat::semanticsMinExponent(semantics);
  Value bits = arith::BitcastOp::create(b, loc, i32, value);
  Value sign = arith::AndIOp::create(
      b, loc,
      arith::ShRUIOp::create(
          b, loc, bits,
          makeInteger(b, loc, i32,
                      32 - APFloat::semanticsSizeInBits(semantics))),
      makeInteger(b, loc, i32,
                  int64_t(1) << (APFloat::semanticsSizeInBits(semantics) - 1)));
  Value magnitude =
      arith::AndIOp::create(b, loc, bits, makeInteger(b, loc, i32, 0x7fffffff));
  // Normal results: round the fraction in place, then move the exponent.
  int drop = 23 - mantissa;
  Value odd = arith::AndIOp::create(
      b, loc,
      arith::ShRUIOp::create(b, loc, magnitude, makeInteger(b, loc, i32, drop)),
      makeInteger(b, loc, i32, 1));
  Value rounded = arith::AddIOp::create(
      b, loc, arith::AddIOp::create(b, loc, magnitude, odd),
      makeInteger(b, loc, i32, (1 << (drop - 1)) - 1));
  Value normal = arith::SubIOp::create(
      b, loc,
      arith::ShRUIOp::create(b, loc, rounded, makeInteger(b, loc, i32, drop)),
      makeInteger(b, loc, i32, int64_t(127 + minExponent - 1) << mantissa));
  // Denormal results: adding 2^(minExponent - mantissa + 23) leaves the
  // rounded multiple of the least denormal in the low bits.
  float magic = std::ldexp(1.0f, minExponent - mantissa + 23);
  Value magicValue =
      arith::ConstantOp::create(b, loc, b.getF32FloatAttr(magic));
  Value shifted = arith::AddFOp::create(
      b, loc, arith::BitcastOp::create(b, loc, f32, magnitude), magicValue);
  Value denormal = arith::SubIOp::create(
      b, loc, arith::BitcastOp::create(b, loc, i32, shifted),
      makeInteger(b, loc, i32, llvm::bit_cast<int32_t>(magic)));
  float least = std::ldexp(1.0f, minExponent);
  Value isDenormal =
      compare(b, loc, arith::CmpIPredicate::ult, magnitude,
              makeInteger(b, loc, i32, llvm::bit_cast<int32_t>(least)));
  Value code = select(b, loc, isDenormal, denormal, normal);

  auto largest = APFloat::getLargest(semantics).bitcastToAPInt();
  // Without NaN, its sign bit alone: -0, as XLA converts it.
  int64_t nan = APFloat::semanticsHasNaN(semantics)
                    ? APFloat::getNaN(semantics).bitcastToAPInt().getZExtValue()
                    : int64_t(1)
                          << (APFloat::semanticsSizeInBits(semantics) - 1);
  int64_t over =
      APFloat::semanticsHasInf(semantics)
          ? APFloat::getInf(semantics).bitcastToAPInt().getZExtValue()
      : APFloat::semanticsHasNaN(semantics) ? nan
                                            : largest.getZExtValue();
  // Signed: a code beyond the format's range can wrap only upwards.
  Value isOver = compare(b, loc, arith::CmpIPredicate::sgt, code,
                         makeInteger(b, loc, i32, largest.getZExtValue()));
  code = select(b, loc, isOver, makeInteger(b, loc, i32, over), code);
  Value isNan = compare(b, loc, arith::CmpIPredicate::ugt, magnitude,
                        makeInteger(b, loc, i32, 0x7f800000));
  code = select(b, loc, isNan, makeInteger(b, loc, i32, nan), code);
  Value result = arith::OrIOp::create(b, loc, code, sign);
  if (nan == 0x80) // No negative zero: its code is NaN.
    result = select(b, loc,
                    compare(b, loc, arith::CmpIPredicate::eq, code,
                            makeInteger(b, loc, i32, 0)),
                    makeInteger(b, loc, i32, 0), result);
  return arith::TruncIOp::create(b, loc, i8, result);
}

//===----------------------------------------------------------------------===//
// Computation types
//===----------------------------------------------------------------------===//

Value whale::toCompute(OpBuilder &b, Location loc, Value value, Type type) {
  auto floating = dyn_cast<FloatType>(type);
  if (!floating || floating.getWidth() > 16)
    return value;
  if (floating.getWidth() <= 8)
    return decodeSmallFloat(b, loc, value, floating.getFloatSemantics());
  return arith::ExtFOp::create(b, loc, b.getF32Type(), value);
}

Value whale::fromCompute(OpBuilder &b, Location loc, Value value, Type type) {
  auto floating = dyn_cast<FloatType>(type);
  if (!floating || value.getType() == type)
    return value;
  if (floating.getWidth() <= 8)
    return encodeSmallFloat(b, loc, value, floating.getFloatSemantics());
  return arith::TruncFOp::create(b, loc, type, value);
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

static Value floatToInteger(OpBuilder &b, Location loc, Value value, Type to) {
  auto type = cast<IntegerType>(getScalarType(to));
  auto floating = cast<FloatType>(value.getType());
  unsigned width = type.getWidth();
  bool isSigned = !isUnsigned(to);
  APInt least =
      isSigned ? APInt::getSignedMinValue(width) : APInt::getMinValue(width);
  APInt greatest =
      isSigned ? APInt::getSignedMaxValue(width) : APInt::getMaxValue(width);
  // The bounds as floats are powers of two (or zero): exact.
  double low = isSigned ? -std::ldexp(1.0, width - 1) : 0.0;
  double high = std::ldexp(1.0, isSigned ? width - 1 : width);
  auto constant = [&](double number) -> Value {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(floating, number));
  };
  Value isLow = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLE, value,
                                      constant(low));
  Value isHigh = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE, value,
                                       constant(high));
  Value isNan =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  Value outside = arith::OrIOp::create(
      b, loc, arith::OrIOp::create(b, loc, isLow, isHigh), isNan);
  Value safe = select(b, loc, outside, constant(0.0), value);
  // Through a wider signed integer where there is one: vector units convert
  // those.
  Value result;
  if (width < 32) {
    result = arith::FPToSIOp::create(b, loc, b.getI32Type(), safe);
    result = arith::TruncIOp::create(b, loc, type, result);
  } else {
    result = isSigned ? arith::FPToSIOp::create(b, loc, type, safe).getResult()
                      : arith::FPToUIOp::create(b, loc, type, safe).getResult();
  }
  auto integer = [&](const APInt &number) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, number));
  };
  result = select(b, loc, isLow, integer(least), result);
  result = select(b, loc, isHigh, integer(greatest), result);
  return select(b, loc, isNan, integer(APInt::getZero(width)), result);
}

Value whale::convertScalar(OpBuilder &b, Location loc, Value value, Type from,
                           Type to) {
  if (from == to)
    return value;
  if (auto complex = dyn_cast<ComplexType>(from)) {
    Type part = complex.getElementType();
    Value real = complex::ReOp::create(b, loc, part, value);
    auto target = dyn_cast<ComplexType>(to);
    if (!target)
      return convertScalar(b, loc, real, part, to);
    Value imaginary = complex::ImOp::create(b, loc, part, value);
    Type element = target.getElementType();
    return complex::CreateOp::create(
        b, loc, to, convertScalar(b, loc, real, part, element),
        convertScalar(b, loc, imaginary, part, element));
  }
  if (auto complex = dyn_cast<ComplexType>(to)) {
    Type part = complex.getElementType();
    Value zero = arith::ConstantOp::create(b, loc, b.getFloatAttr(part, 0.0));
    return complex::CreateOp::create(
        b, loc, to, convertScalar(b, loc, value, from, part), zero);
  }
  // Bytes from outside may hold anything above a small integer.
  value = toStored(b, loc, fromStored(b, loc, value, from), from);
  if (isa<FloatType>(from)) {
    Value wide = toCompute(b, loc, value, from);
    if (to.isInteger(1))
      return arith::CmpFOp::create(
          b, loc, arith::CmpFPredicate::UNE, wide,
          arith::ConstantOp::create(b, loc,
                                    b.getFloatAttr(wide.getType(), 0.0)));
    if (isa<IntegerType>(to))
      return toStored(b, loc, floatToInteger(b, loc, wide, to), to);
    if (wide.getType().isF64() && !to.isF64())
      wide = arith::TruncFOp::create(b, loc, b.getF32Type(), wide);
    if (to.isF64())
      return arith::ExtFOp::create(b, loc, to, wide);
    return fromCompute(b, loc, wide, to);
  }
  bool zeroExtend = isUnsigned(from);
  if (isa<FloatType>(to)) {
    Type compute = to.isF64() ? to : b.getF32Type();
    Value wide =
        zeroExtend
            ? arith::UIToFPOp::create(b, loc, compute, value).getResult()
            : arith::SIToFPOp::create(b, loc, compute, value).getResult();
    return fromCompute(b, loc, wide, to);
  }
  if (to.isInteger(1))
    return compare(b, loc, arith::CmpIPredicate::ne, value,
                   makeInteger(b, loc, value.getType(), 0));
  unsigned width = value.getType().getIntOrFloatBitWidth();
  Type scalar = getScalarType(to);
  unsigned target = scalar.getIntOrFloatBitWidth();
  if (width == target)
    return value;
  if (width > target)
    return toStored(b, loc, arith::TruncIOp::create(b, loc, scalar, value), to);
  Value wider = zeroExtend
                    ? arith::ExtUIOp::create(b, loc, scalar, value).getResult()
                    : arith::ExtSIOp::create(b, loc, scalar, value).getResult();
  return toStored(b, loc, wider, to);
}

Value whale::reducePrecision(OpBuilder &b, Location loc, Value value, Type type,
                             unsigned exponentBits, unsigned mantissaBits) {
  // A type of its own arithmetic keeps its least numbers if it keeps its
  // exponents.
  Value wide = toCompute(b, loc, value, type);
  bool isSmall = cast<FloatType>(type).getWidth() <= 8;
  auto floating = cast<FloatType>(isSmall ? wide.getType() : type);
  Value number = isSmall ? wide : value;
  unsigned width = floating.getWidth();
  unsigned fraction = floating.getFPMantissaWidth() - 1;
  unsigned exponent = width - 1 - fraction;
  Type bitsType = b.getIntegerType(width);
  auto constant = [&](const APInt &number) -> Value {
    return arith::ConstantOp::create(b, loc,
                                     b.getIntegerAttr(bitsType, number));
  };
  Value bits = arith::BitcastOp::create(b, loc, bitsType, number);
  if (mantissaBits < fraction) {
    // Round to nearest, ties to even, by adding half less one plus the last
    // bit that stays.
    unsigned drop = fraction - mantissaBits;
    Value last = arith::AndIOp::create(
        b, loc,
        arith::ShRUIOp::create(b, loc, bits, constant(APInt(width, drop))),
        constant(APInt(width, 1)));
    Value half = constant(APInt::getLowBitsSet(width, drop - 1));
    bits = arith::AddIOp::create(b, loc, bits,
                                 arith::AddIOp::create(b, loc, last, half));
    bits = arith::AndIOp::create(b, loc, bits,
                                 constant(~APInt::getLowBitsSet(width, drop)));
  }
  if (exponentBits < exponent) {
    APInt signMask = APInt::getSignMask(width);
    APInt exponentMask = APInt::getBitsSet(width, fraction, width - 1);
    int64_t bias = (int64_t(1) << (exponent - 1)) - 1;
    int64_t reduced = (int64_t(1) << (exponentBits - 1)) - 1;
    Value sign = arith::AndIOp::create(b, loc, bits, constant(signMask));
    Value power = arith::AndIOp::create(b, loc, bits, constant(exponentMask));
    Value tooLarge =
        compare(b, loc, arith::CmpIPredicate::ugt, power,
                constant(APInt(width, bias + reduced).shl(fraction)));
    Value tooSmall =
        compare(b, loc, arith::CmpIPredicate::ule, power,
                constant(APInt(width, bias - reduced).shl(fraction)));
    Value infinity = arith::OrIOp::create(b, loc, sign, constant(exponentMask));
    bits = select(b, loc, tooLarge, infinity, bits);
    bits = select(b, loc, tooSmall, sign, bits);
  }
  Value result = arith::BitcastOp::create(b, loc, floating, bits);
  Value isNan =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, wide, wide);
  return fromCompute(b, loc, select(b, loc, isNan, number, result), type);
}
