//===- AxisPropagationRegions.cpp - Layouts through loops and branches ---===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How layouts pass through operations with regions. A value that a loop carries
// has one layout before, in and after the loop: candidates are tried until
// nothing changes. The branches of a case agree on the layout of each result. A
// sum over micro-batches stays partial where one of them leaves it so, and is
// reduced once.
//
// Cost: each round of a loop visits its body anew, at most six times. In nested
// loops the rounds multiply, so all loops share a budget of them (see run);
// when it is used up, a visit takes one round.
//
//===----------------------------------------------------------------------===//

#include "LoopStops.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Sharding/AxisPropagation.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Sharding/Reducers.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// Forgets what an earlier visit decided inside a region.
void AxisPropagation::clear(Region &region) {
  for (Value argument : region.getArguments()) {
    states.erase(argument);
    zeroCarries.erase(argument);
  }
  region.walk([&](Operation *op) {
    for (Value result : op->getResults())
      states.erase(result);
    for (Region &inner : op->getRegions())
      for (Value argument : inner.getArguments())
        states.erase(argument);
    for (OpOperand &operand : op->getOpOperands())
      forgetRequired(operand);
    choices.erase(op);
    costs.erase(op);
  });
}

/// The layout of a carried value starts with that of its initial value; where
/// the body makes another one of a value that starts free (stacked outputs,
/// random bits), whole or zero (an accumulated gradient, which then stays
/// partial and is reduced once after the loop), that one is tried. A partial
/// sum that the body only adds to stays one.
void AxisPropagation::visitWhile(Operation *op, ArrayRef<AxisState> forced) {
  constexpr int maxRounds = 6;
  SmallVector<Carry> carries = startCarries(op, forced);
  bool isLast = false, isSame = false;
  for (int round = 0; !isLast && !isSame; ++round) {
    isLast = round + 1 == maxRounds || roundsLeft <= 0;
    --roundsLeft;
    visitBody(op, carries);
    isSame = true;
    for (auto [i, carry] : llvm::enumerate(carries)) {
      AxisState next = nextState(op, i, carry, isLast);
      isSame &= next == carry.state;
      carry.state = next;
    }
  }
  requireCarries(op, carries);
}

SmallVector<AxisPropagation::Carry>
AxisPropagation::startCarries(Operation *op, ArrayRef<AxisState> forced) {
  SmallVector<Carry> carries(op->getNumOperands());
  for (auto [i, carry] : llvm::enumerate(carries)) {
    AxisState init = getState(op->getOperand(i));
    if (init.isSingle())
      init = AxisState::replicated();
    bool zero = isZero(op->getOperand(i));
    carry.isFlexible = !init.isCut() || zero;
    if (!forced.empty() && !forced[i].isFree())
      carry.state = forced[i];
    else if (!zero)
      carry.state = init;
  }
  return carries;
}

/// Visits the body anew, with these layouts at its begin.
void AxisPropagation::visitBody(Operation *op, ArrayRef<Carry> carries) {
  auto loop = cast<hlo::WhileOp>(op);
  Block &body = loop.getBody().front();
  clear(loop.getBody());
  for (auto [i, carry] : llvm::enumerate(carries)) {
    if (isZero(op->getOperand(i)))
      zeroCarries.insert(body.getArgument(i));
    if (!carry.state.isFree())
      states[body.getArgument(i)] = carry.state;
  }
  visitBlock(body);
  for (auto [argument, yielded] : llvm::zip_equal(
           body.getArguments(), body.getTerminator()->getOperands())) {
    AxisState inside = getState(argument);
    if (inside.isSplit() && getState(yielded).isFree())
      demand(yielded, inside);
  }
}

/// The layout of a carried value for the next round, by what the body makes of
/// it.
AxisState AxisPropagation::nextState(Operation *op, unsigned i, Carry &carry,
                                     bool isLast) {
  Block &body = cast<hlo::WhileOp>(op).getBody().front();
  BlockArgument argument = body.getArgument(i);
  AxisState inside = getState(argument);
  AxisState yielded = getState(body.getTerminator()->getOperand(i));
  bool isAddedTo = llvm::all_of(argument.getUses(), [&](OpOperand &use) {
    return getRequired(use) == inside;
  });
  if (inside.isPartial() && (yielded != inside || !isAddedTo))
    return AxisState::replicated();
  bool isMoved = options.keepsPartials && isIdempotent(yielded.reduction);
  bool mayBePartial =
      isZero(op->getOperand(i)) || inside.isPartial() || isMoved;
  if ((yielded.isPartial() && !mayBePartial) || yielded.isSingle())
    yielded = AxisState::replicated();
  AxisState next = inside.isFree() ? yielded : inside;
  if (next.isFree())
    next = AxisState::replicated();
  // A whole value would do for any wish of the body's; a split or partial one
  // is what the body makes of it.
  bool differs = !yielded.isFree() && yielded != next;
  if (!differs || !carry.isFlexible || isLast)
    return next;
  // Try a layout that the body gives once only.
  carry.isFlexible = carry.state.isFree();
  return yielded;
}

/// Gives the loop's operands, results and both regions the decided layouts.
void AxisPropagation::requireCarries(Operation *op, ArrayRef<Carry> carries) {
  auto loop = cast<hlo::WhileOp>(op);
  Block &body = loop.getBody().front();
  Block &cond = loop.getCond().front();
  for (auto [i, carry] : llvm::enumerate(carries))
    demand(body.getArgument(i), carry.state);
  clear(loop.getCond());
  for (auto [i, carry] : llvm::enumerate(carries)) {
    const AxisState &state = carry.state;
    require(body.getTerminator()->getOpOperand(i), state);
    // A whole zero is a partial sum of zero as it is.
    bool isWholeZero =
        state.isPartial() && !getState(op->getOperand(i)).isPartial();
    require(op->getOpOperand(i), isWholeZero ? AxisState::replicated() : state);
    states[op->getResult(i)] = state;
    states[cond.getArgument(i)] = state;
  }
  visitBlock(cond);
  // On the axis of time, a part that can stop before the others does.
  OpOperand &goesOn = cond.getTerminator()->getOpOperand(0);
  AxisState state = getState(goesOn.get());
  bool isOfPart =
      options.keepsPartials && state.isPartial() && stopsByParts(loop);
  require(goesOn, isOfPart ? state : AxisState::replicated());
}

/// A result that no branch gives a layout to waits until one is demanded.
void AxisPropagation::visitCase(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    require(operand, AxisState::replicated());
  for (Region &region : op->getRegions())
    visitBlock(region.front());
  for (OpResult result : op->getResults()) {
    size_t count = tasks.size();
    startBranches(result, AxisState());
    finish(count);
  }
}

/// Whether the value is the identity of the sum, or other reduction, that a
/// state leaves partial.
static bool isNoTerm(Value value, const AxisState &state) {
  return state.isPartial() && isIdentity(state.reduction, value);
}

static SmallVector<OpOperand *> yieldsOf(OpResult result) {
  SmallVector<OpOperand *> yields;
  for (Region &region : result.getOwner()->getRegions())
    yields.push_back(&region.front().getTerminator()->getOpOperand(
        result.getResultNumber()));
  return yields;
}

/// Whether each branch gives a result in this state, or can.
bool AxisPropagation::allGive(OpResult result, const AxisState &state) const {
  Operation *op = result.getOwner();
  return llvm::all_of(yieldsOf(result), [&](OpOperand *yield) {
    Value value = yield->get();
    AxisState given = getState(value);
    bool passes = !state.isPartial() ||
                  (!isForeign(op, value) && options.passesPartial(op, value));
    return given.isFree() || (given == state && passes) ||
           isNoTerm(value, state);
  });
}

/// The branches of a case agree on the layout of a result: one that some of
/// them give and the others can take, or the one that is wanted of it where
/// none of them gives any. Where there is none, the result is whole. Zeros are
/// terms of any sum as they stand, and the like of other reductions.
void AxisPropagation::startBranches(OpResult result, AxisState wanted) {
  SmallVector<OpOperand *> yields = yieldsOf(result);
  AxisState common = wanted;
  for (OpOperand *yield : yields)
    if (AxisState given = getState(yield->get()); !given.isFree()) {
      common = allGive(result, given) && !given.isSingle()
                   ? given
                   : AxisState::replicated();
      if (common == given)
        break;
    }
  if (common.isFree())
    return;
  tasks.push_back({Task::Branches, common, nullptr, result});
  for (OpOperand *yield : llvm::reverse(yields))
    tasks.push_back({Task::Demand, common, nullptr, yield->get()});
}

/// What is left to do when the branches have been asked for a layout.
void AxisPropagation::finishBranches(OpResult result, AxisState common) {
  if (!allGive(result, common))
    common = AxisState::replicated();
  states[result] = common;
  SmallVector<OpOperand *> yields = yieldsOf(result);
  for (OpOperand *yield : llvm::reverse(yields)) {
    bool isWhole =
        isNoTerm(yield->get(), common) && getState(yield->get()) != common;
    tasks.push_back(
        {Task::Require, isWhole ? AxisState::replicated() : common, yield});
  }
}

/// A sum over moments stays partial where one of them makes a partial sum of
/// it, or a term on a single device, and is reduced once; what others have
/// whole then counts on a single device, too.
void AxisPropagation::visitReduced(MicroBatchesOp loop, unsigned index) {
  AxisState partial = AxisState::partial(
      cast<ReductionAttr>(loop.getReductions()[index]).getValue());
  SmallVector<OpOperand *> terms;
  for (Region &body : loop.getBodies())
    terms.push_back(&body.front().getTerminator()->getOpOperand(index));
  bool isPartial = false, isCutOtherwise = false;
  AxisState common;
  for (OpOperand *term : terms) {
    AxisState state = getState(term->get());
    bool isTerm = state == partial || state.isSingle();
    isPartial |= isTerm;
    isCutOtherwise |= state.isCut() && !isTerm;
    if (state.isPartial() || (!common.isFree() && common != state))
      state = AxisState::replicated();
    if (!state.isFree())
      common = state;
  }
  if (isPartial)
    common = isCutOtherwise ? AxisState::replicated() : partial;
  if (common.isFree())
    common = AxisState::replicated();
  // What is scattered at last may be so at once.
  if (auto wish = wishes.find(loop->getResult(index));
      common == partial && options.scattersSums && wish != wishes.end() &&
      partial.reduction == Reduction::Sum &&
      llvm::all_of(terms, [&](OpOperand *term) {
        return getState(term->get()) == partial;
      }))
    common = wish->second;
  for (OpOperand *term : terms)
    require(*term, common == partial && getState(term->get()) != partial
                       ? AxisState::single()
                       : common);
  states[loop->getResult(index)] = common;
}

/// An argument that carries samples has the layout that was seeded, any other
/// that of its pieces. What leaves a moment is as it was made: moments of other
/// sizes are cut otherwise.
void AxisPropagation::visitMicroBatches(Operation *op) {
  auto loop = cast<MicroBatchesOp>(op);
  for (int64_t m = 0; m < loop.getNumMoments(); ++m)
    for (BlockArgument argument : loop.getBody(m).getArguments()) {
      AxisState piece =
          getState(loop.getSlice(argument.getArgNumber(), m).get());
      if (getState(argument).isFree() && !piece.isFree())
        states[argument] = piece;
    }
  for (Region &body : loop.getBodies())
    visitBlock(body.front());

  for (Region &body : loop.getBodies())
    for (OpOperand &yielded :
         llvm::drop_begin(body.front().getTerminator()->getOpOperands(),
                          loop.getNumReduced())) {
      AxisState state = getState(yielded.get());
      if (state.isFree())
        state = AxisState::replicated();
      require(yielded, state);
      for (Value result : resultsOfYielded(yielded))
        states[result] = state;
    }
  for (unsigned i = 0; i < loop.getNumReduced(); ++i)
    visitReduced(loop, i);
  for (int64_t m = 0; m < loop.getNumMoments(); ++m)
    for (BlockArgument argument : loop.getBody(m).getArguments()) {
      demand(argument, AxisState::replicated());
      require(loop.getSlice(argument.getArgNumber(), m), getState(argument));
    }
}

} // namespace whale
