//===- QueueModel.cpp - Time of a program's queues --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Events in the order of their times: a rank has computed, a part of a transfer
// is over, what a transfer carries starts to move, or has arrived. Of those of
// one time the first to be known comes first, so that the result is the same
// each time.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/QueueModel.h"

#include "LinkFlows.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace whale {
namespace {

class Simulation {
public:
  Simulation(const std::vector<RankQueue> &queues, const SharedLinks &links);
  std::optional<std::vector<RankTimes>> run();

private:
  struct Rank {
    const RankQueue *queue = nullptr;
    size_t next = 0;
    /// The parts that were started, and those of them that are over: the next
    /// one heads its queue.
    size_t started = 0, ended = 0;
    bool isBlocked = false, isBegun = false;
    /// Of what it computes: the seconds that are left since `since`, without
    /// what transfers take, and whether there is anything.
    bool computes = false;
    double left = 0, since = 0;
    /// The number of the event that says when it is done.
    uint64_t due = 0;
    RankTimes times;
  };
  struct Transfer {
    std::vector<size_t> ranks;
    /// The participants that have it at the head of their queues.
    size_t heads = 0;
  };
  enum class EventKind { Computed, PartEnds, Moves, Arrives };
  struct Event {
    double time;
    uint64_t number;
    EventKind kind;
    /// A rank, or a transfer that moves.
    size_t subject;
    bool operator>(const Event &other) const {
      return std::tie(time, number) > std::tie(other.time, other.number);
    }
  };

  uint64_t push(double time, EventKind kind, size_t subject) {
    events.push({time, ++numbers, kind, subject});
    return numbers;
  }
  void advance(size_t number);
  void compute(size_t number, double seconds);
  void slow(size_t number, bool isBegun);
  void reachHead(size_t number);
  void begin(size_t transfer);
  void move(size_t transfer);
  void endPart(size_t number);
  void expectArrival();

  std::vector<Rank> ranks;
  std::vector<Transfer> transfers;
  LinkFlows flows;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  uint64_t numbers = 0;
  /// The number of the event of the next arrival.
  uint64_t arrival = 0;
  double now = 0;
};

Simulation::Simulation(const std::vector<RankQueue> &queues,
                       const SharedLinks &links)
    : flows(links) {
  for (const RankQueue &queue : queues) {
    size_t number = ranks.size();
    Rank &rank = ranks.emplace_back();
    rank.queue = &queue;
    rank.times.items.resize(queue.items.size());
    rank.times.parts.resize(queue.parts.size());
    for (const TransferPart &part : queue.parts) {
      transfers.resize(std::max(transfers.size(), part.transfer + 1));
      transfers[part.transfer].ranks.push_back(number);
    }
  }
}

/// A rank computes longer while a part of its goes on.
void Simulation::slow(size_t number, bool isBegun) {
  Rank &rank = ranks[number];
  double tax = rank.queue->overlapTax;
  bool wasBegun = std::exchange(rank.isBegun, isBegun);
  if (tax == 0 || !rank.computes || wasBegun == isBegun)
    return;
  rank.left -= (now - rank.since) / (wasBegun ? 1 + tax : 1);
  rank.since = now;
  rank.due = push(now + std::max(0.0, rank.left) * (isBegun ? 1 + tax : 1),
                  EventKind::Computed, number);
}

void Simulation::compute(size_t number, double seconds) {
  Rank &rank = ranks[number];
  rank.computes = true;
  rank.left = seconds;
  rank.since = now;
  double tax = rank.isBegun ? rank.queue->overlapTax : 0;
  rank.due = push(now + seconds * (1 + tax), EventKind::Computed, number);
}

/// What is the first now of what a rank has posted.
void Simulation::reachHead(size_t number) {
  const Rank &rank = ranks[number];
  if (rank.ended == rank.started)
    return;
  size_t transfer = rank.queue->parts[rank.ended].transfer;
  if (++transfers[transfer].heads == transfers[transfer].ranks.size())
    begin(transfer);
}

void Simulation::begin(size_t transfer) {
  bool carries = flows.carries(transfer);
  double latest = 0;
  for (size_t participant : transfers[transfer].ranks) {
    Rank &rank = ranks[participant];
    double seconds = rank.queue->parts[rank.ended].seconds;
    rank.times.parts[rank.ended] = {now, now};
    slow(participant, /*isBegun=*/true);
    latest = std::max(latest, seconds);
    if (!carries)
      push(now + seconds, EventKind::PartEnds, participant);
  }
  if (carries)
    push(now + latest, EventKind::Moves, transfer);
}

void Simulation::expectArrival() {
  if (std::optional<double> end = flows.nextEnd())
    arrival = push(*end, EventKind::Arrives, 0);
}

void Simulation::move(size_t transfer) {
  flows.begin(transfer, now);
  expectArrival();
}

void Simulation::endPart(size_t number) {
  Rank &rank = ranks[number];
  rank.times.parts[rank.ended].end = now;
  slow(number, /*isBegun=*/false);
  size_t part = rank.ended++;
  reachHead(number);
  if (!rank.isBlocked || rank.queue->items[rank.next].part != part)
    return;
  rank.isBlocked = false;
  // The work in a wait; nothing where that is all.
  compute(number, rank.queue->items[rank.next].seconds);
}

/// Takes items until one takes time.
void Simulation::advance(size_t number) {
  Rank &rank = ranks[number];
  for (; rank.next < rank.queue->items.size(); ++rank.next) {
    const QueueItem &item = rank.queue->items[rank.next];
    rank.times.items[rank.next] = {now, now};
    switch (item.kind) {
    case QueueItem::Kind::Compute:
      return compute(number, item.seconds);
    case QueueItem::Kind::Start:
      assert(item.part == rank.started && "starts are in order");
      if (rank.ended == rank.started++)
        reachHead(number);
      break;
    case QueueItem::Kind::Wait:
      assert(item.part < rank.started && "waits follow starts");
      if (item.part < rank.ended)
        return compute(number, item.seconds);
      rank.isBlocked = true;
      return;
    }
  }
}

std::optional<std::vector<RankTimes>> Simulation::run() {
  for (size_t number = 0; number < ranks.size(); ++number)
    advance(number);
  while (!events.empty()) {
    Event event = events.top();
    events.pop();
    now = event.time;
    switch (event.kind) {
    case EventKind::Computed: {
      Rank &rank = ranks[event.subject];
      if (event.number != rank.due)
        break;
      rank.computes = false;
      rank.times.items[rank.next++].end = now;
      rank.times.seconds = now;
      advance(event.subject);
      break;
    }
    case EventKind::PartEnds:
      endPart(event.subject);
      break;
    case EventKind::Moves:
      move(event.subject);
      break;
    case EventKind::Arrives:
      if (event.number != arrival)
        break;
      for (size_t transfer : flows.takeEnded(now))
        for (size_t participant : transfers[transfer].ranks)
          endPart(participant);
      expectArrival();
      break;
    }
  }
  std::vector<RankTimes> times;
  for (Rank &rank : ranks) {
    if (rank.next != rank.queue->items.size())
      return std::nullopt;
    times.push_back(std::move(rank.times));
  }
  return times;
}

} // namespace

std::optional<std::vector<RankTimes>>
timeQueues(const std::vector<RankQueue> &ranks, const SharedLinks &links) {
  return Simulation(ranks, links).run();
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
