//===- WaitForStatistics.cpp - Forwards that wait for all samples ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: operands of which the forward pass needs a statistic of all samples, and
// layers that follow, as of a quantizer between layers. Out: operations that
// may be in a later loop. So the forwards of all micro-batches come first, up
// to the statistic, and what follows is again computed by micro-batches.
//
// That is for statistics without gradients, the extremes and means of
// jax.lax.stop_gradient. A gradient of one needs sums over all samples in the
// backward pass, too: each such layer, as a batch norm, would keep all that
// micro-batches are to save, in both passes. Cost: a walk over @main, and for
// each product one back through all that its operands are computed from.
//
//===----------------------------------------------------------------------===//

#include "TimeAxis.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Dialect/Whale/IR/WhaleRecomputeOps.h"
#include "whale/Transforms/Attributes.h"

using namespace mlir;

namespace whale {

/// Whether all that a value depends on of the loops are values that `isSought`
/// accepts, where it depends on any.
bool TimeAxis::comesFrom(Value value,
                         llvm::function_ref<bool(Value)> isSought) {
  llvm::SetVector<Value> values;
  values.insert(value);
  bool found = false;
  for (unsigned i = 0; i < values.size(); ++i) {
    Operation *producer = values[i].getDefiningOp();
    if (!producer || producer->getBlock() != &main.front())
      continue;
    if (getLoop(producer)) {
      if (!isSought(values[i]))
        return false;
      found = true;
    } else if (turns.lookup(producer) > 0) {
      values.insert_range(getReads(producer));
    }
  }
  return found;
}

bool TimeAxis::takeStatistics(ArrayRef<OpOperand *> mixes) {
  // Whether layers follow on an operation, by operations.
  llvm::DenseSet<Operation *> goesOn;
  for (Operation &op : llvm::reverse(main.front().without_terminator())) {
    bool isFollowed = llvm::any_of(op.getUsers(), [&](Operation *user) {
      return goesOn.contains(main.front().findAncestorOpInBlock(*user));
    });
    if (phaseOf(&op) == Phase::Forward &&
        (isFollowed || (isInLoop(&op) && usesParameters(&op))))
      goesOn.insert(&op);
  }
  bool found = false;
  for (OpOperand *mix : mixes) {
    Operation *op = main.front().findAncestorOpInBlock(*mix->getOwner());
    if (!goesOn.contains(op) || findNestedMix(op) || statistics.contains(op))
      continue;
    // Computed once, or of sums over the samples.
    auto isStatistic = [&](OpOperand *operand) {
      return !isInLoop(operand->get().getDefiningOp()) ||
             comesFrom(operand->get(),
                       [&](Value sum) { return getState(sum).isPartial(); });
    };
    if (llvm::all_of(findWaiting(op).operands, [&](OpOperand *operand) {
          return waitsForUpdate(*operand) || isStatistic(operand);
        })) {
      statistics[op] = mix;
      found = true;
    }
  }
  return found;
}

LogicalResult TimeAxis::checkStatistics() {
  if (statistics.empty())
    return success();
  auto isGradient = [&](Value value) {
    Operation *made =
        getState(value).isPartial() ? findSum(value) : value.getDefiningOp();
    return made && phaseOf(made) == Phase::Backward && !isRematerialized(made);
  };
  for (Operation &op : main.front().without_terminator())
    if (phaseOf(&op) == Phase::Backward && getLoop(&op))
      for (OpOperand *operand : findWaiting(&op).operands)
        if (comesFrom(operand->get(), isGradient))
          return emitMixes(*statistics.front().second);
  return success();
}

} // namespace whale
