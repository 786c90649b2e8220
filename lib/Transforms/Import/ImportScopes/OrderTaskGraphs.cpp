//===- OrderTaskGraphs.cpp - Which TaskGraph feeds which ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the operations of @main with their phases and the strategies of scopes.
// Out: a rank for each strategy.
//
// What feeds a TaskGraph is closed over the TaskGraphs; its rank is how many
// feed it and are not fed by it, then the first of those that it can't be told
// from. Cost: a bit for each pair of operation and TaskGraph, and the cube of
// the number of TaskGraphs, 64 at a time.
//
//===----------------------------------------------------------------------===//

#include "OrderTaskGraphs.h"
#include "whale/Dialect/Whale/IR/Reads.h"

#include "llvm/ADT/BitVector.h"

using namespace mlir;

namespace whale {

namespace {

class Ranking {
public:
  Ranking(const Step &step, Block *body) : body(body) {
    for (auto &[op, info] : step)
      if (info.strategy && isForward(info) &&
          indices.try_emplace(info.strategy, strategies.size()).second)
        strategies.push_back(info.strategy);
    feeders.resize(strategies.size(), BitVector(strategies.size()));
    for (auto &[op, info] : step)
      if (isForward(info))
        addFeeders(op, info);
    close();
  }

  TaskGraphRank rankOf(unsigned index) const {
    unsigned before = 0, first = index;
    for (unsigned other : feeders[index].set_bits())
      if (!feeders[other][index])
        ++before;
      else
        first = std::min(first, other);
    return {before, first};
  }

  ArrayRef<StrategyAttr> getStrategies() const { return strategies; }

private:
  static bool isForward(const StepOp &info) {
    return !info.constant && info.phase == Phase::Forward;
  }

  /// Adds what the operation reads to its TaskGraph, or leaves it to its users.
  void addFeeders(Operation *op, const StepOp &info) {
    BitVector from(strategies.size());
    forEachRead(op, [&](Value value) {
      Operation *producer = ancestorInMain(value.getDefiningOp(), body);
      if (auto it = sources.find(producer); it != sources.end())
        from |= it->second;
    });
    if (!info.strategy) {
      sources[op] = std::move(from);
      return;
    }
    unsigned index = indices.lookup(info.strategy);
    feeders[index] |= from;
    BitVector self(strategies.size());
    self.set(index);
    sources[op] = std::move(self);
  }

  void close() {
    for (unsigned middle = 0; middle < feeders.size(); ++middle)
      for (BitVector &fed : feeders)
        if (fed[middle])
          fed |= feeders[middle];
  }

  Block *body;
  SmallVector<StrategyAttr> strategies;
  DenseMap<StrategyAttr, unsigned> indices;
  /// For each TaskGraph those that feed it.
  std::vector<BitVector> feeders;
  /// The TaskGraphs whose values an operation hands on.
  DenseMap<Operation *, BitVector> sources;
};

} // namespace

DenseMap<StrategyAttr, TaskGraphRank> rankTaskGraphs(const Step &step,
                                                     Block *body) {
  Ranking ranking(step, body);
  DenseMap<StrategyAttr, TaskGraphRank> ranks;
  for (auto [index, strategy] : llvm::enumerate(ranking.getStrategies()))
    ranks[strategy] = ranking.rankOf(index);
  return ranks;
}

} // namespace whale
