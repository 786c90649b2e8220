//===- AxisPropagationShares.cpp - Work that each device does a part of --===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the layouts decided so far, parameters that are split, and the uses of a
// value. Out: further ways to split an operation, layouts that are wished for,
// and what other operations will want.
//
// No product or convolution that depends on a split parameter is computed whole
// by every device. Where its operands don't decide, the parameter does: the
// gradient that will be added to it is best made in its layout. Of the sums
// that such products leave, one is made for all operations that need it, whole
// or scattered. Cost: wishes and gathered parameters are found in one walk
// each. What others want is asked of all uses of a value, each with the
// operands of its user. As each user asks, that is quadratic in the uses of a
// value.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/Attention.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Sharding/AxisPropagation.h"
#include "whale/Sharding/ParameterSplits.h"
#include "whale/Sharding/PlacementAttrs.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

static bool isHeavy(Operation *op) {
  return isa<hlo::DotGeneralOp, hlo::ConvolutionOp>(op) || isAttention(op);
}

/// Whether the operation must be computed in parts.
bool AxisPropagation::mustSplit(Operation *op) {
  if (!isHeavy(op) || options.policy(op) != AxisPolicy::Cheapest ||
      options.parts(op) <= 1)
    return false;
  auto isWished = [&](Value result) { return wishes.contains(result); };
  return llvm::any_of(op->getResults(), isWished) ||
         llvm::any_of(op->getOperands(), [&](Value operand) {
           AxisState state = getState(operand);
           return state.isSplit() || state.isPartial();
         });
}

/// Adds the split along a factor, if there is one, once and where it can be.
void AxisPropagation::addSplit(Operation *op, const OpRule &rule,
                               std::optional<SubFactor> sub,
                               SmallVectorImpl<Candidate> &candidates) {
  if (sub && canSplit(op, rule, *sub) &&
      llvm::none_of(candidates,
                    [&](const Candidate &other) { return other.sub == *sub; }))
    candidates.push_back(splitCandidate(op, rule, *sub));
}

/// Every way to split the operation that the program's pieces allow.
void AxisPropagation::addSplits(Operation *op, const OpRule &rule,
                                SmallVectorImpl<Candidate> &candidates) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    for (const DimPiece &piece : options.pieces(operand))
      addSplit(op, rule, findSubFactor(rule, rule.operands[index], piece),
               candidates);
}

/// Ways to split an operation that uses a sum of parts, each device with the
/// sum of its own rows alone. Small sums are made whole at once: scattered ones
/// have devices meet twice.
void AxisPropagation::addScatters(Operation *op, const OpRule &rule,
                                  SmallVectorImpl<Candidate> &candidates) {
  AxisState sum = AxisState::partial(Reduction::Sum);
  size_t first = candidates.size();
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    if (getState(operand) != sum || isForeign(op, operand) ||
        !options.passesPartial(op, operand) ||
        byteSeconds(op, operand, Exchange::Kind::AllReduce) <
            options.exchange(op, Exchange::Kind::AllReduce, 0))
      continue;
    for (const DimPiece &piece : options.pieces(operand))
      addSplit(op, rule, findSubFactor(rule, rule.operands[index], piece),
               candidates);
  }
  for (Candidate &candidate : llvm::drop_begin(candidates, first))
    candidate.isScatter = true;
}

/// Whether an operation can be split so. Where parts read rows of their
/// neighbours these must be devices, not moments, and each a run of rows.
bool AxisPropagation::canSplit(Operation *op, const OpRule &rule,
                               SubFactor sub) {
  const Factor &factor = rule.factors[sub.factor];
  if (factor.kind == FactorKind::Blocked)
    return false;
  return !rule.findWindow(sub.factor) ||
         (options.policy(op) == AxisPolicy::Cheapest &&
          sub.extent * sub.minor == factor.extent);
}

/// A convolution with a gathered parameter is split along an image if it can
/// be.
void AxisPropagation::keepSpatial(Operation *op, const OpRule &rule,
                                  SmallVectorImpl<Candidate> &candidates) {
  auto isSpatial = [&](const Candidate &candidate) {
    return candidate.sub && rule.findWindow(candidate.sub->factor);
  };
  auto isGathered = [&](Value value) { return gathered.contains(value); };
  if (llvm::any_of(op->getOperands(), isGathered) &&
      llvm::any_of(candidates, isSpatial))
    llvm::erase_if(candidates, std::not_fn(isSpatial));
}

/// Gathered parameters stay what they are when they are moved.
void AxisPropagation::findGathered() {
  gathered = options.gathered;
  SmallVector<Value> values(gathered.begin(), gathered.end());
  while (!values.empty())
    for (OpOperand &use : values.pop_back_val().getUses()) {
      SmallVector<Value> next;
      if (Value moved = passesOn(use))
        next.push_back(moved);
      if (isa<YieldOp>(use.getOwner()))
        next = resultsOfYielded(use);
      for (Value value : next)
        if (gathered.insert(value))
          values.push_back(value);
    }
}

/// Whether what has or changes the form of a parameter, but not its elements,
/// stays as the parameter is stored, so that less is gathered behind it.
static bool staysStored(OpOperand &use) {
  return isa<hlo::ConvertOp, hlo::ReshapeOp, hlo::SliceOp, hlo::DynamicSliceOp,
             hlo::ReducePrecisionOp>(use.getOwner()) &&
         use.getOperandNumber() == 0;
}

/// Stored parameters stay what they are when they are moved.
void AxisPropagation::findStored() {
  stored = options.stored;
  SmallVector<Value> values(stored.begin(), stored.end());
  while (!values.empty()) {
    for (OpOperand &use : values.pop_back_val().getUses()) {
      Operation *op = use.getOwner();
      SmallVector<Value> next;
      if (staysStored(use))
        next.push_back(op->getResult(0));
      else if (isa<YieldOp>(op) && isa<TaskGraphOp>(op->getParentOp()))
        next = resultsOfYielded(use);
      for (Value value : next)
        if (stored.insert(value))
          values.push_back(value);
    }
  }
}

/// The layout of an operand as an operation sees it: a stored parameter is
/// gathered by what uses it, and moved as it is stored.
AxisState AxisPropagation::stateFor(Operation *op, Value value) const {
  AxisState state = getState(value);
  bool isUsed =
      stored.contains(value) && options.policy(op) == AxisPolicy::Batch &&
      !(op->getNumResults() == 1 && stored.contains(op->getResult(0)));
  return isUsed ? AxisState::replicated() : state;
}

/// Adds splits of an operation that uses a sum of parts along which the next
/// value of a shared argument is split: others will scatter it, such as a
/// gradient for its norm, and so may each iteration of a scan what it stacks.
void AxisPropagation::addWished(Operation *op, const OpRule &rule,
                                SmallVectorImpl<Candidate> &candidates) {
  bool isCheapest = options.policy(op) == AxisPolicy::Cheapest;
  if (!isCheapest && !op->getParentOfType<hlo::WhileOp>())
    return;
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (auto it = wishes.find(operand); it != wishes.end() &&
                                        getState(operand).isPartial() &&
                                        (isCheapest || !isForeign(op, operand)))
      addSplit(op, rule,
               findSubFactor(rule, rule.operands[index], it->second.piece),
               candidates);
}

/// What is added to a split parameter, or otherwise combined with it element
/// by element, should come in its layout.
void AxisPropagation::findWishes() {
  for (Value parameter :
       llvm::concat<const Value>(options.parameters, options.gathered))
    for (OpOperand &use : parameter.getUses()) {
      Operation *op = use.getOwner();
      if (op->getNumResults() == 1 &&
          op->getResult(0).getType() == parameter.getType() &&
          llvm::all_equal(op->getOperandTypes()))
        for (Value operand : op->getOperands())
          if (operand != parameter)
            wish(operand, getState(parameter));
    }
  Operation *end = function.front().getTerminator();
  for (auto [index, fed] : llvm::enumerate(options.feeds))
    if (fed >= 0)
      if (Value argument = function.getArgument(fed);
          options.shared.contains(argument))
        wish(end->getOperand(index), getState(argument));
}

/// Carries a wish from a value to what it is computed from, up to products and
/// convolutions. The first wish counts.
void AxisPropagation::wish(Value root, AxisState wanted) {
  SmallVector<std::pair<Value, AxisState>> list{{root, wanted}};
  while (!list.empty()) {
    auto [value, state] = list.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !wishes.try_emplace(value, state).second || isHeavy(op))
      continue;
    unsigned index = cast<OpResult>(value).getResultNumber();
    if (auto loop = dyn_cast<hlo::WhileOp>(op)) {
      list.push_back(
          {loop.getBody().front().getTerminator()->getOperand(index), state});
    } else if (auto moments = dyn_cast<MicroBatchesOp>(op)) {
      if (index < moments.getNumReduced())
        for (Region &body : moments.getBodies())
          list.push_back(
              {body.front().getTerminator()->getOperand(index), state});
    } else if (isa<TaskGraphOp>(op) || hlo::isBranch(op)) {
      for (Region &region : op->getRegions())
        list.push_back(
            {region.front().getTerminator()->getOperand(index), state});
    } else if (const std::optional<OpRule> &rule = ruleOf(op)) {
      std::optional<SubFactor> sub =
          findSubFactor(*rule, rule->results[index], state.piece);
      if (!sub)
        continue;
      for (auto [operand, dims] : llvm::zip(op->getOperands(), rule->operands))
        if (std::optional<DimPiece> piece = findPiece(*rule, dims, *sub))
          list.push_back({operand, AxisState::split(*piece)});
    }
  }
}

/// Finds what reaches a sum over moments through operations that are linear in
/// it.
void AxisPropagation::findTerms() {
  SmallVector<Value> list;
  function.walk([&](MicroBatchesOp loop) {
    for (unsigned i = 0; i < loop.getNumReduced(); ++i)
      if (cast<ReductionAttr>(loop.getReductions()[i]).getValue() ==
          Reduction::Sum)
        for (Region &body : loop.getBodies())
          list.push_back(body.front().getTerminator()->getOperand(i));
  });
  while (!list.empty()) {
    Value value = list.pop_back_val();
    if (!terms.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (!op)
      continue;
    unsigned index = cast<OpResult>(value).getResultNumber();
    if (auto loop = dyn_cast<hlo::WhileOp>(op))
      list.push_back(loop.getBody().front().getTerminator()->getOperand(index));
    else if (isa<TaskGraphOp>(op) || hlo::isBranch(op))
      for (Region &region : op->getRegions())
        list.push_back(region.front().getTerminator()->getOperand(index));
    else if (const std::optional<OpRule> &rule = ruleOf(op))
      for (const SmallVector<unsigned, 2> &together : rule->linear)
        for (unsigned operand : together)
          list.push_back(op->getOperand(operand));
  }
}

/// Seconds for the bytes of an exchange, without those for devices to meet.
double AxisPropagation::byteSeconds(Operation *op, Value value,
                                    Exchange::Kind kind) const {
  return options.exchange(op, kind, double(getTensorBytes(value.getType()))) -
         options.exchange(op, kind, 0);
}

/// Seconds that a result will need to get from this state to where it is used:
/// a partial one must be reduced, and a split one brought to the layout that is
/// wished for. What moments add up is reduced behind the last one, with all
/// else that the sum is made of.
double AxisPropagation::outlookSeconds(Operation *op, Value result,
                                       AxisState state) {
  auto it = wishes.find(result);
  AxisState wanted = it == wishes.end() ? AxisState() : it->second;
  if (state == wanted || state.isReplicated())
    return 0;
  if (state.isSplit() && wanted.isFree())
    return 0;
  if (state.isPartial() && wanted.isFree() && terms.contains(result) &&
      !anyUse(result, nullptr, [&](OpOperand &use) {
        return use.getOwner()->getParentOfType<MicroBatchesOp>() &&
               wantsReduced(use, lookThroughTaskGraph(result));
      }))
    return 0;
  return transferSeconds(op, result, state,
                         wanted.isFree() ? AxisState::replicated() : wanted);
}

/// Whether some use of the value, but for those of `except`, is accepted; what
/// TaskGraphs yield is used where their results are.
bool AxisPropagation::anyUse(
    Value value, Operation *except,
    llvm::function_ref<bool(OpOperand &)> accepts) const {
  SmallVector<Value> values{lookThroughTaskGraph(value)};
  while (!values.empty()) {
    for (OpOperand &use : values.pop_back_val().getUses()) {
      Operation *op = use.getOwner();
      if (isa<YieldOp>(op))
        llvm::append_range(values, resultsOfYielded(use));
      else if (op != except && accepts(use))
        return true;
    }
  }
  return false;
}

/// The value, and the results of TaskGraphs and micro-batches that stand for
/// it.
const AxisPropagation::Names &AxisPropagation::namesOf(Value value) {
  Value root = lookThroughTaskGraph(value);
  auto [it, isNew] = names.try_emplace(root);
  Names &all = it->second;
  if (!isNew)
    return all;
  all.insert(root);
  for (size_t i = 0; i < all.size(); ++i)
    for (OpOperand &use : all[i].getUses())
      if (isa<YieldOp>(use.getOwner()))
        all.insert_range(resultsOfYielded(use));
  return all;
}

/// Whether the value is brought into this layout already, for another operation
/// on the same devices.
bool AxisPropagation::isMovedAnyway(Operation *op, Value value,
                                    AxisState wanted) {
  const void *devices = options.devices(op);
  const Names &all = namesOf(value);
  size_t count = 0;
  for (Value name : all)
    if (auto it = moves.find(name); it != moves.end())
      for (const Move &move : it->second)
        if (move.devices == devices && move.state == wanted)
          count += move.count;
  if (count == 0 || count > op->getNumOperands())
    return count != 0;
  for (OpOperand &operand : op->getOpOperands())
    if (all.contains(operand.get()))
      if (auto it = required.find(&operand);
          it != required.end() && it->second == wanted)
        --count;
  return count != 0;
}

/// The state in which an operation that is still to be decided will want an
/// operand, as far as its others say: those that are split are followed. Free
/// where they say nothing.
AxisState AxisPropagation::followedState(OpOperand &use) {
  Operation *op = use.getOwner();
  const std::optional<OpRule> &rule = ruleOf(op);
  if (!rule || !options.scatters || options.policy(op) != AxisPolicy::Cheapest)
    return {};
  AxisState followed;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    AxisState state = getState(operand);
    if (index == use.getOperandNumber() || !state.isSplit())
      continue;
    std::optional<SubFactor> sub =
        findSubFactor(*rule, rule->operands[index], state.piece);
    if (!sub)
      continue;
    if (std::optional<DimPiece> piece =
            findPiece(*rule, rule->operands[use.getOperandNumber()], *sub))
      return AxisState::split(*piece);
    followed = AxisState::replicated();
  }
  if (!followed.isFree() || options.shared.empty())
    return followed;
  // What goes into the next value of a shared argument comes in its layout.
  for (auto [index, result] : llvm::enumerate(op->getResults()))
    if (auto it = wishes.find(result); it != wishes.end())
      if (std::optional<SubFactor> sub =
              findSubFactor(*rule, rule->results[index], it->second.piece))
        if (std::optional<DimPiece> piece =
                findPiece(*rule, rule->operands[use.getOperandNumber()], *sub))
          return AxisState::split(*piece);
  return followed;
}

/// Whether somebody but `except` wants a value in this state, so that it is
/// there for others.
bool AxisPropagation::isWantedAnyway(Value value, Operation *except,
                                     AxisState wanted) {
  Value root = lookThroughTaskGraph(value);
  AxisState state = getState(root);
  auto isFollowed = [&](auto accepts) {
    return anyUse(root, except, [&](OpOperand &use) {
      return !required.contains(&use) && accepts(followedState(use));
    });
  };
  if (state.isPartial() && wanted.isReplicated())
    return !isFollowed([](AxisState followed) { return followed.isSplit(); }) &&
           anyUse(root, except,
                  [&](OpOperand &use) { return wantsReduced(use, root); });
  if (!state.isPartial() && !isHeavy(except))
    return false;
  return isFollowed([&](AxisState followed) { return followed == wanted; });
}

/// Whether an operation cannot use a partial value (the TaskGraph results that
/// stand for `root` included) as it is.
bool AxisPropagation::wantsReduced(OpOperand &use, Value root) {
  Operation *op = use.getOwner();
  if (auto it = required.find(&use); it != required.end())
    return it->second.isReplicated();
  if (isa<func::ReturnOp>(op) || hlo::isControlFlow(op))
    return true;
  if (isa<hlo::ReturnOp, hlo::OptimizationBarrierOp>(op))
    return false;
  if (AxisState followed = followedState(use); !followed.isFree())
    return followed.isReplicated();
  const std::optional<OpRule> &rule = ruleOf(op);
  if (!rule || !options.passesPartial(op, root) || isForeign(op, root) ||
      options.policy(op) == AxisPolicy::Whole || mustSplit(op))
    return true;
  // Where it has other uses, to reduce it once costs no more than to reduce a
  // result as large: the gradient of a norm needs the sum of a product's parts
  // for its result and for those of its parameters.
  auto isSpared = [&](const SmallVector<unsigned, 2> &together) {
    return together.size() == 1 && op->getNumResults() == 1 &&
           !terms.contains(op->getResult(0)) &&
           getTensorBytes(op->getResult(0).getType()) >=
               getTensorBytes(root.getType()) &&
           anyUse(root, op, [](OpOperand &) { return true; });
  };
  // A sum, as far as is known, of nothing but partial values.
  auto isLinear = [&](const SmallVector<unsigned, 2> &together) {
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      bool isIn = llvm::is_contained(together, index);
      if (lookThroughTaskGraph(operand) == root) {
        if (!isIn)
          return false;
        continue;
      }
      AxisState state = getState(operand);
      bool isKnown = !state.isFree() || isa<BlockArgument>(operand);
      if (isIn && isKnown && !state.isPartial() && !mayBePartialZero(operand))
        return false;
    }
    return !isSpared(together);
  };
  return llvm::none_of(rule->linear, isLinear);
}

} // namespace whale
