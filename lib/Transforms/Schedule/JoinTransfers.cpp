//===- JoinTransfers.cpp - Collectives before they are started -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JoinTransfers.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"

using namespace mlir;

namespace whale {

/// What was started and waited for is one collective again, where it was waited
/// for; what no instruction uses where it was started. What is only sent is
/// where it can be sent: a start may have been held back for the order that is
/// given up.
static void joinStarts(Block *block) {
  for (auto wait : llvm::make_early_inc_range(block->getOps<WaitOp>())) {
    Operation *start = wait.getToken().getDefiningOp();
    OpBuilder builder(wait);
    if (wait.getReceived() &&
        llvm::all_of(wait->getUsers(), [](Operation *user) {
          return user->hasTrait<OpTrait::IsTerminator>();
        })) {
      builder.setInsertionPoint(start);
    } else if (!wait.getReceived()) {
      Value sent = cast<CollectiveOp>(start).getInput();
      if (sent.getParentBlock() != block || isa<BlockArgument>(sent))
        builder.setInsertionPointToStart(block);
      else
        builder.setInsertionPointAfterValue(sent);
    }
    OperationState state(start->getLoc(), start->getName());
    state.addOperands(start->getOperands());
    state.addAttributes(start->getAttrs());
    state.attributes.erase("with");
    state.addTypes(TypeRange(start->getResultTypes()).drop_back());
    Operation *op = builder.create(state);
    wait->replaceAllUsesWith(op->getResults());
    wait->erase();
    start->erase();
  }
}

static void moveToFirstUse(Operation *op) {
  Block *block = op->getBlock();
  Operation *first = block->getTerminator();
  for (Operation *user : op->getUsers()) {
    Operation *here = block->findAncestorOpInBlock(*user);
    if (here->isBeforeInBlock(first))
      first = here;
  }
  op->moveBefore(first);
}

/// Reshapes are no instructions: what is sent under another shape is there when
/// its operand is, and what is received under one is used where that is.
static void joinReshapes(Block *block) {
  // What moves may come behind what is next: operations are listed first.
  for (auto op : llvm::to_vector(block->getOps<stablehlo::ReshapeOp>())) {
    bool isSent = llvm::any_of(op->getUsers(), llvm::IsaPred<CollectiveOp>);
    Operation *producer = op.getOperand().getDefiningOp();
    if (isSent && producer && producer->getBlock() == block) {
      op->moveAfter(producer);
    } else if (!isSent && isa_and_nonnull<CollectiveOp>(producer)) {
      moveToFirstUse(op);
    }
  }
}

/// A pack is there with the last of its parts, an unpack where the first of its
/// parts is needed.
static void joinPacks(Block *block) {
  for (auto op : llvm::to_vector(block->getOps<PackOp>())) {
    Operation *last = nullptr;
    for (Value part : op.getParts()) {
      Operation *producer = part.getDefiningOp();
      if (producer && producer->getBlock() == block &&
          (!last || last->isBeforeInBlock(producer)))
        last = producer;
    }
    if (last)
      op->moveAfter(last);
  }
  for (auto op : llvm::to_vector(block->getOps<UnpackOp>()))
    moveToFirstUse(op);
}

void joinTransfers(Block *block) {
  joinStarts(block);
  joinReshapes(block);
  joinPacks(block);
}

} // namespace whale
