//===- ComputeAgain.cpp - Copies of a forward in its backward -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a chain of forward operations, and those that are not kept. Out: each
// backward task graph makes what it needs of them, before the first operation
// that uses it, from values that are kept and leave the forward.
//
// A copy reads what is kept through a whale.after, behind a gradient that is
// there before that operation, so that nothing computes it earlier; and so it
// is never equal to what it is a copy of. The gradient is an operand of that
// operation, or what the next ones read with its result, or what these are made
// of element by element: one kernel makes both. Cost: linear in the
// operations of the backward and in what is copied, which is sorted, with at
// most kMostSteps operations for each copy's gradient.
//
//===----------------------------------------------------------------------===//

#include "ComputeAgain.h"

#include "mlir/IR/IRMapping.h"
#include "whale/Dialect/Whale/IR/WhaleRecomputeOps.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Step/Costs.h"
#include "whale/Transforms/OpCost.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace whale {

/// A gradient is looked for among what so many operations read.
static constexpr unsigned kMostSteps = 64;

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// Whether every device that has `value` has `other`, too.
static bool isWhere(Value other, Value value) {
  PlacementAttr from = getPlacement(other), to = getPlacement(value);
  return from && to &&
         llvm::all_of(to.getValue().devices(), [&](DeviceId device) {
           return from.getValue().contains(device);
         });
}

/// The operation of the task graph's block that `op` is, or is in.
static Operation *findOwn(TaskGraphOp graph, Operation *op) {
  return graph.getBody().front().findAncestorOpInBlock(*op);
}

using Copies = llvm::DenseSet<Operation *>;

/// Of a gradient that is made element by element, for nothing else than what
/// goes on so, the one that this starts from: one kernel makes of both it and a
/// copy what the copy is for. Products read what is in memory, and so what is
/// copied for what comes before them would be there too early.
static Value findStart(TaskGraphOp graph, Value gradient,
                       llvm::function_ref<bool(Value)> isGradient) {
  for (unsigned i = 0; i < kMostSteps; ++i) {
    Operation *maker = gradient.getDefiningOp();
    if (!maker || maker->getParentOp() != graph || !isLight(maker) ||
        !llvm::all_of(gradient.getUsers(), isLight))
      break;
    auto before = llvm::find_if(maker->getOperands(), isGradient);
    if (before == maker->operand_end())
      break;
    gradient = *before;
  }
  return gradient;
}

/// What is there when `user` is computed, of what backwards have made; null if
/// nothing is. What is computed again is no gradient.
static Value findGradient(TaskGraphOp graph, Operation *user, Value kept,
                          const Copies &copies) {
  auto isGradient = [&](Value value) {
    Operation *maker = value.getDefiningOp();
    if (copies.contains(maker))
      return false;
    bool isThere =
        !maker || maker->getParentOp() != graph || maker->isBeforeInBlock(user);
    return isThere && isOfBackward(value) && isWhere(value, kept);
  };
  llvm::SetVector<Operation *> next;
  next.insert(user);
  for (size_t i = 0; i < next.size() && i < kMostSteps; ++i) {
    for (Value operand : next[i]->getOperands())
      if (isGradient(operand))
        return findStart(graph, operand, isGradient);
    for (Operation *after : next[i]->getUsers())
      if (Operation *own = findOwn(graph, after);
          own && !own->hasTrait<OpTrait::IsTerminator>())
        next.insert(own);
  }
  // What the backward has made last.
  Operation *op = user->getPrevNode();
  for (unsigned i = 0; op && i < kMostSteps; ++i, op = op->getPrevNode())
    for (Value result : op->getResults())
      if (isGradient(result))
        return result;
  return {};
}

/// The first operation of the task graph that uses a value from outside.
static Operation *findFirstUser(TaskGraphOp graph, Value value) {
  Operation *first = nullptr;
  SmallVector<Value> values{value};
  while (!values.empty())
    for (OpOperand &use : values.pop_back_val().getUses()) {
      if (auto yield = dyn_cast<YieldOp>(use.getOwner());
          yield && yield->getParentOp() != graph &&
          isa<TaskGraphOp>(yield->getParentOp())) {
        llvm::append_range(values, resultsOfYielded(use));
        continue;
      }
      Operation *own = findOwn(graph, use.getOwner());
      if (own && (!first || own->isBeforeInBlock(first)))
        first = own;
    }
  return first;
}

bool hasGradients(const ForwardChain &chain, Value value) {
  return llvm::all_of(chain.usesOf(value).backward, [&](Operation *op) {
    auto graph = cast<TaskGraphOp>(op);
    Operation *user = findFirstUser(graph, value);
    return !user || findGradient(graph, user, value, /*copies=*/{});
  });
}

//===----------------------------------------------------------------------===//
// What leaves the forward
//===----------------------------------------------------------------------===//

namespace {

/// The results of task graphs that values inside of them are.
class Leaving {
public:
  /// Has these values leave their task graphs.
  void add(const llvm::SetVector<Value> &values);
  Value get(Value value) const { return outside.lookup_or(value, value); }

private:
  llvm::DenseMap<Value, Value> outside;
};

} // namespace

void Leaving::add(const llvm::SetVector<Value> &values) {
  llvm::MapVector<Operation *, SmallVector<Value>> ofGraphs;
  for (Value value : values)
    if (auto graph =
            dyn_cast<TaskGraphOp>(value.getParentBlock()->getParentOp()))
      ofGraphs[graph].push_back(value);
  for (auto &[op, leaving] : ofGraphs) {
    auto graph = cast<TaskGraphOp>(op);
    SmallVector<Value> missing;
    for (Value value : leaving)
      if (!llvm::is_contained(graph.getYield()->getOperands(), value))
        missing.push_back(value);
    if (!missing.empty()) {
      graph = withResults(graph, missing);
      op->erase();
    }
    for (Value value : leaving) {
      auto yielded = graph.getYield()->getOperands();
      outside[value] =
          graph.getResult(llvm::find(yielded, value) - yielded.begin());
    }
  }
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

namespace {

/// Writes copies of a chain's operations into one backward task graph.
class Copier {
public:
  Copier(const ForwardChain &chain, const llvm::SetVector<Operation *> &again,
         const Leaving &leaving, TaskGraphOp graph)
      : chain(chain), again(again), leaving(leaving), graph(graph) {}

  int64_t run();

private:
  Value copy(Value value, Operation *user);
  void copy(Operation *op, Operation *user);
  void delay(Operation *op, Operation *user);
  Value take(Value value, Operation *user);
  bool isCopied(Operation *op) const;

  const ForwardChain &chain;
  const llvm::SetVector<Operation *> &again;
  const Leaving &leaving;
  TaskGraphOp graph;
  IRMapping copies;
  /// All operations that this has written.
  Copies made;
  llvm::DenseMap<std::pair<Value, Value>, Value> delayed;
  /// What depends on a gradient.
  llvm::DenseSet<Value> isDelayed;
  int64_t count = 0, flops = 0, bytes = 0;
};

} // namespace

/// Whether a copy reads a copy in the place of what the operation makes.
bool Copier::isCopied(Operation *op) const {
  return op && !isa<ReshardOp>(op) &&
         (again.contains(op) || isMadeOfNothing(op));
}

/// What a copy before `user` reads in the place of `value`, if that is not a
/// copy itself.
Value Copier::take(Value value, Operation *user) {
  auto gather = value.getDefiningOp<ReshardOp>();
  if (!gather || !chain.isGatheredAgain(gather))
    return leaving.get(value);
  ReshardOp own = findSameGather(gather, graph);
  if (user->isBeforeInBlock(own))
    own->moveBefore(user);
  return own.getResult();
}

/// Has a copy come behind a gradient, if none of its operands does.
void Copier::delay(Operation *op, Operation *user) {
  if (llvm::any_of(op->getOperands(),
                   [&](Value operand) { return isDelayed.contains(operand); }))
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    // What is made here is made of constants, or gathered here.
    if (value.getParentRegion() == &graph.getBody())
      continue;
    Value gradient = findGradient(graph, user, value, made);
    if (!gradient)
      continue;
    Value &after = delayed[{value, gradient}];
    if (!after) {
      OpBuilder builder(op);
      after = AfterOp::create(builder, op->getLoc(), value.getType(), value,
                              gradient);
      after.getDefiningOp()->setAttr(placementsAttrName,
                                     builder.getArrayAttr(getPlacement(value)));
      made.insert(after.getDefiningOp());
      isDelayed.insert(after);
    }
    operand.set(after);
  }
}

/// Copies an operation before `user`; what it reads has been copied.
void Copier::copy(Operation *op, Operation *user) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isCopied(operand.getDefiningOp())
                           ? copies.lookup(operand)
                           : take(operand, user));
  OpBuilder builder(user);
  Operation *own = builder.clone(*op);
  made.insert(own);
  own->setOperands(operands);
  delay(own, user);
  bool isBehind = llvm::any_of(own->getOperands(), [&](Value operand) {
    return isDelayed.contains(operand);
  });
  for (auto [from, to] : llvm::zip_equal(op->getResults(), own->getResults())) {
    copies.map(from, to);
    if (isBehind)
      isDelayed.insert(to);
  }
  if (!isMadeOfNothing(op)) {
    ++count;
    flops = addCosts(flops, opFlops(op));
    bytes = addCosts(bytes, opBytes(op));
  }
}

/// The copy of a value for `user` and all behind it.
Value Copier::copy(Value value, Operation *user) {
  llvm::SetVector<Operation *> missing;
  SmallVector<Operation *> waiting{value.getDefiningOp()};
  while (!waiting.empty()) {
    Operation *op = waiting.pop_back_val();
    if (copies.contains(op->getResult(0)) || !missing.insert(op))
      continue;
    for (Value operand : op->getOperands())
      if (isCopied(operand.getDefiningOp()))
        waiting.push_back(operand.getDefiningOp());
  }
  SmallVector<Operation *> ordered = missing.takeVector();
  // Constants from outside of the chain come first.
  llvm::stable_sort(ordered, [&](Operation *a, Operation *b) {
    return chain.find(a->getResult(0)) < chain.find(b->getResult(0));
  });
  for (Operation *op : ordered)
    copy(op, user);
  return copies.lookup(value);
}

int64_t Copier::run() {
  auto users = llvm::map_to_vector(graph.getBody().front().without_terminator(),
                                   [](Operation &op) { return &op; });
  for (Operation *user : users)
    user->walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands()) {
        Value value = lookThroughTaskGraph(operand.get());
        Operation *op = value.getDefiningOp();
        if (op && again.contains(op) && isCopied(op) &&
            op->getParentOp() != graph)
          operand.set(copy(value, user));
      }
    });
  if (auto own = graph.getFlops())
    graph.setFlops(addCosts(int64_t(*own), flops));
  if (auto own = graph.getBytes())
    graph.setBytes(addCosts(int64_t(*own), bytes));
  return count;
}

int64_t computeAgain(const ForwardChain &chain,
                     const llvm::SetVector<Operation *> &again) {
  llvm::SetVector<Value> leaves;
  for (Operation *op : again)
    if (!isa<ReshardOp>(op))
      for (Value operand : op->getOperands()) {
        Operation *maker = operand.getDefiningOp();
        if (maker && !again.contains(maker) && !isMadeOfNothing(maker) &&
            chain.find(operand) && !chain.isGatheredAgain(maker))
          leaves.insert(operand);
      }
  Leaving leaving;
  leaving.add(leaves);
  int64_t count = 0;
  // Task graphs are looked for anew: with more results they are others.
  for (auto graph : chain.getBlock().getOps<TaskGraphOp>())
    if (graph.getPhase() == Phase::Backward &&
        groupsOf(graph) == chain.getGroups())
      count += Copier(chain, again, leaving, graph).run();
  return count;
}

} // namespace whale
