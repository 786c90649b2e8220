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
/// accepts, where it depends on any, and on no update.
bool TimeAxis::comesFrom(Value value,
                         llvm::function_ref<bool(Value)> isSought) {
  llvm::SetVector<Value> values;
  values.insert(value);
  bool found = false;
  for (unsigned i = 0; i < values.size(); ++i) {
    Operation *producer = values[i].getDefiningOp();
    if (!producer || producer->getBlock() != &main.front())
      continue;
    if (phaseOf(producer) == Phase::Apply)
      return false;
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

/// Whether an operation of the backward pass is computed of gradients that have
/// come through a layer.
bool TimeAxis::isBehindLayers(Operation *op) {
  llvm::SetVector<Operation *> ops;
  ops.insert(op);
  for (unsigned i = 0; i < ops.size(); ++i) {
    if (usesParameters(ops[i]))
      return true;
    for (Value read : getReads(ops[i]))
      if (Operation *producer = read.getDefiningOp();
          producer && phaseOf(producer) == Phase::Backward &&
          !isRematerialized(producer))
        ops.insert(producer);
  }
  return false;
}

LogicalResult TimeAxis::checkStatistics() {
  if (statistics.empty())
    return success();
  // As the layers follow on the statistic, so do theirs in the backward pass
  // come before its gradient, a sum over all samples. Others, such as that of a
  // loss which is no sum over samples, are none of a statistic.
  Operation *gradient = nullptr;
  auto isGradient = [&](Value value) {
    Operation *made =
        getState(value).isPartial() ? findSum(value) : value.getDefiningOp();
    if (!made || phaseOf(made) != Phase::Backward || isRematerialized(made) ||
        !isBehindLayers(main.front().findAncestorOpInBlock(*made)))
      return false;
    gradient = made;
    return true;
  };
  for (Operation &op : main.front().without_terminator()) {
    if (phaseOf(&op) != Phase::Backward || !getLoop(&op) ||
        isRematerialized(&op))
      continue;
    for (OpOperand *operand : findWaiting(&op).operands)
      if (comesFrom(operand->get(), isGradient)) {
        // A value and its gradient have one type.
        auto *statistic = llvm::find_if(statistics, [&](const auto &entry) {
          Operation *sum = findSum(findMix(*entry.second).get());
          return sum && sum->getResultTypes() == gradient->getResultTypes();
        });
        return emitMixes(
            *(statistic == statistics.end() ? statistics.front() : *statistic)
                 .second);
      }
  }
  return success();
}

} // namespace whale
