//===- CarryAttributes.cpp - Keep strategies across rewrites --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CarryAttributes.h"
#include "whale/Transforms/Attributes.h"

using namespace mlir;

namespace whale {

void carryAttributes(Operation *from, Operation *to) {
  for (StringRef name : {kStrategyAttr, kPhaseAttr})
    if (Attribute attr = from->getAttr(name); attr && !to->hasAttr(name))
      to->setAttr(name, attr);
}

void CarryAttributes::notifyOperationInserted(Operation *op,
                                              OpBuilder::InsertPoint previous) {
  // What is only moved has its attributes.
  if (!previous.isSet())
    fresh.insert(op);
}

void CarryAttributes::notifyOperationReplaced(Operation *op,
                                              ValueRange replacement) {
  carryFrom(op);
}

void CarryAttributes::notifyOperationErased(Operation *op) {
  op->walk([&](Operation *nested) { fresh.remove(nested); });
}

void CarryAttributes::carryFrom(Operation *op) {
  for (Operation *created : fresh) {
    // What is inside of a created operation needs nothing of its own.
    if (created == op || fresh.contains(created->getParentOp()))
      continue;
    carryAttributes(op, created);
  }
  fresh.clear();
}

} // namespace whale
