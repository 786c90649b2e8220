//===- AxisPropagationDemands.cpp - Layouts that are asked for ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the layout in which an operation wants a value. Out: the layouts of this
// value and of what it is computed from, where these were not decided yet.
//
// A value without a layout is produced in the first one that is wanted of it,
// and so is what it is computed from, as far back as that has none either: up
// to all operations of a program. What is still to be done is therefore a stack
// of tasks, the next one on top, and not of calls. A split value that is then
// wanted otherwise becomes whole, if every device can compute it whole from
// what it holds whole anyway. Cost: a task for each operand of an operation
// that gets its layout or becomes whole. Besides, each demand of a split value
// in another layout walks back to all that the value is computed from, up to
// whole values: quadratic in a long chain of such values.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Sharding/AxisPropagation.h"
#include "whale/Sharding/ParameterSplits.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Sharding/Reducers.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// Whether the value is made, or given, in a micro-batch.
static bool isOfMicroBatch(Value value) {
  Operation *parent = value.getParentRegion()->getParentOp();
  return isa<MicroBatchesOp>(parent) ||
         parent->getParentOfType<MicroBatchesOp>();
}

/// Whether every device could compute the value whole from what it holds whole
/// anyway.
bool AxisPropagation::canBeMadeWhole(Value root) {
  llvm::SetVector<Value> values;
  values.insert(root);
  for (size_t i = 0; i < values.size(); ++i) {
    Operation *op = values[i].getDefiningOp();
    if (!op || mustSplit(op) || !(ruleOf(op) || lazyLoops.contains(op)))
      return false;
    forEachInput(op, [&](Value input) {
      if (!getState(input).isReplicated())
        values.insert(input);
    });
  }
  return true;
}

/// Does what has been put on top of the first `count` tasks.
void AxisPropagation::finish(size_t count) {
  while (tasks.size() > count) {
    Task task = tasks.pop_back_val();
    switch (task.kind) {
    case Task::Require:
      setRequired(*task.operand, task.state);
      startDemand(task.operand->get(), task.state);
      break;
    case Task::Demand:
      startDemand(task.value, task.state);
      break;
    case Task::MakeWhole:
      startMakingWhole(task.value);
      break;
    case Task::Whole:
      startWhole(task.op);
      break;
    case Task::WholeLoop:
      visitWhile(task.op, SmallVector<AxisState>(task.op->getNumResults(),
                                                 AxisState::replicated()));
      break;
    case Task::Branches:
      finishBranches(cast<OpResult>(task.value), task.state);
      break;
    }
  }
}

/// What is started in order is done in order: the first goes on top.
void AxisPropagation::startRequiring(Operation *op,
                                     ArrayRef<AxisState> wanted) {
  for (auto [operand, state] :
       llvm::reverse(llvm::zip_equal(op->getOpOperands(), wanted)))
    tasks.push_back({Task::Require, state, &operand});
}

void AxisPropagation::apply(Operation *op, const Candidate &candidate) {
  size_t count = tasks.size();
  start(op, candidate);
  finish(count);
}

void AxisPropagation::start(Operation *op, const Candidate &candidate) {
  costs[op] = workSeconds(op, candidate.sub) * options.repeats(op);
  if (candidate.sub)
    choices[op] = *candidate.sub;
  else
    choices.erase(op);
  for (auto [result, state] : llvm::zip(op->getResults(), candidate.results))
    states[result] = state;
  for (OpOperand &operand : op->getOpOperands())
    if (parameters.contains(operand.get()))
      if (Value moved = passesOn(operand))
        parameters.insert(moved);
  startRequiring(op, candidate.required);
}

void AxisPropagation::visitWhole(Operation *op) {
  size_t count = tasks.size();
  startWhole(op);
  finish(count);
}

void AxisPropagation::startWhole(Operation *op) {
  start(op, uniformCandidate(op, AxisState::replicated()));
}

void AxisPropagation::visitSingle(Operation *op) {
  size_t count = tasks.size();
  startSingle(op);
  finish(count);
}

void AxisPropagation::startSingle(Operation *op) {
  AxisState single = AxisState::single();
  SmallVector<OpOperand *> operands;
  op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    bool hasPlaces = hlo::isControlFlow(inner);
    for (Region &region : inner->getRegions())
      for (Value argument : region.getArguments())
        if (hasPlaces)
          states[argument] = single;
    for (Value result : inner->getResults())
      states[result] = single;
    for (OpOperand &operand : inner->getOpOperands())
      operands.push_back(&operand);
    choices.erase(inner);
    if (!hasPlaces && inner->getNumResults() != 0)
      costs[inner] = workSeconds(inner, std::nullopt) * options.repeats(inner);
    // The bodies of reductions work on scalars.
    return hasPlaces ? WalkResult::advance() : WalkResult::skip();
  });
  for (OpOperand *operand : llvm::reverse(operands))
    tasks.push_back({Task::Require, single, operand});
}

void AxisPropagation::require(OpOperand &operand, AxisState state) {
  setRequired(operand, state);
  demand(operand.get(), state);
}

/// Produces a free value in the layout that is wanted of it. One that was
/// produced split before, but could be made whole without communication, is
/// made whole, so that both users cut their part out of it.
void AxisPropagation::demand(Value value, AxisState state) {
  size_t count = tasks.size();
  startDemand(value, state);
  finish(count);
}

void AxisPropagation::startDemand(Value value, AxisState state) {
  state = state.withoutWindow();
  value = lookThroughTaskGraph(value);
  // Which part has it is known of micro-batches alone.
  if (state.isSingle() && !isOfMicroBatch(value))
    state = AxisState::replicated();
  AxisState current = getState(value);
  if (!current.isFree()) {
    if ((current.isSplit() || current.isSingle()) && current != state &&
        canBeMadeWhole(value))
      tasks.push_back({Task::MakeWhole, {}, nullptr, value});
    return;
  }
  if (isa<BlockArgument>(value)) {
    if (state.isPartial() && !zeroCarries.contains(value))
      state = AxisState::replicated();
    states[value] = state;
    return;
  }
  Operation *op = value.getDefiningOp();
  if (state.isSingle()) {
    auto isFree = [&](Value result) { return getState(result).isFree(); };
    if (mayBeSingle(op) && llvm::all_of(op->getResults(), isFree)) {
      if (isa<hlo::WhileOp>(op))
        lazyLoops.insert(op);
      return startSingle(op);
    }
    state = AxisState::replicated();
  }
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (isa<hlo::WhileOp>(op))
    return startLoop(op, index, state);
  if (hlo::isBranch(op))
    return startBranches(cast<OpResult>(value), state);
  const std::optional<OpRule> &rule = ruleOf(op);
  if (rule && state.isSplit() && options.policy(op) != AxisPolicy::Whole)
    if (std::optional<SubFactor> sub =
            findSubFactor(*rule, rule->results[index], state.piece))
      if ((rule->factors[sub->factor].kind == FactorKind::Parallel ||
           rule->factors[sub->factor].kind == FactorKind::MaskedScatter) &&
          canSplit(op, *rule, *sub))
        return start(op, splitCandidate(op, *rule, *sub));
  startWhole(op);
}

/// Makes a value whole after all that it is computed from.
void AxisPropagation::startMakingWhole(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || getState(value).isReplicated())
    return;
  if (lazyLoops.contains(op))
    return startWholeLoop(op);
  tasks.push_back({Task::Whole, {}, nullptr, {}, op});
  for (Value operand : llvm::reverse(op->getOperands()))
    tasks.push_back({Task::MakeWhole, {}, nullptr, operand});
}

/// Produces a result of a loop that has waited in the layout that is wanted of
/// it, if no iteration exchanges anything then. Otherwise it is whole, and
/// everybody takes a part of it.
void AxisPropagation::startLoop(Operation *op, unsigned index,
                                AxisState wanted) {
  lazyLoops.insert(op);
  if (wanted.isSplit()) {
    SmallVector<AxisState> carry(op->getNumResults());
    carry[index] = wanted;
    visitWhile(op, carry);
    if (!exchanges(op))
      return;
  }
  startWholeLoop(op);
}

void AxisPropagation::startWholeLoop(Operation *op) {
  llvm::SetVector<Value> inputs;
  forEachInput(op, [&](Value input) { inputs.insert(input); });
  tasks.push_back({Task::WholeLoop, {}, nullptr, {}, op});
  for (Value input : llvm::reverse(inputs))
    tasks.push_back({Task::Demand, AxisState::replicated(), nullptr, input});
}

/// Whether the operation, or one inside of it, wants a value in another layout
/// than the devices have it in, or leaves a sum to be added up.
bool AxisPropagation::exchanges(Operation *root) {
  bool any = llvm::any_of(root->getResults(), [&](Value result) {
    return getState(result).isPartial();
  });
  root->walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      AxisState wanted = getRequired(operand);
      AxisState state = getState(operand.get());
      any |= state.isCut() && !wanted.isFree() && wanted != state;
    }
  });
  return any;
}

} // namespace whale
