//===- ReadResources.cpp - Constants from a text's resources ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReadResources.h"

#include "whale/Dialect/CHLO/IR/CHLOOps.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"

#include "mlir/IR/DialectResourceBlobManager.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace whale {

static FailureOr<DenseElementsAttr>
readElements(Operation *op, DenseResourceElementsAttr attr) {
  StringRef name = attr.getRawHandle().getKey();
  ShapedType type = attr.getType();
  AsmResourceBlob *blob = attr.getRawHandle().getBlob();
  if (!blob)
    return op->emitError("the text has no elements for 'dense_resource<")
           << name << ">': print it with all constants";
  Type element = type.getElementType();
  bool isBoolean = element.isInteger(1);
  if (!isBoolean && element.isIntOrFloat() &&
      element.getIntOrFloatBitWidth() % 8 != 0)
    return op->emitError("'dense_resource<")
           << name << ">' holds elements of less than a byte, " << element
           << ", whose place in a byte is not known; write them as dense<...>";
  ArrayRef<char> data = blob->getData();
  int64_t elements = 1, bytes = getElementBytes(element);
  bool isCounted = type.hasStaticShape() && bytes > 0;
  for (int64_t extent : type.getShape())
    isCounted = isCounted && !llvm::MulOverflow(elements, extent, elements);
  if (!isCounted)
    return op->emitError("'dense_resource<")
           << name << ">' cannot be read as " << type;
  if (data.size() / bytes != uint64_t(elements) || data.size() % bytes != 0)
    return op->emitError("'dense_resource<")
           << name << ">' has " << data.size() << " bytes, and " << type
           << " is " << elements << " elements of " << bytes;
  if (elements == 0)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  if (!isBoolean)
    return DenseElementsAttr::getFromRawBuffer(type, data);
  // Packed to bits elsewhere in MLIR, but a byte each here.
  SmallVector<bool> values;
  for (char byte : data) {
    if (byte != 0 && byte != 1)
      return op->emitError("'dense_resource<")
             << name << ">' has a byte that is no i1";
    values.push_back(byte);
  }
  return DenseElementsAttr::get(type, values);
}

LogicalResult readResources(ModuleOp module) {
  // Several constants may be one.
  llvm::DenseMap<Attribute, DenseElementsAttr> known;
  WalkResult result = module.walk([&](Operation *op) {
    if (!isa<stablehlo::ConstantOp, chlo::ConstantOp>(op))
      return WalkResult::advance();
    auto attr = op->getAttrOfType<DenseResourceElementsAttr>("value");
    if (!attr)
      return WalkResult::advance();
    DenseElementsAttr &elements = known[attr];
    if (!elements) {
      FailureOr<DenseElementsAttr> read = readElements(op, attr);
      if (failed(read))
        return WalkResult::interrupt();
      elements = *read;
    }
    op->setAttr("value", elements);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

} // namespace whale
