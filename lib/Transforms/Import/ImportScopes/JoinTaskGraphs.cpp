//===- JoinTaskGraphs.cpp - TaskGraphs of operations outside of scopes ----===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the operations of @main with their phases, and the strategies of those in
// scopes. Out: a strategy for the others.
//
// Each rule is a pass over the operations in their order, so that a chain of
// them takes over the strategy that it begins with, that of its latest
// producer; what has no producer with one then takes that of its first user, in
// reverse order, and both are repeated for what is read beside such a user. So
// that samples don't come back to a TaskGraph, forward a producer's is not
// taken if it feeds that of another producer, nor a user's if that of another
// user feeds it; backward it is the other way round. Updates are followed from
// a parameter's next value back, through operations of its shape. Constants
// follow their users. Cost: each pass is linear in the operations and their
// uses; they are repeated as long as any joins.
//
//===----------------------------------------------------------------------===//

#include "OrderTaskGraphs.h"
#include "StepAnalysis.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Transforms/Feedback.h"

using namespace mlir;

namespace whale {

namespace {

class Joiner {
public:
  Joiner(Step &step, func::FuncOp main, StrategyOfOp scopeOf)
      : step(step), body(&main.front()), scopeOf(scopeOf),
        nextValues(findFeedback(main)) {}

  /// Forward and backward operations: producers, else users.
  void joinGradient() {
    order = TaskGraphOrder(step, body);
    findBackwardUsers();
    // What has joined its users gives others a producer in a TaskGraph.
    joinProducers();
    while (joinUsers() && joinProducers())
      ;
  }

  /// Apply operations: the parameter that they update.
  void joinApply() {
    findParameters();
    for (auto [index, result] : llvm::enumerate(nextValues)) {
      Value argument = body->getArgument(index);
      StrategyAttr strategy = parameters.lookup(argument);
      if (result && strategy)
        followUpdate(body->getTerminator()->getOperand(*result),
                     getShape(argument), strategy);
    }
    for (auto &[op, info] : step)
      if (!info.strategy && !info.constant && info.phase == Phase::Apply)
        info.strategy = fromUpdate(op);
    for (auto &[op, info] : llvm::reverse(step))
      if (!info.strategy && !info.constant && info.phase == Phase::Apply)
        info.strategy = fromUsers(op, /*ofApply=*/true, /*last=*/false);
  }

  void joinConstants() {
    for (auto &[op, info] : llvm::reverse(step))
      if (info.constant && !info.strategy)
        info.strategy = fromUsers(op, /*ofApply=*/true, /*last=*/false);
  }

private:
  /// Whether any operation has joined its producers.
  bool joinProducers() {
    bool joined = false;
    for (auto &[op, info] : step)
      if (!info.strategy && !info.constant && info.phase != Phase::Apply) {
        info.strategy = fromProducers(op, info);
        noteFeeds(op, info);
        joined |= bool(info.strategy);
      }
    return joined;
  }

  /// Whether any operation has joined its users.
  bool joinUsers() {
    bool joined = false;
    for (auto &[op, info] : llvm::reverse(step))
      if (!info.strategy && !info.constant && info.phase != Phase::Apply) {
        info.strategy = fromUsers(op, /*ofApply=*/false,
                                  /*last=*/info.phase == Phase::Backward);
        noteUsers(op, info);
        joined |= bool(info.strategy);
      }
    return joined;
  }

  const StepOp *lookup(Operation *op) {
    auto it = step.find(ancestorInMain(op, body));
    return it == step.end() ? nullptr : &it->second;
  }

  StrategyAttr fromProducers(Operation *op, const StepOp &info) {
    StrategyAttr strategy =
        info.phase == Phase::Backward
            ? fromCotangents(op)
            : fromProducers(op, Phase::Forward, /*last=*/true);
    // Else it follows an update, or another gradient.
    return strategy ? strategy : fromProducers(op, std::nullopt, /*last=*/true);
  }

  /// The strategies of the producers of a phase, each with its latest one.
  llvm::MapVector<StrategyAttr, Operation *>
  getProducers(Operation *op, std::optional<Phase> phase) {
    llvm::MapVector<StrategyAttr, Operation *> producers;
    forEachRead(op, [&](Value value) {
      Operation *producer = ancestorInMain(value.getDefiningOp(), body);
      const StepOp *from = lookup(producer);
      if (!from || from->constant || !from->strategy ||
          (phase && from->phase != phase))
        return;
      Operation *&latest = producers[from->strategy];
      if (!latest || latest->isBeforeInBlock(producer))
        latest = producer;
    });
    return producers;
  }

  /// The strategies of the users, each with its first one.
  llvm::MapVector<StrategyAttr, Operation *> getUsers(Operation *op,
                                                      bool ofApply) {
    llvm::MapVector<StrategyAttr, Operation *> users;
    for (Operation *user : op->getUsers()) {
      Operation *ancestor = ancestorInMain(user, body);
      const StepOp *info = lookup(ancestor);
      if (!info || !info->strategy || (info->phase == Phase::Apply && !ofApply))
        continue;
      Operation *&first = users[info->strategy];
      if (!first || ancestor->isBeforeInBlock(first))
        first = ancestor;
    }
    return users;
  }

  /// Drops the TaskGraphs that samples leave before another one, or enter
  /// behind another one.
  void keepEnds(llvm::MapVector<StrategyAttr, Operation *> &candidates,
                bool last) {
    auto all = candidates;
    candidates.remove_if([&](const auto &candidate) {
      return llvm::any_of(all, [&](const auto &other) {
        return last ? order.isBefore(candidate.first, other.first)
                    : order.isBefore(other.first, candidate.first);
      });
    });
  }

  /// That of the latest producer of a phase, but none that samples leave before
  /// they reach another producer's, or, unless `last`, behind another's.
  StrategyAttr fromProducers(Operation *op, std::optional<Phase> phase,
                             bool last) {
    auto producers = getProducers(op, phase);
    keepEnds(producers, last);
    auto latest = llvm::max_element(producers, [](auto &one, auto &other) {
      return one.second->isBeforeInBlock(other.second);
    });
    return latest == producers.end() ? nullptr : latest->first;
  }

  /// That of the first user, likewise. Where updates count, any will do.
  StrategyAttr fromUsers(Operation *op, bool ofApply, bool last) {
    auto users = getUsers(op, ofApply);
    if (!ofApply)
      keepEnds(users, last);
    auto first = llvm::min_element(users, [](auto &one, auto &other) {
      return one.second->isBeforeInBlock(other.second);
    });
    return first == users.end() ? nullptr : first->first;
  }

  /// A backward operation prefers the TaskGraph of the forward value that it
  /// uses to that of the cotangent, which is the one behind. It is in none
  /// behind that of a cotangent, and in none before one that it feeds.
  StrategyAttr fromCotangents(Operation *op) {
    StrategyAttr most = fromProducers(op, Phase::Backward, /*last=*/false);
    StrategyAttr strategy = fromProducers(op, Phase::Forward, /*last=*/true);
    if (!strategy || (most && order.isBefore(most, strategy)))
      strategy = most;
    StrategyAttr least = backwardUsers.lookup(op);
    if (strategy && least && order.isBefore(strategy, least) &&
        !(most && order.isBefore(most, least)))
      return least;
    return strategy;
  }

  /// For each backward operation outside of scopes the last of the TaskGraphs
  /// of scopes that it feeds backward.
  void findBackwardUsers() {
    for (auto &[op, info] : llvm::reverse(step)) {
      if (info.strategy || info.phase != Phase::Backward)
        continue;
      StrategyAttr last;
      for (Operation *user : op->getUsers()) {
        Operation *ancestor = ancestorInMain(user, body);
        const StepOp *to = lookup(ancestor);
        if (!to || to->phase != Phase::Backward)
          continue;
        StrategyAttr strategy =
            to->strategy ? to->strategy : backwardUsers.lookup(ancestor);
        if (strategy && (!last || order.isBefore(last, strategy)))
          last = strategy;
      }
      if (last)
        backwardUsers[op] = last;
    }
  }

  /// What an operation that has joined reads orders TaskGraphs, too: else two
  /// that don't feed each other in scopes could do so by what joins them.
  void noteFeeds(Operation *op, const StepOp &info) {
    for (auto [strategy, producer] : getProducers(op, info.phase))
      note(strategy, info.strategy, *info.phase);
  }

  void noteUsers(Operation *op, const StepOp &info) {
    for (auto [strategy, user] : getUsers(op, /*ofApply=*/false))
      if (lookup(user)->phase == info.phase)
        note(info.strategy, strategy, *info.phase);
  }

  void note(StrategyAttr from, StrategyAttr to, Phase phase) {
    if (from && to && phase == Phase::Forward)
      order.addFeed(from, to);
    else if (from && to)
      order.addFeed(to, from);
  }

  /// A state argument belongs to the TaskGraph that first uses it forward.
  void findParameters() {
    for (auto &[op, info] : step) {
      if (!info.strategy || info.phase == Phase::Apply)
        continue;
      Operation *user = op;
      StrategyAttr strategy = info.strategy;
      forEachRead(op, [&](Value value) {
        auto argument = dyn_cast<BlockArgument>(value);
        if (!argument || argument.getOwner() != body ||
            !nextValues[argument.getArgNumber()] || parameters.count(value))
          return;
        StrategyAttr inside = insideOf(user, value);
        parameters[value] = inside ? inside : strategy;
      });
    }
  }

  /// The scope in which the steps of the loop or branch `op` first use `value`,
  /// or the slices and re-shapings of it.
  StrategyAttr insideOf(Operation *op, Value value) {
    SmallVector<Value> values;
    auto use = [&](Value alias) {
      for (OpOperand &use : alias.getUses()) {
        Operation *user = use.getOwner();
        if (auto loop = dyn_cast<stablehlo::WhileOp>(user))
          values.push_back(loop.getBody().getArgument(use.getOperandNumber()));
        else if (op->isProperAncestor(user) && movesData(user))
          llvm::append_range(values, user->getResults());
        else if (op->isProperAncestor(user))
          if (StrategyAttr strategy = scopeOf(user))
            return strategy;
      }
      return StrategyAttr();
    };
    if (op->getNumRegions() == 0)
      return nullptr;
    values.push_back(value);
    for (size_t i = 0; i < values.size(); ++i)
      if (StrategyAttr strategy = use(values[i]))
        return strategy;
    return nullptr;
  }

  /// Gives the parameter's strategy to the elementwise chain that ends in its
  /// next value.
  void followUpdate(Value value, ArrayRef<int64_t> shape,
                    StrategyAttr strategy) {
    SmallVector<Value> values = {value};
    while (!values.empty()) {
      Operation *op = values.pop_back_val().getDefiningOp();
      auto it = step.find(op);
      if (it == step.end() || it->second.strategy || it->second.constant ||
          it->second.phase != Phase::Apply || op->getNumResults() != 1 ||
          getShape(op->getResult(0)) != shape)
        continue;
      it->second.strategy = strategy;
      llvm::append_range(values, op->getOperands());
    }
  }

  /// The operand of the update's shape decides, a parameter before a gradient;
  /// a factor that all updates share has another shape.
  StrategyAttr fromUpdate(Operation *op) {
    StrategyAttr best;
    int bestRank = 0;
    forEachRead(op, [&](Value value) {
      StrategyAttr strategy = parameters.lookup(value);
      bool isParameter = static_cast<bool>(strategy);
      if (!isParameter) {
        const StepOp *from = lookup(value.getDefiningOp());
        if (!from || from->constant)
          return;
        strategy = from->strategy;
      }
      if (!strategy)
        return;
      bool sameShape = op->getNumResults() != 0 &&
                       getShape(value) == getShape(op->getResult(0));
      int rank = 1 + 2 * sameShape + isParameter;
      if (rank > bestRank) {
        best = strategy;
        bestRank = rank;
      }
    });
    return best;
  }

  static ArrayRef<int64_t> getShape(Value value) {
    auto type = dyn_cast<ShapedType>(value.getType());
    return type ? type.getShape() : ArrayRef<int64_t>();
  }

  Step &step;
  Block *body;
  StrategyOfOp scopeOf;
  SmallVector<std::optional<unsigned>> nextValues;
  DenseMap<Value, StrategyAttr> parameters;
  TaskGraphOrder order;
  DenseMap<Operation *, StrategyAttr> backwardUsers;
};

} // namespace

void joinTaskGraphs(Step &step, func::FuncOp main, StrategyAttr defaultStrategy,
                    StrategyOfOp scopeOf) {
  Joiner joiner(step, main, scopeOf);
  if (defaultStrategy) {
    for (auto &[op, info] : step)
      if (!info.strategy && !info.constant && info.phase != Phase::Apply)
        info.strategy = defaultStrategy;
  } else {
    joiner.joinGradient();
  }
  joiner.joinApply();
  if (defaultStrategy)
    for (auto &[op, info] : step)
      if (!info.strategy && !info.constant)
        info.strategy = defaultStrategy;
  joiner.joinConstants();
}

} // namespace whale
