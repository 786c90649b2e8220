//===- WhaleOffloadOps.cpp - State in hosts' memory -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifies the constraints listed in WhaleOffloadOps.td, in the same order.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"

using namespace mlir;
using namespace whale;

static LogicalResult verifyCopy(Operation *op) {
  if (op->getNumResults() == 0 ||
      op->getResult(0).getType() != op->getOperand(0).getType())
    return op->emitOpError("expects a result of the operand's type");
  if (op->getNumResults() == 1)
    return success();
  if (op->getNumResults() > 2 || !isa<TokenType>(op->getResult(1).getType()))
    return op->emitOpError("expects at most a token behind its result");
  Value token = op->getResult(1);
  if (!token.hasOneUse() || !isa<WaitOp>(*token.user_begin()) ||
      !op->getResult(0).hasOneUse() ||
      *op->getResult(0).user_begin() != *token.user_begin())
    return op->emitOpError("expects one whale.wait, which alone uses its "
                           "results");
  return success();
}

LogicalResult HostToDeviceOp::verify() { return verifyCopy(*this); }

LogicalResult DeviceToHostOp::verify() { return verifyCopy(*this); }

#define GET_OP_CLASSES
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.cpp.inc"
