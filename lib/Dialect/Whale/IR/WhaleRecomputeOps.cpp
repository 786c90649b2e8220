//===- WhaleRecomputeOps.cpp - Values computed again ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifies the constraints listed in WhaleRecomputeOps.td, in the same order.
// Cost: what changes only the form of a value is looked through, up to a
// constant number of operations.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/WhaleRecomputeOps.h"

#include "mlir/IR/OpDefinition.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"

using namespace mlir;
using namespace whale;

/// Gradients are not made from more operations in a row that only change the
/// form of a value.
static constexpr unsigned kMostForms = 64;

/// Whether the result is the operand in another form.
static bool isForm(Operation *op) {
  return isa<ReshardOp>(op) ||
         llvm::is_contained({"stablehlo.broadcast_in_dim", "stablehlo.convert",
                             "stablehlo.reshape", "stablehlo.transpose"},
                            op->getName().getStringRef());
}

bool whale::isRematerialized(Operation *op) {
  bool isFound = false;
  op->getLoc()->walk([&](Location part) {
    auto name = dyn_cast<NameLoc>(part);
    isFound |=
        name && name.getName().getValue().contains("rematted_computation");
    return isFound ? WalkResult::interrupt() : WalkResult::advance();
  });
  return isFound;
}

bool whale::isOfBackward(Value value) {
  for (unsigned steps = 0; steps < kMostForms; ++steps) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    if (auto graph = dyn_cast<TaskGraphOp>(op)) {
      value =
          graph.getYield()->getOperand(cast<OpResult>(value).getResultNumber());
      continue;
    }
    if (isForm(op)) {
      value = op->getOperand(0);
      continue;
    }
    auto graph = op->getParentOfType<TaskGraphOp>();
    return graph && graph.getPhase() == Phase::Backward &&
           !op->hasTrait<OpTrait::ConstantLike>() && op->getNumOperands() > 0 &&
           !isRematerialized(op);
  }
  return false;
}

LogicalResult AfterOp::verify() {
  auto graph = (*this)->getParentOfType<TaskGraphOp>();
  if (!graph)
    return success();
  if (graph.getPhase() != Phase::Backward)
    return emitOpError("is in a ")
           << stringifyPhase(graph.getPhase())
           << " task graph, and only a backward one computes values again";
  if (!isOfBackward(getBehind()))
    return emitOpError("is behind a value that no backward task graph "
                       "computes, so that it could come at any time");
  if (graph.getBody().isAncestor(getValue().getParentRegion()))
    return emitOpError("is of a value that its own task graph computes, and "
                       "not of one that is kept for it");
  return success();
}

#define GET_OP_CLASSES
#include "whale/Dialect/Whale/IR/WhaleRecomputeOps.cpp.inc"
