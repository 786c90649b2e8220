//===- QueueModel.cpp - Time of a program's queues --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/QueueModel.h"

#include "whale/Step/StepEngine.h"

namespace whale {
namespace {

/// Each rank takes its items in their order.
class ItemsInOrder : public QueueSource {
public:
  explicit ItemsInOrder(const std::vector<RankQueue> &ranks)
      : ranks(ranks), taken(ranks.size()) {}

  std::optional<QueueItem> next(size_t rank, StepEngine &) override {
    const std::vector<QueueItem> &items = ranks[rank].items;
    if (taken[rank] == items.size())
      return std::nullopt;
    return items[taken[rank]++];
  }

private:
  const std::vector<RankQueue> &ranks;
  std::vector<size_t> taken;
};

} // namespace

std::optional<std::vector<RankTimes>>
timeQueues(const std::vector<RankQueue> &ranks, const SharedLinks &links) {
  StepEngine engine(ranks, links);
  ItemsInOrder source(ranks);
  if (!engine.run(source))
    return std::nullopt;
  return engine.takeTimes();
}

std::optional<std::vector<double>>
rankSeconds(const std::vector<RankQueue> &ranks) {
  std::optional<std::vector<RankTimes>> times = timeQueues(ranks);
  if (!times)
    return std::nullopt;
  std::vector<double> seconds;
  for (const RankTimes &rank : *times)
    seconds.push_back(rank.seconds);
  return seconds;
}

} // namespace whale
