//===- LoopStops.cpp - Loops in which samples stop on their own -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A carried value is held if the body selects its old elements where the loop's
// condition, computed again in the body, is false. Conditions that depend on
// held values alone then stay false.
//
// Cost: linear in the loop's operations, for each carried value.
//
//===----------------------------------------------------------------------===//

#include "LoopStops.h"

#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// The conditions of single samples, any of which lets the loop go on, or null.
static Value findConditions(hlo::WhileOp loop) {
  auto any = loop.getCond()
                 .front()
                 .getTerminator()
                 ->getOperand(0)
                 .getDefiningOp<hlo::ReduceOp>();
  if (!any || any.getNumOperands() != 2)
    return {};
  Block &body = any.getBody().front();
  return isa<hlo::OrOp>(body.front()) &&
                 body.front().getNextNode() == body.getTerminator()
             ? any->getOperand(0)
             : Value();
}

/// Whether `inBody` is what `inCond` is in the next test, computed from the
/// same carried values; these are added to `read`.
static bool isSame(Value inCond, Value inBody, hlo::WhileOp loop,
                   llvm::BitVector &read) {
  Block *cond = &loop.getCond().front(), *body = &loop.getBody().front();
  llvm::DenseSet<std::pair<Value, Value>> known;
  SmallVector<std::pair<Value, Value>> open;
  auto visit = [&](Value lhs, Value rhs) {
    if (lhs != rhs && known.insert({lhs, rhs}).second)
      open.push_back({lhs, rhs});
    return success();
  };
  (void)visit(inCond, inBody);
  while (!open.empty()) {
    auto [lhs, rhs] = open.pop_back_val();
    auto carried = dyn_cast<BlockArgument>(lhs);
    if (carried && carried.getOwner() == cond) {
      if (rhs != body->getArgument(carried.getArgNumber()))
        return false;
      read.set(carried.getArgNumber());
      continue;
    }
    auto left = dyn_cast<OpResult>(lhs), right = dyn_cast<OpResult>(rhs);
    if (!left || !right || left.getResultNumber() != right.getResultNumber() ||
        left.getOwner()->getBlock() != cond ||
        right.getOwner()->getBlock() != body)
      return false;
    if (!OperationEquivalence::isEquivalentTo(
            left.getOwner(), right.getOwner(), visit,
            [&](Value lhs, Value rhs) { known.insert({lhs, rhs}); },
            OperationEquivalence::IgnoreLocations |
                OperationEquivalence::IgnoreDiscardableAttrs))
      return false;
  }
  return true;
}

/// What a value repeats along dimensions or in another shape.
static Value skipShapes(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<hlo::BroadcastInDimOp, hlo::ReshapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool stopsByParts(hlo::WhileOp loop) {
  Value conditions = findConditions(loop);
  if (!conditions)
    return false;
  Block &body = loop.getBody().front();
  llvm::BitVector held(loop->getNumOperands()), read(loop->getNumOperands());
  llvm::DenseMap<Value, bool> masks;
  for (auto [i, carried, yielded] : llvm::enumerate(
           body.getArguments(), body.getTerminator()->getOperands())) {
    if (yielded == carried) {
      held.set(i);
      continue;
    }
    auto select = yielded.getDefiningOp<hlo::SelectOp>();
    if (!select || select->getOperand(2) != carried)
      continue;
    Value mask = skipShapes(select->getOperand(0));
    auto [it, isNew] = masks.try_emplace(mask);
    if (isNew)
      it->second = isSame(conditions, mask, loop, read);
    if (it->second)
      held.set(i);
  }
  // Conditions that nothing is selected by may depend on anything.
  if (llvm::none_of(masks, [](const auto &mask) { return mask.second; }))
    return false;
  return llvm::all_of(llvm::seq(loop->getNumOperands()), [&](unsigned i) {
    return held[i] || (!read[i] && loop->getResult(i).use_empty());
  });
}

} // namespace whale
