//===- StableHLOUnaryOps.cpp - Elementwise, one operand ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace mlir::stablehlo;
using whale::Checker;
using whale::elementType;
using whale::mayBeEqual;
using whale::tensorType;

#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOUnaryOps.cpp.inc"

void ConvertOp::build(OpBuilder &builder, OperationState &state, Value operand,
                      Type elementType) {
  auto type = cast<RankedTensorType>(operand.getType());
  build(builder, state, type.clone(elementType), operand);
}

OpFoldResult ConvertOp::fold(FoldAdaptor) {
  return getOperand().getType() == getType() ? getOperand() : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// Verifiers and inference
//===----------------------------------------------------------------------===//

/// Returns the tensor type with the real element type of a complex one.
static Type realType(Type type) {
  auto tensor = tensorType(type);
  if (auto complex = dyn_cast<ComplexType>(tensor.getElementType()))
    return tensor.clone(complex.getElementType());
  return tensor;
}

LogicalResult AbsOp::inferReturnTypes(MLIRContext *context,
                                      std::optional<Location> location,
                                      Adaptor adaptor,
                                      SmallVectorImpl<Type> &results) {
  // abs_c1, abs_c2
  results.push_back(realType(adaptor.getOperand().getType()));
  return success();
}

LogicalResult ImagOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> location,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &results) {
  // imag_c1, imag_c2
  results.push_back(realType(adaptor.getOperand().getType()));
  return success();
}

LogicalResult RealOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> location,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &results) {
  // real_c1, real_c2
  results.push_back(realType(adaptor.getOperand().getType()));
  return success();
}

LogicalResult IsFiniteOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location> location,
                                           Adaptor adaptor,
                                           SmallVectorImpl<Type> &results) {
  // is_finite_c1
  results.push_back(
      tensorType(adaptor.getX().getType()).clone(IntegerType::get(context, 1)));
  return success();
}

LogicalResult ReducePrecisionOp::verify() {
  Checker check(*this);
  // reduce_precision_c2
  if (static_cast<int32_t>(getExponentBits()) < 1)
    return check.error("expects exponent_bits of at least 1");
  // reduce_precision_c3
  if (static_cast<int32_t>(getMantissaBits()) < 0)
    return check.error("expects mantissa_bits of at least 0");
  return success();
}

/// Returns the bits of an element, 0 if unknown.
static uint64_t bitWidth(Type type) {
  if (auto complex = dyn_cast<ComplexType>(type))
    return 2 * bitWidth(complex.getElementType());
  return type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
}

LogicalResult BitcastConvertOp::verify() {
  Checker check(*this);
  RankedTensorType from = getOperand().getType(), to = getType();
  // bitcast_convert_c2
  if (isa<ComplexType>(from.getElementType()) !=
      isa<ComplexType>(to.getElementType()))
    return check.error(
        "expects no conversion between real and complex numbers");
  uint64_t fromBits = bitWidth(from.getElementType());
  uint64_t toBits = bitWidth(to.getElementType());
  if (fromBits == 0 || toBits == 0)
    return success();
  // bitcast_convert_c1: the narrower type has an additional dimension for the
  // parts of a wide element.
  RankedTensorType wide = fromBits >= toBits ? from : to;
  RankedTensorType narrow = fromBits >= toBits ? to : from;
  auto [low, high] = std::minmax(fromBits, toBits);
  ArrayRef<int64_t> parts = narrow.getShape();
  if (low != high) {
    if (narrow.getRank() != wide.getRank() + 1 || high % low != 0 ||
        !mayBeEqual(parts.back(), high / low))
      return check.error("expects a last dimension of ", high, " / ", low,
                         " parts in the type of ", low, "-bit elements");
    parts = parts.drop_back();
  }
  return check.sameShape("the result, but for the parts,", parts,
                         wide.getShape());
}
