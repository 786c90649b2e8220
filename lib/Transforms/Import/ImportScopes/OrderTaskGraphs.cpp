//===- OrderTaskGraphs.cpp - Which TaskGraph feeds which ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What feeds a TaskGraph is closed over the TaskGraphs. Cost: a bit for each
// pair of operation and TaskGraph, and the cube of the number of TaskGraphs, 64
// at a time.
//
//===----------------------------------------------------------------------===//

#include "OrderTaskGraphs.h"
#include "whale/Dialect/Whale/IR/Reads.h"

using namespace mlir;

namespace whale {

static bool isForward(const StepOp &info) {
  return !info.constant && info.phase == Phase::Forward;
}

TaskGraphOrder::TaskGraphOrder(const Step &step, Block *body) {
  for (auto &[op, info] : step)
    if (info.strategy && isForward(info))
      indices.try_emplace(info.strategy, indices.size());
  feeders.resize(indices.size(), BitVector(indices.size()));
  // The TaskGraphs whose values an operation hands on.
  DenseMap<Operation *, BitVector> sources;
  for (auto &[op, info] : step) {
    if (!isForward(info))
      continue;
    BitVector from(indices.size());
    forEachRead(op, [&](Value value) {
      Operation *producer = ancestorInMain(value.getDefiningOp(), body);
      if (auto it = sources.find(producer); it != sources.end())
        from |= it->second;
    });
    if (info.strategy) {
      unsigned index = indices.lookup(info.strategy);
      feeders[index] |= from;
      from.reset();
      from.set(index);
    }
    sources[op] = std::move(from);
  }
  close();
}

void TaskGraphOrder::close() {
  for (unsigned middle = 0; middle < feeders.size(); ++middle)
    for (BitVector &fed : feeders)
      if (fed[middle])
        fed |= feeders[middle];
}

bool TaskGraphOrder::isBefore(StrategyAttr one, StrategyAttr other) const {
  auto from = indices.find(one), to = indices.find(other);
  return from != indices.end() && to != indices.end() &&
         feeders[to->second][from->second] &&
         !feeders[from->second][to->second];
}

void TaskGraphOrder::addFeed(StrategyAttr from, StrategyAttr to) {
  auto first = indices.find(from), last = indices.find(to);
  if (first == indices.end() || last == indices.end() || first == last ||
      feeders[last->second][first->second])
    return;
  BitVector added = feeders[first->second];
  added.set(first->second);
  for (auto [index, fed] : llvm::enumerate(feeders))
    if (index == last->second || fed[last->second])
      fed |= added;
}

} // namespace whale
