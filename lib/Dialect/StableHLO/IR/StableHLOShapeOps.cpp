//===- StableHLOShapeOps.cpp - x --------------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace mlir::stablehlo;

#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOShapeOps.cpp.inc"

//===----------------------------------------------------------------------===//
// ConstantOp
//===----------------------------------------------------------------------===//

void ConstantOp::build(OpBuilder &builder, OperationState &state,
                       Attribute value) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements) {
    // A number or a complex pair of numbers: a scalar.
    auto scalar = cast<TypedAttr>(value);
    elements = DenseElementsAttr::get(
        RankedTensorType::get({}, scalar.getType()), value);
  }
  build(builder, state, elements.getType(), elements);
}

void ConstantOp::print(OpAsmPrinter &printer) {
  printer.printOptionalAttrDict((*this)->getAttrs(), {"value"});
  printer << ' ';
  printer.printAttribute(getValue());
  // A value of another type than the result is invalid, yet can be printed.
  if (getValue().getType() != getType())
    printer << " : " << getType();
}

ParseResult ConstantOp::parse(OpAsmParser &parser, OperationState &result) {
  ElementsAttr value;
  if (parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseAttribute(value, "value", result.attributes))
    return failure();
  result.addTypes(value.getType());
  return success();
}

void ConstantOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  bool isInteger = getType().getElementType().isInteger();
  setName(getResult(), isInteger ? "c" : "cst");
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

OpFoldResult BroadcastInDimOp::fold(FoldAdaptor) {
  bool isIdentity = getOperand().getType() == getType() &&
                    llvm::equal(getBroadcastDimensions(),
                                llvm::seq<int64_t>(0, getType().getRank()));
  return isIdentity ? getOperand() : OpFoldResult();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  return getOperand().getType() == getType() ? getOperand() : OpFoldResult();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  bool isIdentity =
      getOperand().getType() == getType() &&
      llvm::equal(getPermutation(), llvm::seq<int64_t>(0, getType().getRank()));
  return isIdentity ? getOperand() : OpFoldResult();
}

OpFoldResult ConcatenateOp::fold(FoldAdaptor) {
  bool isIdentity =
      getInputs().size() == 1 && getInputs().front().getType() == getType();
  return isIdentity ? getInputs().front() : OpFoldResult();
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  auto isZero = [](int64_t value) { return value == 0; };
  bool isIdentity = getOperand().getType() == getType() &&
                    llvm::all_of(getEdgePaddingLow(), isZero) &&
                    llvm::all_of(getEdgePaddingHigh(), isZero) &&
                    llvm::all_of(getInteriorPadding(), isZero);
  return isIdentity ? getOperand() : OpFoldResult();
}
