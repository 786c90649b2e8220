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
// them takes over the strategy that it begins with; what has no producer with
// one then takes that of its first user, in reverse order. Updates are followed
// from a parameter's next value back, through operations of its shape.
// Constants follow their users. Cost: each pass is linear in the operations and
// their uses.
//
//===----------------------------------------------------------------------===//

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

  /// Forward and backward operations: the latest producer, else a user.
  void joinGradient() {
    for (auto &[op, info] : step)
      if (!info.strategy && !info.constant && info.phase != Phase::Apply)
        info.strategy = fromProducers(op, info);
    for (auto &[op, info] : llvm::reverse(step))
      if (!info.strategy && !info.constant && info.phase != Phase::Apply)
        info.strategy = fromUsers(op, /*ofApply=*/false);
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
        info.strategy = fromUsers(op, /*ofApply=*/true);
  }

  void joinConstants() {
    for (auto &[op, info] : llvm::reverse(step))
      if (info.constant && !info.strategy)
        info.strategy = fromUsers(op, /*ofApply=*/true);
  }

private:
  const StepOp *lookup(Operation *op) {
    auto it = step.find(ancestorInMain(op, body));
    return it == step.end() ? nullptr : &it->second;
  }

  /// A backward operation prefers the TaskGraph of the forward value that it
  /// uses to that of the cotangent, which is the one behind.
  StrategyAttr fromProducers(Operation *op, const StepOp &info) {
    Operation *latest = nullptr;
    bool latestIsForward = false;
    forEachRead(op, [&](Value value) {
      Operation *producer = ancestorInMain(value.getDefiningOp(), body);
      const StepOp *from = lookup(producer);
      if (!from || from->constant || !from->strategy)
        return;
      bool isForward =
          info.phase == Phase::Backward && from->phase == Phase::Forward;
      if (!latest || (isForward && !latestIsForward) ||
          (isForward == latestIsForward && latest->isBeforeInBlock(producer))) {
        latest = producer;
        latestIsForward = isForward;
      }
    });
    return latest ? lookup(latest)->strategy : nullptr;
  }

  StrategyAttr fromUsers(Operation *op, bool ofApply) {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers()) {
      Operation *ancestor = ancestorInMain(user, body);
      const StepOp *info = lookup(ancestor);
      if (!info || !info->strategy || (info->phase == Phase::Apply && !ofApply))
        continue;
      if (!first || ancestor->isBeforeInBlock(first))
        first = ancestor;
    }
    return first ? lookup(first)->strategy : nullptr;
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
