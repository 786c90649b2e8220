//===- WhaleVerifiers.cpp - Constraints of the operations -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/WhaleOps.h"

using namespace mlir;
using namespace whale;

std::optional<ArrayRef<int64_t>> whale::getRanks(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto ranks = op->getAttrOfType<DenseI64ArrayAttr>("whale.ranks"))
      return ranks.asArrayRef();
  return std::nullopt;
}

YieldOp TaskGraphOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}

SmallVector<int64_t> VirtualDeviceOp::getDevices() {
  SmallVector<int64_t> devices;
  for (size_t i = 0; i < getNumGroups(); ++i)
    llvm::append_range(devices, getGroup(i));
  return devices;
}

void VirtualDeviceOp::build(OpBuilder &builder, OperationState &state,
                            StringRef name,
                            ArrayRef<SmallVector<int64_t>> groups) {
  SmallVector<Attribute> lists;
  for (ArrayRef<int64_t> group : groups)
    lists.push_back(builder.getDenseI64ArrayAttr(group));
  build(builder, state, name, builder.getArrayAttr(lists));
}

LogicalResult ClusterOp::verify() { return success(); }
LogicalResult VirtualDeviceOp::verify() { return success(); }
LogicalResult TaskGraphOp::verify() { return success(); }
LogicalResult
TaskGraphOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  return success();
}
