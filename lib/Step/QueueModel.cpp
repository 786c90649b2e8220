//===- QueueModel.cpp - Time of a program's queues --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each time depends only on times that are known before it: of what precedes it
// in its rank, and of the posts of a transfer's participants. So ranks advance
// one at a time, each until it waits for a transfer that has not begun, and go
// on when it has; the order in which they do is of no effect.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/QueueModel.h"

#include <algorithm>
#include <cassert>

namespace whale {
namespace {

class Simulation {
public:
  explicit Simulation(const std::vector<RankQueue> &queues);
  std::optional<std::vector<RankTimes>> run();

private:
  struct Rank {
    const RankQueue *queue = nullptr;
    size_t next = 0;
    double clock = 0;
    /// The parts that were started, and those of them that have begun.
    size_t started = 0, begun = 0;
    /// When the last part that has begun is over.
    double linksFree = 0;
    /// By part: when it was posted.
    std::vector<double> posted;
    RankTimes times;
  };
  struct Transfer {
    std::vector<size_t> ranks;
    /// The participants that have it at the head of their queues.
    size_t heads = 0;
  };

  void advance(size_t number);
  void reachHead(const Rank &rank);
  void begin(size_t number);

  std::vector<Rank> ranks;
  std::vector<Transfer> transfers;
  /// What is to be done: ranks that may go on, transfers that can begin.
  std::vector<size_t> runnable, ready;
};

Simulation::Simulation(const std::vector<RankQueue> &queues) {
  for (const RankQueue &queue : queues) {
    size_t number = ranks.size();
    Rank &rank = ranks.emplace_back();
    rank.queue = &queue;
    rank.posted.resize(queue.parts.size());
    rank.times.items.resize(queue.items.size());
    rank.times.parts.resize(queue.parts.size());
    for (const TransferPart &part : queue.parts) {
      transfers.resize(std::max(transfers.size(), part.transfer + 1));
      transfers[part.transfer].ranks.push_back(number);
    }
    runnable.push_back(number);
  }
}

/// What is the first now of what a rank has posted.
void Simulation::reachHead(const Rank &rank) {
  if (rank.begun == rank.started)
    return;
  size_t number = rank.queue->parts[rank.begun].transfer;
  Transfer &transfer = transfers[number];
  if (++transfer.heads == transfer.ranks.size())
    ready.push_back(number);
}

void Simulation::begin(size_t number) {
  double begin = 0;
  for (size_t participant : transfers[number].ranks) {
    const Rank &rank = ranks[participant];
    begin = std::max({begin, rank.posted[rank.begun], rank.linksFree});
  }
  for (size_t participant : transfers[number].ranks) {
    Rank &rank = ranks[participant];
    size_t part = rank.begun++;
    rank.linksFree = begin + rank.queue->parts[part].seconds;
    rank.times.parts[part] = {begin, rank.linksFree};
    runnable.push_back(participant);
    reachHead(rank);
  }
}

void Simulation::advance(size_t number) {
  Rank &rank = ranks[number];
  for (; rank.next < rank.queue->items.size(); ++rank.next) {
    const QueueItem &item = rank.queue->items[rank.next];
    double begin = rank.clock;
    switch (item.kind) {
    case QueueItem::Kind::Compute:
      rank.clock += item.seconds;
      break;
    case QueueItem::Kind::Start:
      assert(item.part == rank.started && "starts are in order");
      rank.posted[rank.started++] = rank.clock;
      if (rank.begun + 1 == rank.started)
        reachHead(rank);
      break;
    case QueueItem::Kind::Wait:
      assert(item.part < rank.started && "waits follow starts");
      if (item.part >= rank.begun)
        return;
      rank.clock =
          std::max(rank.clock, rank.times.parts[item.part].end) + item.seconds;
      break;
    }
    rank.times.items[rank.next] = {begin, rank.clock};
  }
}

std::optional<std::vector<RankTimes>> Simulation::run() {
  while (!runnable.empty() || !ready.empty()) {
    std::vector<size_t> &list = ready.empty() ? runnable : ready;
    bool isTransfer = !ready.empty();
    size_t number = list.back();
    list.pop_back();
    if (isTransfer)
      begin(number);
    else
      advance(number);
  }
  std::vector<RankTimes> times;
  for (Rank &rank : ranks) {
    if (rank.next != rank.queue->items.size())
      return std::nullopt;
    rank.times.seconds = rank.clock;
    times.push_back(std::move(rank.times));
  }
  return times;
}

} // namespace

std::optional<std::vector<RankTimes>>
timeQueues(const std::vector<RankQueue> &ranks) {
  return Simulation(ranks).run();
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
