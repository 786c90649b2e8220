//===- AxisPropagation.cpp - One mesh axis over a program ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The walk over the function, and the choice of a layout for one operation.
// Demands, regions and split parameters are in the files beside.
//
// Candidates for an operation are splits that its rule carries over from an
// operand, a partial sum where it is linear in one, the whole, and ways to
// scatter a sum. Each has the seconds of its computation, of bringing operands
// into place, and an outlook on its results; of the cheapest the first is
// taken. Cost: a few candidates for each visit of an operation; bodies of loops
// are visited several times, within a limit for the function.
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/AxisPropagation.h"
#include "mlir/Transforms/RegionUtils.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Sharding/ParameterSplits.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Sharding/Reducers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// Moving a parameter that was seeded as split undoes the strategy, so that its
/// seconds count a thousand times: all but tiny moves are avoided. Parameters
/// don't come before all other costs, for where a model has fewer heads than a
/// group has devices, tiny moves save a lot. With the costs compared in such an
/// order `split(256) twice` of benchmarks/plan.py takes 97 s by the cost model,
/// in place of 55 s.
static constexpr double parameterWeight = 1000;

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

AxisState AxisPropagation::getState(Value value) const {
  // The results of a task graph are the values that it yields.
  return states.lookup(lookThroughTaskGraph(value));
}

AxisState AxisPropagation::getRequired(OpOperand &operand) const {
  auto it = required.find(&operand);
  return it == required.end() ? AxisState() : it->second;
}

void AxisPropagation::setRequired(OpOperand &operand, AxisState state) {
  forgetRequired(operand);
  required[&operand] = state;
  if (!isa<YieldOp>(operand.getOwner()))
    ++moveOf(operand, state).count;
}

void AxisPropagation::forgetRequired(OpOperand &operand) {
  auto it = required.find(&operand);
  if (it == required.end())
    return;
  if (!isa<YieldOp>(operand.getOwner()))
    --moveOf(operand, it->second).count;
  required.erase(it);
}

AxisPropagation::Move &AxisPropagation::moveOf(OpOperand &operand,
                                               AxisState state) {
  const void *devices = options.devices(operand.getOwner());
  SmallVector<Move, 0> &all = moves[operand.get()];
  auto *move = llvm::find_if(all, [&](const Move &move) {
    return move.devices == devices && move.state == state;
  });
  if (move != all.end())
    return *move;
  return all.emplace_back(Move{state, devices});
}

std::optional<SubFactor> AxisPropagation::getChoice(Operation *op) const {
  auto it = choices.find(op);
  if (it == choices.end())
    return std::nullopt;
  return it->second;
}

const std::optional<OpRule> &AxisPropagation::ruleOf(Operation *op) {
  return options.rules->of(op);
}

/// Whether the value is produced on other devices than `op` runs on. Partial
/// results don't travel: they are reduced on the way.
bool AxisPropagation::isForeign(Operation *op, Value value) const {
  Operation *producer = findProducer(value);
  return producer && options.devices(producer) != options.devices(op);
}

bool AxisPropagation::mayBePartialZero(Value value) const {
  return zeroCarries.contains(value) || isZero(value);
}

/// Calls `visit` with what an operation and its regions read from outside.
void AxisPropagation::forEachInput(Operation *root,
                                   llvm::function_ref<void(Value)> visit) {
  visitUsedValuesDefinedAbove(
      root->getRegions(), [&](OpOperand *operand) { visit(operand->get()); });
  llvm::for_each(root->getOperands(), visit);
}

/// Whether the operation, a loop with all that is in it included, can be
/// computed anywhere: all that it reads is whole or waits itself.
bool AxisPropagation::isLazy(Operation *root) {
  bool isLazy = true;
  forEachInput(root,
               [&](Value value) { isLazy &= !stateFor(root, value).isCut(); });
  if (!isLazy)
    return false;
  root->walk([&](Operation *op) {
    bool isConstrained = op->getNumResults() == 1 &&
                         options.constraints.contains(op->getResult(0));
    isLazy &= !isConstrained && !mustSplit(op);
  });
  return isLazy;
}

bool AxisPropagation::hasSingleOperand(Operation *op) const {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return getState(operand).isSingle();
  });
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void AxisPropagation::addCopy(Operation &original, Operation &copy) {
  for (auto [from, to] :
       llvm::zip_equal(original.getOpOperands(), copy.getOpOperands()))
    required[&to] = getRequired(from);
  for (auto [from, to] :
       llvm::zip_equal(original.getResults(), copy.getResults()))
    states[to] = states.lookup(from);
}

void AxisPropagation::addCopy(Region &original, Region &copy) {
  for (auto [from, to] :
       llvm::zip_equal(original.getArguments(), copy.getArguments()))
    states[to] = states.lookup(from);
  for (auto [from, to] : llvm::zip_equal(original.getOps(), copy.getOps())) {
    addCopy(from, to);
    for (auto [inner, innerCopy] :
         llvm::zip_equal(from.getRegions(), to.getRegions()))
      addCopy(inner, innerCopy);
  }
}

//===----------------------------------------------------------------------===//
// Walking
//===----------------------------------------------------------------------===//

void AxisPropagation::run() {
  for (auto [value, state] : options.seeds)
    states[value] = state;
  parameters = options.parameters;
  // A round is a visit of a loop's body. When all are used up, each loop keeps
  // the layout that it has: this bounds the time, exponential in the depth of
  // loops otherwise. Six loops inside one another may try two layouts each: 2^6
  // rounds of the innermost. And where loops are few, four inside one another
  // may use all six rounds of visitWhile: 6 + 6^2 + 6^3 + 6^4 = 1554 in all.
  // Five would take 9330. The bound is generous.
  constexpr int64_t roundsPerLoop = 64, leastRounds = 4096;
  roundsLeft = leastRounds;
  size_t values = function.getNumArguments(), operands = 0;
  function.walk([&](Operation *op) {
    if (isa<hlo::WhileOp>(op))
      roundsLeft += roundsPerLoop;
    values += op->getNumResults();
    operands += op->getNumOperands();
  });
  // They would grow, and be hashed again, a dozen times.
  states.reserve(values);
  moves.reserve(values);
  required.reserve(operands);
  findWishes();
  findTerms();
  findGathered();
  findStored();
  visitBlock(function.front());
  visitReturn(function.front().getTerminator());

  // What nothing demanded is dead or unused: whole everywhere.
  auto settle = [&](Value value) {
    if (getState(value).isFree())
      demand(value, AxisState::replicated());
  };
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    llvm::for_each(op->getResults(), settle);
    if (isa<hlo::ReduceOp, hlo::ReduceWindowOp, hlo::ScatterOp, hlo::SortOp,
            hlo::SelectAndScatterOp>(op))
      return WalkResult::skip();
    for (Region &region : op->getRegions())
      llvm::for_each(region.getArguments(), settle);
    return WalkResult::advance();
  });
  seconds = countSeconds();
}

/// Computation, and each value once for each layout that it is brought into,
/// where it is made: that is where reshards will be. What is reduced at the
/// boundary to the optimizer travels together, so that devices meet once.
double AxisPropagation::countSeconds() {
  double sum = 0;
  bool haveMet = false;
  llvm::DenseMap<Value, SmallVector<AxisState, 2>> moved;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    sum += costs.lookup(op);
    for (OpOperand &operand : op->getOpOperands()) {
      AxisState wanted = getRequired(operand);
      if (wanted.isFree())
        continue;
      Value value = lookThroughTaskGraph(operand.get());
      AxisState state = states.lookup(value);
      if (!state.isCut() || wanted == state ||
          llvm::is_contained(moved[value], wanted))
        continue;
      moved[value].push_back(wanted);
      Operation *at = value.getDefiningOp();
      double once = transferSeconds(op, value, state, wanted);
      if (state.isPartial() && !options.passesPartial(op, value) &&
          std::exchange(haveMet, true))
        once -= options.exchange(op, Exchange::Kind::AllReduce, 0);
      if (parameters.contains(value))
        once *= parameterWeight;
      sum += once *
             options.repeats(at ? at : value.getParentRegion()->getParentOp());
    }
  });
  return sum;
}

void AxisPropagation::visitBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    visit(&op);
}

void AxisPropagation::visit(Operation *op) {
  if (auto graph = dyn_cast<TaskGraphOp>(op))
    return visitBlock(graph.getBody().front());
  if (followsSingle(op))
    return visitSingle(op);
  if (isa<hlo::WhileOp>(op)) {
    // What comes after all moments carries whole values.
    if (options.keepsPartials && options.policy(op) == AxisPolicy::Whole)
      visitWhile(op, SmallVector<AxisState>(op->getNumResults(),
                                            AxisState::replicated()));
    else if (!isLazy(op))
      visitWhile(op, {});
    return;
  }
  if (hlo::isBranch(op))
    return visitCase(op);
  if (isa<MicroBatchesOp>(op))
    return visitMicroBatches(op);
  if (isa<hlo::OptimizationBarrierOp>(op))
    return visitBarrier(op);
  if (op->getNumResults() == 1)
    if (auto it = options.constraints.find(op->getResult(0));
        it != options.constraints.end())
      return visitConstraint(op, it->second);
  const std::optional<OpRule> &rule = ruleOf(op);
  AxisPolicy policy = options.policy(op);
  if (!rule || policy == AxisPolicy::Whole)
    return visitWhole(op);
  // A value that can be computed anywhere waits for a use that decides.
  if (!isLazy(op))
    decide(op, *rule);
}

//===----------------------------------------------------------------------===//
// Micro-batches of one sample
//===----------------------------------------------------------------------===//

/// Whether an operation can be left to one part: in a loop or branch that all
/// of them run it can't.
bool AxisPropagation::mayBeSingle(Operation *op) const {
  Operation *parent = op->getParentOp();
  if (isa<TaskGraphOp>(parent))
    parent = parent->getParentOp();
  return isa<MicroBatchesOp>(parent) && options.policy(op) != AxisPolicy::Whole;
}

/// Whether an operation is computed by the part that has what it uses, in its
/// regions, too.
bool AxisPropagation::followsSingle(Operation *op) const {
  if (!mayBeSingle(op) || options.policy(op) != AxisPolicy::Batch)
    return false;
  return op
      ->walk([&](Operation *inner) {
        return hasSingleOperand(inner) ? WalkResult::interrupt()
                                       : WalkResult::advance();
      })
      .wasInterrupted();
}

/// A barrier passes each of its operands on as it is.
void AxisPropagation::visitBarrier(Operation *op) {
  for (auto [operand, result] :
       llvm::zip(op->getOpOperands(), op->getResults())) {
    AxisState state = getState(operand.get());
    if (state.isFree() || state.isSingle() ||
        (state.isPartial() && isForeign(op, operand.get())))
      state = AxisState::replicated();
    require(operand, state);
    states[result] = state;
  }
}

/// The program asks for its operand in this layout.
void AxisPropagation::visitConstraint(Operation *op, AxisState wanted) {
  require(op->getOpOperand(0), wanted);
  states[op->getResult(0)] = wanted;
}

/// Results that feed an argument are left in its layout; partial ones are
/// reduced.
void AxisPropagation::visitReturn(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    int64_t fed = index < options.feeds.size() ? options.feeds[index] : -1;
    AxisState state = getState(operand.get());
    if (fed >= 0) {
      BlockArgument argument = function.getArgument(fed);
      if (getState(argument).isFree())
        demand(argument, state.isSplit() ? state : AxisState::replicated());
      state = getState(argument);
    }
    if (state.isFree() || state.isPartial() || state.isSingle())
      state = AxisState::replicated();
    require(operand, state);
  }
}

//===----------------------------------------------------------------------===//
// Choosing a layout for one operation
//===----------------------------------------------------------------------===//

void AxisPropagation::decide(Operation *op, const OpRule &rule) {
  AxisPolicy policy = options.policy(op);
  SmallVector<Candidate, 0> candidates;
  bool isShared = mustSplit(op);

  bool hinted = false;
  if (policy == AxisPolicy::Batch && options.batchChoices) {
    auto it = options.batchChoices->find(op);
    if (it != options.batchChoices->end()) {
      addSplit(op, rule, it->second, candidates);
      hinted = !candidates.empty();
    }
  }
  if (!hinted) {
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      AxisState state = stateFor(op, operand);
      if (!state.isSplit())
        continue;
      addSplit(op, rule, findSubFactor(rule, rule.operands[index], state.piece),
               candidates);
    }
    bool isFollowed = !candidates.empty();
    if (policy == AxisPolicy::Cheapest)
      for (auto [index, result] : llvm::enumerate(op->getResults()))
        if (auto it = wishes.find(result); it != wishes.end())
          addSplit(op, rule,
                   findSubFactor(rule, rule.results[index], it->second.piece),
                   candidates);
    if (!options.shared.empty() &&
        (policy == AxisPolicy::Cheapest || !isFollowed))
      addWished(op, rule, candidates);
    if (isShared) {
      addSplits(op, rule, candidates);
      keepSpatial(op, rule, candidates);
    }
    bool follows = policy == AxisPolicy::Batch
                       ? isFollowed
                       : isShared && !candidates.empty();
    bool mayScatter = options.scatters && policy == AxisPolicy::Cheapest &&
                      !isShared && candidates.empty();
    std::optional<Candidate> linear;
    if (!follows)
      linear = linearCandidate(op, rule);
    if (linear)
      candidates.push_back(std::move(*linear));
    if (!follows && mayBeSingle(op) && hasSingleOperand(op))
      candidates.push_back(uniformCandidate(op, AxisState::single()));
    if (!follows && !(linear && options.keepsPartials))
      candidates.push_back(uniformCandidate(op, AxisState::replicated()));
    if (mayScatter)
      addScatters(op, rule, candidates);
  }
  for (Candidate &candidate : candidates)
    evaluate(op, candidate);
  for (Candidate &candidate : candidates)
    for (auto [result, state] : llvm::zip(op->getResults(), candidate.results))
      if (candidate.isScatter && state.isSplit())
        candidate.outlook += byteSeconds(op, result, Exchange::Kind::AllGather);
      else if (isShared || state.isPartial() || wishes.contains(result))
        candidate.outlook += outlookSeconds(op, result, state);
  // Ties go to the earlier one: splits in the order of operands, then partial
  // results, then the whole, then splits of a sum.
  const Candidate *best =
      llvm::min_element(candidates, [](const Candidate &a, const Candidate &b) {
        return a.seconds + a.outlook < b.seconds + b.outlook;
      });
  apply(op, *best);
}

AxisPropagation::Candidate AxisPropagation::splitCandidate(Operation *op,
                                                           const OpRule &rule,
                                                           SubFactor sub) {
  Candidate candidate;
  candidate.sub = sub;
  const Factor &factor = rule.factors[sub.factor];
  auto stateOf = [&](const DimFactors &dims) {
    std::optional<DimPiece> piece = findPiece(rule, dims, sub);
    return piece ? AxisState::split(*piece) : AxisState::replicated();
  };
  for (const DimFactors &dims : rule.operands)
    candidate.required.push_back(stateOf(dims));
  if (const OperandWindow *read = rule.findWindow(sub.factor);
      read && read->window.hasHalo()) {
    RowWindow window = read->window;
    window.grain *= sub.minor;
    candidate.required[read->operand].window = window;
  }
  for (const DimFactors &dims : rule.results) {
    if (factor.kind == FactorKind::Reduction && !findPiece(rule, dims, sub))
      candidate.results.push_back(AxisState::partial(factor.reduction));
    else if (factor.kind == FactorKind::MaskedGather)
      candidate.results.push_back(AxisState::partial(Reduction::Sum));
    else
      candidate.results.push_back(stateOf(dims));
  }
  return candidate;
}

/// Whether each element of the result is one of an operand's, or such ones
/// combined by the reduction.
static bool movesTerms(Operation *op, Reduction reduction) {
  return combinesTerms(op, reduction) ||
         isa<hlo::BroadcastInDimOp, hlo::TransposeOp, hlo::ReshapeOp,
             hlo::SliceOp, hlo::ConcatenateOp, hlo::ReverseOp,
             hlo::DynamicSliceOp, hlo::DynamicUpdateSliceOp>(op);
}

/// An operation on terms of a reduction for which a whole value among them
/// stands for itself, as often as it is reduced: of a maximum, not of a sum.
std::optional<AxisPropagation::Candidate>
AxisPropagation::movedCandidate(Operation *op, const OpRule &rule) {
  AxisState terms;
  for (Value operand : op->getOperands())
    if (AxisState state = getState(operand); state.isPartial()) {
      if (!options.passesPartial(op, operand) || isForeign(op, operand))
        return std::nullopt;
      terms = state;
    }
  // Where what is partial is reduced in the end, combining alone makes less of
  // that.
  auto mayMove = options.keepsPartials ? movesTerms : combinesTerms;
  if (!terms.isPartial() || !isIdempotent(terms.reduction) ||
      !mayMove(op, terms.reduction))
    return std::nullopt;
  Candidate candidate;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    AxisState state = getState(operand);
    // No index is a term.
    bool mayBeTerm =
        rule.linear.empty() || llvm::is_contained(rule.linear.front(), index);
    if (state.isCut() && (state != terms || !mayBeTerm))
      return std::nullopt;
    candidate.required.push_back(state.isCut() ? terms
                                               : AxisState::replicated());
  }
  candidate.results.assign(op->getNumResults(), terms);
  return candidate;
}

std::optional<AxisPropagation::Candidate>
AxisPropagation::linearCandidate(Operation *op, const OpRule &rule) {
  if (std::optional<Candidate> moved = movedCandidate(op, rule))
    return moved;
  AxisState sum = AxisState::partial(Reduction::Sum);
  for (const SmallVector<unsigned, 2> &together : rule.linear) {
    bool fits = true, any = false;
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      bool isPartial = getState(operand) == sum && !isForeign(op, operand) &&
                       options.passesPartial(op, operand);
      bool inSet = llvm::is_contained(together, index);
      any |= isPartial && inSet;
      fits &= inSet ? isPartial || mayBePartialZero(operand) : !isPartial;
    }
    if (!fits || !any)
      continue;
    Candidate candidate;
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      bool wantsPartial =
          llvm::is_contained(together, index) &&
          (getState(operand) == sum || zeroCarries.contains(operand));
      // A whole zero is a partial sum of zero as it is.
      candidate.required.push_back(wantsPartial ? sum
                                                : AxisState::replicated());
    }
    candidate.results.assign(op->getNumResults(), sum);
    return candidate;
  }
  return std::nullopt;
}

AxisPropagation::Candidate AxisPropagation::uniformCandidate(Operation *op,
                                                             AxisState state) {
  Candidate candidate;
  candidate.required.assign(op->getNumOperands(), state);
  candidate.results.assign(op->getNumResults(), state);
  return candidate;
}

/// Seconds of the computation, in parts if it is split.
double AxisPropagation::workSeconds(Operation *op,
                                    std::optional<SubFactor> sub) const {
  AxisWork work = options.work(op);
  if (!sub || sub->extent <= 0)
    return work.whole;
  // Where there are few grains, the largest share is what counts.
  double parts = double(options.parts(op));
  double extent = double(sub->extent);
  double largest = std::ceil(extent / parts) / extent;
  return std::min(work.whole, work.shared * largest * parts);
}

void AxisPropagation::evaluate(Operation *op, Candidate &candidate) {
  candidate.seconds = workSeconds(op, candidate.sub);
  for (auto [operand, state] :
       llvm::zip(op->getOperands(), candidate.required)) {
    double cost = reshardSeconds(op, operand, state);
    candidate.seconds += cost;
    // What is whole at hand won't be later on.
    if (state.window && getState(operand).isReplicated())
      candidate.outlook +=
          transferSeconds(op, operand, state.withoutWindow(), state);
    // Somebody pays for what is wanted anyway.
    if (cost > 0 && !parameters.contains(operand) &&
        isWantedAnyway(operand, op, state))
      candidate.outlook -= cost;
  }
}

/// Seconds until an operand is laid out as wanted.
double AxisPropagation::reshardSeconds(Operation *op, Value value,
                                       AxisState wanted) {
  AxisState state = getState(value);
  if (state.isFree() || state == wanted)
    return 0;
  if (state.isReplicated() || isMovedAnyway(op, value, wanted))
    return 0;
  double seconds = transferSeconds(op, value, state, wanted);
  return parameters.contains(value) ? seconds * parameterWeight : seconds;
}

/// The same from a layout that is split or partial.
double AxisPropagation::transferSeconds(Operation *op, Value value,
                                        AxisState from, AxisState to) const {
  using Kind = Exchange::Kind;
  bool toParts = to.isSplit() || to.isSingle();
  Kind kind = from.isPartial()
                  ? (toParts ? Kind::ReduceScatter : Kind::AllReduce)
                  : (toParts ? Kind::AllToAll : Kind::AllGather);
  double bytes = double(getTensorBytes(value.getType()));
  double seconds = 0;
  if (to.window) {
    const RowWindow &window = *to.window;
    double rows = double(window.rowsBefore() + window.rowsAfter());
    seconds = options.halo(op, bytes / double(options.parts(op)),
                           bytes * rows / double(window.rows));
    if (from == to.withoutWindow())
      return seconds;
  }
  return seconds + options.exchange(op, kind, bytes);
}

} // namespace whale
