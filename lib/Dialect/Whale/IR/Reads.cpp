//===- Reads.cpp - The values that an operation reads ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/Reads.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace whale {

void forEachRead(Operation *op, llvm::function_ref<void(Value)> visit) {
  for (Value operand : op->getOperands())
    visit(operand);
  if (op->getNumRegions() == 0)
    return;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    visit(value);
}

llvm::SetVector<Value> getReads(Operation *op) {
  llvm::SetVector<Value> reads;
  forEachRead(op, [&](Value value) { reads.insert(value); });
  return reads;
}

llvm::SetVector<Value> getCaptures(Region &region) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(region, captured);
  return captured;
}

} // namespace whale
