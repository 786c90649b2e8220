//===- StepEngine.cpp - Simulates the queues of a step --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Events in the order of their times: a rank's item is over, a part of a
// transfer is over, what a transfer carries starts to move, or has arrived.
// Those of one time come in the order in which they were known, and before any
// rank takes its next item, so that the result is the same each time.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/StepEngine.h"

#include "HostShares.h"
#include "LinkFlows.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

namespace whale {

static const SharedLinks kNoLinks;

class StepEngine::Simulation {
public:
  Simulation(const std::vector<RankQueue> &queues, const SharedLinks &links);
  bool run(QueueSource &source, StepEngine &engine);
  void start(size_t number, size_t part);

  double now = 0;
  /// By signal, when it is given.
  std::vector<double> ends;
  std::vector<RankTimes> times;

private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// What a rank is at.
  enum class State : uint8_t {
    /// It can take an item.
    Free,
    Computes,
    /// In an item that takes its time whatever the rank's transfers do.
    Passes,
    /// Blocked by a part that is not over.
    Waits,
    /// Blocked by a computation that has not begun.
    Awaits,
    Idle,
    Done
  };
  struct Lane {
    /// The parts that were started, in this order; the first of those that are
    /// not over heads the queue.
    std::vector<size_t> started;
    size_t ended = 0;

    size_t head() const { return started[ended]; }
  };
  struct Rank {
    const RankQueue *queue = nullptr;
    State state = State::Free;
    /// Its item.
    QueueItem item;
    /// The parts of exchanges, and those of copies.
    std::array<Lane, 2> lanes;
    Lane &laneOf(size_t part) { return lanes[queue->parts[part].isCopy]; }
    /// By part.
    std::vector<bool> isOver;
    bool isBegun = false;
    /// Of what it computes: the seconds that are left since `since`, without
    /// what transfers take.
    double left = 0, since = 0;
    /// How many times longer it takes as others compute on its host.
    double crowding = 1;
    double stretch() const {
      return (isBegun ? 1 + queue->overlapTax : 1) * crowding;
    }
    /// The number of the event that says when the item is over.
    uint64_t due = 0;
  };
  struct Transfer {
    std::vector<size_t> ranks;
    /// The participants that have it at the head of their queues.
    size_t heads = 0;
    bool isCopy = false;
  };
  enum class EventKind { ItemEnds, PartEnds, CopyEnds, Moves, Arrives };
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
  void free(size_t number) {
    ranks[number].state = State::Free;
    freed.push_back(number);
  }
  void handle(const Event &event);
  void ask(QueueSource &source, StepEngine &engine);
  bool take(size_t number);
  void compute(size_t number, double seconds);
  void pass(size_t number, double until);
  void endItem(size_t number);
  void slow(size_t number, bool isBegun, double crowding);
  void changeHost(size_t number);
  void shareHosts();
  void reachHead(size_t number, const Lane &lane);
  void begin(size_t transfer);
  void endPart(size_t number, bool isCopy);
  void expectArrival();

  std::vector<Rank> ranks;
  std::vector<Transfer> transfers;
  LinkFlows flows;
  struct Host {
    SharedLinks::Host limits;
    std::vector<size_t> ranks;
    bool isChanged = false;
  };
  std::vector<Host> hosts;
  std::vector<size_t> changedHosts;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  uint64_t numbers = 0;
  /// The number of the event of the next arrival.
  uint64_t arrival = 0;
  /// Ranks that can take an item now, and those that may be able to.
  std::vector<size_t> freed, idle;
  /// By signal that has not been given, the ranks that await it.
  std::vector<std::vector<size_t>> awaiting;
};

StepEngine::Simulation::Simulation(const std::vector<RankQueue> &queues,
                                   const SharedLinks &links)
    : flows(links) {
  for (const SharedLinks::Host &limits : links.hosts)
    hosts.push_back({limits, {}});
  times.resize(queues.size());
  for (const RankQueue &queue : queues) {
    size_t number = ranks.size();
    Rank &rank = ranks.emplace_back();
    rank.queue = &queue;
    if (queue.host < hosts.size())
      hosts[queue.host].ranks.push_back(number);
    rank.isOver.resize(queue.parts.size());
    times[number].parts.resize(queue.parts.size());
    for (const TransferPart &part : queue.parts) {
      transfers.resize(std::max(transfers.size(), part.transfer + 1));
      transfers[part.transfer].ranks.push_back(number);
      transfers[part.transfer].isCopy = part.isCopy;
    }
    free(number);
  }
}

/// A rank computes longer while a part of its goes on, and while its host has
/// more to do.
void StepEngine::Simulation::slow(size_t number, bool isBegun,
                                  double crowding) {
  Rank &rank = ranks[number];
  double before = rank.stretch();
  rank.isBegun = isBegun;
  rank.crowding = crowding;
  if (rank.state != State::Computes || rank.stretch() == before)
    return;
  rank.left -= (now - rank.since) / before;
  rank.since = now;
  rank.due = push(now + std::max(0.0, rank.left) * rank.stretch(),
                  EventKind::ItemEnds, number);
}

/// What computes on each host where that has changed gets its share.
void StepEngine::Simulation::shareHosts() {
  for (size_t number : std::exchange(changedHosts, {})) {
    Host &host = hosts[number];
    host.isChanged = false;
    std::vector<HostLoad> loads;
    std::vector<size_t> computing;
    for (size_t rank : host.ranks)
      if (ranks[rank].state == State::Computes) {
        const QueueItem &item = ranks[rank].item;
        bool moves = item.kind == QueueItem::Kind::Compute && item.seconds > 0;
        computing.push_back(rank);
        loads.push_back({ranks[rank].queue->ranksOnHost,
                         moves ? item.bytes / item.seconds : 0});
      }
    std::vector<double> crowding = crowdingOf(loads, host.limits);
    for (size_t i = 0; i < computing.size(); ++i)
      slow(computing[i], ranks[computing[i]].isBegun, crowding[i]);
  }
}

void StepEngine::Simulation::changeHost(size_t number) {
  size_t host = ranks[number].queue->host;
  if (host >= hosts.size() || std::exchange(hosts[host].isChanged, true))
    return;
  changedHosts.push_back(host);
}

void StepEngine::Simulation::compute(size_t number, double seconds) {
  Rank &rank = ranks[number];
  rank.state = State::Computes;
  rank.left = seconds;
  rank.since = now;
  rank.crowding = 1;
  changeHost(number);
  double end = now + seconds * rank.stretch();
  rank.due = push(end, EventKind::ItemEnds, number);
  if (rank.item.signal == QueueItem::kNoSignal)
    return;
  size_t signal = rank.item.signal;
  if (signal >= ends.size())
    ends.resize(signal + 1, kNever);
  ends[signal] = end;
  if (signal < awaiting.size())
    for (size_t other : std::exchange(awaiting[signal], {}))
      pass(other, end + ranks[other].item.seconds);
}

/// Lets a rank go on at a time.
void StepEngine::Simulation::pass(size_t number, double until) {
  ranks[number].state = State::Passes;
  ranks[number].due = push(std::max(now, until), EventKind::ItemEnds, number);
}

void StepEngine::Simulation::endItem(size_t number) {
  changeHost(number);
  times[number].items.back().end = now;
  times[number].seconds = now;
  free(number);
}

/// What is the first now of what a rank has started.
void StepEngine::Simulation::reachHead(size_t number, const Lane &lane) {
  if (lane.ended == lane.started.size())
    return;
  size_t transfer = ranks[number].queue->parts[lane.head()].transfer;
  if (++transfers[transfer].heads == transfers[transfer].ranks.size())
    begin(transfer);
}

void StepEngine::Simulation::start(size_t number, size_t part) {
  Lane &lane = ranks[number].laneOf(part);
  lane.started.push_back(part);
  if (lane.ended + 1 == lane.started.size())
    reachHead(number, lane);
}

void StepEngine::Simulation::begin(size_t transfer) {
  bool carries = flows.carries(transfer), isCopy = transfers[transfer].isCopy;
  double latest = 0;
  for (size_t participant : transfers[transfer].ranks) {
    Rank &rank = ranks[participant];
    size_t part = rank.lanes[isCopy].head();
    double seconds = rank.queue->parts[part].seconds;
    times[participant].parts[part] = {now, now};
    if (!isCopy)
      slow(participant, /*isBegun=*/true, rank.crowding);
    latest = std::max(latest, seconds);
    if (!carries)
      push(now + seconds, isCopy ? EventKind::CopyEnds : EventKind::PartEnds,
           participant);
  }
  if (carries)
    push(now + latest, EventKind::Moves, transfer);
}

void StepEngine::Simulation::expectArrival() {
  if (std::optional<double> end = flows.nextEnd())
    arrival = push(*end, EventKind::Arrives, 0);
}

void StepEngine::Simulation::endPart(size_t number, bool isCopy) {
  Rank &rank = ranks[number];
  Lane &lane = rank.lanes[isCopy];
  size_t part = lane.head();
  ++lane.ended;
  rank.isOver[part] = true;
  times[number].parts[part].end = now;
  if (!isCopy)
    slow(number, /*isBegun=*/false, rank.crowding);
  reachHead(number, lane);
  // What is left of the wait is the work in it.
  if (rank.state == State::Waits && rank.item.part == part)
    compute(number, rank.item.seconds);
}

void StepEngine::Simulation::handle(const Event &event) {
  switch (event.kind) {
  case EventKind::ItemEnds:
    // Idle ranks are asked after any event.
    if (event.number == ranks[event.subject].due &&
        ranks[event.subject].state != State::Idle)
      endItem(event.subject);
    break;
  case EventKind::PartEnds:
  case EventKind::CopyEnds:
    endPart(event.subject, event.kind == EventKind::CopyEnds);
    break;
  case EventKind::Moves:
    flows.begin(event.subject, now);
    break;
  case EventKind::Arrives:
    if (event.number != arrival)
      break;
    for (size_t transfer : flows.takeEnded(now))
      for (size_t participant : transfers[transfer].ranks)
        endPart(participant, transfers[transfer].isCopy);
    break;
  }
}

/// Lets a rank take its item. Whether it can take another one now.
bool StepEngine::Simulation::take(size_t number) {
  Rank &rank = ranks[number];
  const QueueItem &item = rank.item;
  if (item.kind == QueueItem::Kind::Idle) {
    rank.state = State::Idle;
    idle.push_back(number);
    rank.due = std::isfinite(item.seconds)
                   ? push(now + item.seconds, EventKind::ItemEnds, number)
                   : 0;
    return false;
  }
  times[number].items.push_back({now, now});
  switch (item.kind) {
  case QueueItem::Kind::Compute:
    compute(number, item.seconds);
    return false;
  case QueueItem::Kind::Start:
    start(number, item.part);
    return true;
  case QueueItem::Kind::Wait:
    if (rank.isOver[item.part])
      compute(number, item.seconds);
    else
      rank.state = State::Waits;
    return false;
  case QueueItem::Kind::Await:
    if (item.signal < ends.size() && ends[item.signal] != kNever) {
      pass(number, ends[item.signal] + item.seconds);
    } else {
      awaiting.resize(std::max(awaiting.size(), item.signal + 1));
      awaiting[item.signal].push_back(number);
      rank.state = State::Awaits;
    }
    return false;
  case QueueItem::Kind::Idle:
    break;
  }
  return true;
}

void StepEngine::Simulation::ask(QueueSource &source, StepEngine &engine) {
  std::vector<size_t> asked = std::exchange(freed, {});
  asked.insert(asked.end(), idle.begin(), idle.end());
  idle.clear();
  std::ranges::sort(asked);
  for (size_t number : asked) {
    Rank &rank = ranks[number];
    do {
      std::optional<QueueItem> item = source.next(number, engine);
      if (!item) {
        rank.state = State::Done;
        break;
      }
      rank.item = *item;
    } while (take(number));
  }
}

bool StepEngine::Simulation::run(QueueSource &source, StepEngine &engine) {
  ask(source, engine);
  shareHosts();
  while (!events.empty()) {
    now = events.top().time;
    while (!events.empty() && events.top().time <= now) {
      Event event = events.top();
      events.pop();
      handle(event);
      // What may still come at this time is known before rates are found.
      if (flows.isChanged() && (events.empty() || events.top().time > now))
        expectArrival();
    }
    ask(source, engine);
    shareHosts();
  }
  return std::ranges::all_of(
      ranks, [](const Rank &rank) { return rank.state == State::Done; });
}

StepEngine::StepEngine(const std::vector<RankQueue> &queues,
                       const SharedLinks &links)
    : simulation(std::make_unique<Simulation>(queues, links)) {}

StepEngine::StepEngine(const std::vector<RankQueue> &queues)
    : StepEngine(queues, kNoLinks) {}

StepEngine::~StepEngine() = default;

bool StepEngine::run(QueueSource &source) {
  return simulation->run(source, *this);
}

double StepEngine::now() const { return simulation->now; }

double StepEngine::endOf(size_t signal) const {
  return signal < simulation->ends.size()
             ? simulation->ends[signal]
             : std::numeric_limits<double>::infinity();
}

void StepEngine::start(size_t rank, size_t part) {
  simulation->start(rank, part);
}

const std::vector<RankTimes> &StepEngine::times() const {
  return simulation->times;
}

std::vector<RankTimes> StepEngine::takeTimes() {
  return std::move(simulation->times);
}

} // namespace whale
