//===- StableHLOBinaryOps.cpp - Elementwise, several operands ---*- C++ -*-===//
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
#include "whale/Dialect/StableHLO/IR/StableHLOBinaryOps.cpp.inc"

void CompareOp::build(OpBuilder &builder, OperationState &state, Value lhs,
                      Value rhs, ComparisonDirection direction,
                      ComparisonType type) {
  MLIRContext *context = builder.getContext();
  build(builder, state, lhs, rhs,
        ComparisonDirectionAttr::get(context, direction),
        type == ComparisonType::NOTYPE
            ? ComparisonTypeAttr()
            : ComparisonTypeAttr::get(context, type));
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getOnTrue() == getOnFalse() && getOnTrue().getType() == getType())
    return getOnTrue();
  auto pred = dyn_cast_if_present<SplatElementsAttr>(adaptor.getPred());
  if (!pred)
    return {};
  Value chosen = pred.getSplatValue<bool>() ? getOnTrue() : getOnFalse();
  return chosen.getType() == getType() ? chosen : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// Verifiers and inference
//===----------------------------------------------------------------------===//

LogicalResult ComplexOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> location,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &results) {
  // complex_c2, complex_c3
  auto type = tensorType(adaptor.getLhs().getType());
  results.push_back(type.clone(ComplexType::get(type.getElementType())));
  return success();
}

LogicalResult CompareOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> location,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  auto lhs = tensorType(adaptor.getLhs().getType());
  auto rhs = tensorType(adaptor.getRhs().getType());
  // compare_c1, compare_c2
  if (failed(check.sameElements("operands", lhs, rhs)) ||
      failed(check.sameShape("rhs", rhs.getShape(), lhs.getShape())))
    return failure();
  results.push_back(lhs.clone(IntegerType::get(context, 1)));
  return success();
}

LogicalResult CompareOp::verify() {
  // compare_c3, compare_c4
  Type element = elementType(getLhs().getType());
  if (isa<ComplexType>(element) &&
      getComparisonDirection() != ComparisonDirection::EQ &&
      getComparisonDirection() != ComparisonDirection::NE)
    return Checker(*this).error(
        "expects direction EQ or NE for complex numbers");
  if (!getCompareType() || *getCompareType() == ComparisonType::NOTYPE)
    return success();
  ComparisonType type = *getCompareType();
  bool fits = true;
  if (auto integer = dyn_cast<IntegerType>(element))
    fits = type == (integer.isUnsigned() || integer.getWidth() == 1
                        ? ComparisonType::UNSIGNED
                        : ComparisonType::SIGNED);
  else if (isa<FloatType>(element))
    fits = type == ComparisonType::FLOAT || type == ComparisonType::TOTALORDER;
  else if (isa<ComplexType>(element))
    fits = type == ComparisonType::FLOAT;
  if (!fits)
    return Checker(*this).error("expects a compare_type that fits ", element,
                                " (got ", stringifyComparisonType(type), ")");
  return success();
}

LogicalResult SelectOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> location,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  auto pred = tensorType(adaptor.getPred().getType());
  auto onTrue = tensorType(adaptor.getOnTrue().getType());
  auto onFalse = tensorType(adaptor.getOnFalse().getType());
  // select_c2
  if (failed(check.sameElements("values", onTrue, onFalse)) ||
      failed(
          check.sameShape("on_false", onFalse.getShape(), onTrue.getShape())))
    return failure();
  // select_c1
  if (pred.getRank() != 0 &&
      failed(check.sameShape("pred", pred.getShape(), onTrue.getShape())))
    return failure();
  results.push_back(onTrue.hasStaticShape() ? onTrue : onFalse);
  return success();
}

LogicalResult ClampOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &results) {
  Checker check(location, getOperationName());
  auto operand = tensorType(adaptor.getOperand().getType());
  auto verifyBound = [&](StringRef name, Type type) -> LogicalResult {
    auto bound = tensorType(type);
    // clamp_c3
    if (failed(check.sameElements("operands", bound, operand)))
      return failure();
    // clamp_c1, clamp_c2
    if (bound.getRank() == 0)
      return success();
    return check.sameShape(name, bound.getShape(), operand.getShape());
  };
  if (failed(verifyBound("min", adaptor.getMin().getType())) ||
      failed(verifyBound("max", adaptor.getMax().getType())))
    return failure();
  // clamp_c4
  results.push_back(operand);
  return success();
}
