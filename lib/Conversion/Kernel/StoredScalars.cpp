//===- StoredScalars.cpp - Types and constants of kernels -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which types tensors have in memory, and constants, sums and products of
// scalars in these types. Integers of 2 and 4 bits are kept in a byte, to which
// their signedness extends them, and truncated to their own width for
// arithmetic. Floats of at most 8 bits are kept as their bits, an i8. Types
// that have no form in memory here (other widths, f8E8M0FNU, complex numbers of
// other parts than f32 and f64) are null.
//
// What is emitted are operations of arith and complex on scalars; a product of
// complex numbers is written as products and sums of their parts. Cost: each
// function takes constant time, and emits at most two operations, or 16 for
// complex numbers.
//
//===----------------------------------------------------------------------===//

#include "Kernel/StoredScalars.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

bool whale::isUnsigned(Type type) {
  return type.isUnsignedInteger() || type.isInteger(1);
}

Type whale::getStorageType(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    unsigned width = integer.getWidth();
    if (width == 2 || width == 4)
      width = 8;
    if (width != 1 && width != 8 && width != 16 && width != 32 && width != 64)
      return {};
    return IntegerType::get(type.getContext(), width);
  }
  if (auto complex = dyn_cast<ComplexType>(type))
    return isa<Float32Type, Float64Type>(complex.getElementType()) ? type
                                                                   : Type();
  if (type.isF16() || type.isBF16() || type.isF32() || type.isF64())
    return type;
  // Kept as their bits. (f8E8M0FNU has no sign and no zero.)
  if (isa<FloatType>(type) && !isa<Float8E8M0FNUType>(type) &&
      cast<FloatType>(type).getWidth() <= 8)
    return IntegerType::get(type.getContext(), 8);
  return {};
}

/// True for integers of less than a byte that are kept in one.
static bool isSmallInteger(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return integer && integer.getWidth() > 1 && integer.getWidth() < 8;
}

Type whale::getScalarType(Type type) {
  if (isSmallInteger(type))
    return IntegerType::get(type.getContext(), type.getIntOrFloatBitWidth());
  return getStorageType(type);
}

Value whale::fromStored(OpBuilder &b, Location loc, Value value, Type type) {
  if (!isSmallInteger(type))
    return value;
  return arith::TruncIOp::create(b, loc, getScalarType(type), value);
}

Value whale::toStored(OpBuilder &b, Location loc, Value value, Type type) {
  if (!isSmallInteger(type))
    return value;
  Type storage = getStorageType(type);
  if (isUnsigned(type))
    return arith::ExtUIOp::create(b, loc, storage, value);
  return arith::ExtSIOp::create(b, loc, storage, value);
}

RankedTensorType whale::getStorageType(RankedTensorType type) {
  Type element = getStorageType(type.getElementType());
  return element ? RankedTensorType::get(type.getShape(), element)
                 : RankedTensorType();
}

unsigned whale::getStoredBits(Type storage) {
  if (auto complex = dyn_cast<ComplexType>(storage))
    return 2 * complex.getElementType().getIntOrFloatBitWidth();
  return storage.getIntOrFloatBitWidth();
}

int64_t whale::getStoredBytes(Type storage) {
  return llvm::divideCeil(getStoredBits(getElementTypeOrSelf(storage)), 8);
}

Value whale::makeZero(OpBuilder &b, Location loc, Type type) {
  auto complex = dyn_cast<ComplexType>(type);
  if (!complex)
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  Value part = makeZero(b, loc, complex.getElementType());
  return complex::CreateOp::create(b, loc, type, part, part);
}

Value whale::makeConstant(OpBuilder &b, Location loc, Attribute value,
                          Type type) {
  Type storage = getStorageType(type);
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    unsigned width = storage.getIntOrFloatBitWidth();
    APInt number = integer.getValue();
    return arith::ConstantOp::create(
        b, loc,
        b.getIntegerAttr(storage, isUnsigned(type) ? number.zext(width)
                                                   : number.sext(width)));
  }
  if (auto parts = dyn_cast<ArrayAttr>(value)) {
    auto element = cast<ComplexType>(type).getElementType();
    return complex::CreateOp::create(b, loc, type,
                                     makeConstant(b, loc, parts[0], element),
                                     makeConstant(b, loc, parts[1], element));
  }
  auto floating = cast<FloatAttr>(value);
  if (storage.isInteger())
    return arith::ConstantOp::create(
        b, loc,
        b.getIntegerAttr(storage,
                         floating.getValue().bitcastToAPInt().zextOrTrunc(8)));
  return arith::ConstantOp::create(b, loc, floating);
}

//===----------------------------------------------------------------------===//
// Sums of products
//===----------------------------------------------------------------------===//

Type whale::getAccumulatorType(Type type) {
  if (isa<FloatType>(type) && type.getIntOrFloatBitWidth() <= 16)
    return Float32Type::get(type.getContext());
  if (isa<IntegerType>(type) && type.getIntOrFloatBitWidth() > 1 &&
      type.getIntOrFloatBitWidth() < 32)
    return IntegerType::get(type.getContext(), 32);
  return getStorageType(type);
}

Value whale::addScalars(OpBuilder &b, Location loc, Value x, Value y) {
  Type type = x.getType();
  if (type.isInteger(1))
    return arith::OrIOp::create(b, loc, x, y);
  if (isa<IntegerType>(type))
    return arith::AddIOp::create(b, loc, x, y);
  if (isa<ComplexType>(type))
    return complex::AddOp::create(b, loc, x, y);
  return arith::AddFOp::create(b, loc, x, y);
}

Value whale::multiplyAdd(OpBuilder &b, Location loc, Value x, Value y,
                         Value sum) {
  Type type = sum.getType();
  if (type.isInteger(1))
    return addScalars(b, loc, sum, arith::AndIOp::create(b, loc, x, y));
  if (isa<IntegerType>(type))
    return addScalars(b, loc, sum, arith::MulIOp::create(b, loc, x, y));
  auto product = [&](Value lhs, Value rhs) -> Value {
    return arith::MulFOp::create(b, loc, lhs, rhs);
  };
  auto complex = dyn_cast<ComplexType>(type);
  if (!complex)
    return addScalars(b, loc, sum, product(x, y));
  auto real = [&](Value value) -> Value {
    return complex::ReOp::create(b, loc, complex.getElementType(), value);
  };
  auto imaginary = [&](Value value) -> Value {
    return complex::ImOp::create(b, loc, complex.getElementType(), value);
  };
  Value re = arith::SubFOp::create(b, loc, product(real(x), real(y)),
                                   product(imaginary(x), imaginary(y)));
  Value im = addScalars(b, loc, product(real(x), imaginary(y)),
                        product(imaginary(x), real(y)));
  return addScalars(b, loc, sum,
                    complex::CreateOp::create(b, loc, type, re, im));
}
