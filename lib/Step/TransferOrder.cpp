//===- TransferOrder.cpp - When transfers start and end ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Simulates the classes side by side. A class computes its instructions in
// order and blocks where it needs a transfer that isn't over; a transfer is
// ready when the last of its senders is, and starts when the queues of all
// participants are empty. The order in which transfers become ready is the
// result, but that none of a class comes between two of one of its instructions
// (a loop). Then each class starts and waits for its transfers as early or late
// as this order allows.
//
// Cost: an entry of a priority queue, which holds few for each class, for each
// instruction and each wait; linear in the participants of transfers. Each
// class sorts its transfers twice, and searches its instructions for the end of
// each that it sends.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/TransferOrder.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace whale {
namespace {

/// Simulates all classes side by side. A transfer is ready when the last of its
/// senders is.
class Simulation {
public:
  Simulation(const std::vector<ClassTimeline> &classes,
             const std::vector<double> &transferSeconds);

  bool run();
  TransferOrder getOrder();

private:
  struct Transfer {
    double seconds = 0;
    /// How many classes must still reach it before it is ready.
    size_t missing = 0;
    double ready = 0;
    std::optional<double> end;
    /// The participants: class and use.
    std::vector<std::pair<size_t, size_t>> uses;
    std::vector<size_t> waiters;
  };
  struct Class {
    const ClassTimeline *timeline;
    /// The next instruction, and the earliest time at which it can start.
    size_t next = 0;
    double clock = 0;
    /// When each instruction began; the last entry is the end.
    std::vector<double> begins;
    /// Uses by `ready`; `sent` counts those that are ready, `passed` the uses,
    /// ordered by `needed`, that are over.
    std::vector<size_t> byReady;
    size_t sent = 0, passed = 0;
    /// Whether the class has reached its next fixed use.
    bool reachedFixed = false;
    /// Whether some, but not all transfers of its instruction have begun, and
    /// the class's other transfers that are ready meanwhile.
    bool isInside = false;
    std::vector<size_t> postponed;
    /// When the queue becomes empty, as far as simulated.
    double queueEnd = 0;
    /// By use: the instruction that runs when the transfer becomes ready, or
    /// the next one if the class waits.
    std::vector<size_t> atReady;

    /// The instruction that runs at a time which the class has reached.
    size_t runningAt(double time) const {
      bool runs =
          next > 0 && begins[next - 1] + timeline->seconds[next - 1] > time;
      return next - runs;
    }
  };

  void markReady(size_t transfer, double time);
  bool postpone(size_t transfer);
  void begin(size_t transfer);
  bool passUses(size_t number);
  void advance(size_t number);
  void push(size_t number) { pending.emplace(classes[number].clock, number); }
  std::vector<TransferTimes> getTimes(const Class &c,
                                      const std::vector<size_t> &rank) const;

  std::vector<Class> classes;
  std::vector<Transfer> transfers;
  std::vector<size_t> order;
  using Event = std::pair<double, size_t>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> pending;
};

} // namespace

Simulation::Simulation(const std::vector<ClassTimeline> &timelines,
                       const std::vector<double> &transferSeconds)
    : transfers(transferSeconds.size()) {
  for (auto [transfer, seconds] : llvm::zip_equal(transfers, transferSeconds))
    transfer.seconds = seconds;
  for (auto [number, timeline] : llvm::enumerate(timelines)) {
    Class &c = classes.emplace_back();
    c.timeline = &timeline;
    c.begins.resize(timeline.seconds.size() + 1);
    c.atReady.resize(timeline.uses.size());
    for (auto [index, use] : llvm::enumerate(timeline.uses)) {
      Transfer &transfer = transfers[use.transfer];
      transfer.uses.push_back({number, index});
      transfer.missing += use.isFixed() || use.ready;
      if (use.ready && !use.isFixed())
        c.byReady.push_back(index);
    }
    llvm::sort(c.byReady, [&](size_t a, size_t b) {
      return std::pair(timeline.uses[a].ready, a) <
             std::pair(timeline.uses[b].ready, b);
    });
  }
}

/// Records that one sender (or fixed participant) of a transfer is ready.
void Simulation::markReady(size_t number, double time) {
  Transfer &transfer = transfers[number];
  transfer.ready = std::max(transfer.ready, time);
  if (--transfer.missing == 0)
    begin(number);
}

/// Whether the transfer can't begin yet, as a class can't start it within an
/// instruction.
bool Simulation::postpone(size_t number) {
  for (auto [c, use] : transfers[number].uses)
    if (classes[c].isInside &&
        !classes[c].timeline->uses[use].isInstruction()) {
      classes[c].postponed.push_back(number);
      return true;
    }
  return false;
}

/// Whether the class, which has just begun the transfer of this use, has
/// another one in the same instruction.
static bool hasNextWithin(const ClassTimeline &timeline, size_t use) {
  return use + 1 < timeline.uses.size() &&
         timeline.uses[use + 1].isInstruction() &&
         timeline.uses[use + 1].needed == timeline.uses[use].needed;
}

void Simulation::begin(size_t number) {
  if (postpone(number))
    return;
  Transfer &transfer = transfers[number];
  order.push_back(number);
  double start = transfer.ready;
  for (auto [c, use] : transfer.uses)
    start = std::max(start, classes[c].queueEnd);
  transfer.end = start + transfer.seconds;
  for (auto [c, use] : transfer.uses) {
    classes[c].queueEnd = *transfer.end;
    classes[c].atReady[use] = classes[c].runningAt(transfer.ready);
  }
  for (size_t c : transfer.waiters)
    push(c);
  std::vector<size_t> next;
  for (auto [number, use] : transfer.uses) {
    Class &c = classes[number];
    if (!c.timeline->uses[use].isInstruction())
      continue;
    c.isInside = hasNextWithin(*c.timeline, use);
    if (!c.isInside)
      llvm::append_range(next, std::exchange(c.postponed, {}));
  }
  for (size_t postponed : next) {
    transfers[postponed].ready =
        std::max(transfers[postponed].ready, transfer.ready);
    begin(postponed);
  }
}

/// Whether the class has everything that its next instruction needs. Otherwise
/// the class is queued again when this may have changed.
bool Simulation::passUses(size_t number) {
  Class &c = classes[number];
  const std::vector<TransferUse> &uses = c.timeline->uses;
  for (; c.passed < uses.size() && uses[c.passed].needed == c.next;
       ++c.passed) {
    const TransferUse &use = uses[c.passed];
    if (use.isFixed() && !std::exchange(c.reachedFixed, true))
      markReady(use.transfer, c.clock);
    Transfer &transfer = transfers[use.transfer];
    if (!transfer.end) {
      transfer.waiters.push_back(number);
      return false;
    }
    if (*transfer.end > c.clock) {
      c.clock = *transfer.end;
      push(number);
      return false;
    }
    c.reachedFixed = false;
  }
  return true;
}

void Simulation::advance(size_t number) {
  Class &c = classes[number];
  const ClassTimeline &timeline = *c.timeline;
  while (c.sent < c.byReady.size() &&
         *timeline.uses[c.byReady[c.sent]].ready <= c.next)
    markReady(timeline.uses[c.byReady[c.sent++]].transfer, c.clock);
  if (!passUses(number))
    return;
  c.begins[c.next] = c.clock;
  if (c.next == timeline.seconds.size())
    return;
  c.clock += timeline.seconds[c.next++];
  push(number);
}

bool Simulation::run() {
  for (auto [number, transfer] : llvm::enumerate(transfers))
    if (transfer.missing == 0)
      begin(number);
  for (size_t c = 0; c < classes.size(); ++c)
    push(c);
  while (!pending.empty()) {
    size_t number = pending.top().second;
    pending.pop();
    advance(number);
  }
  return llvm::all_of(classes, [](const Class &c) {
    return c.next == c.timeline->seconds.size() &&
           c.passed == c.timeline->uses.size();
  });
}

std::vector<TransferTimes>
Simulation::getTimes(const Class &c, const std::vector<size_t> &rank) const {
  const std::vector<TransferUse> &uses = c.timeline->uses;
  std::vector<size_t> sorted(uses.size());
  for (size_t i = 0; i < sorted.size(); ++i)
    sorted[i] = i;
  llvm::sort(sorted, [&](size_t a, size_t b) {
    return rank[uses[a].transfer] < rank[uses[b].transfer];
  });
  std::vector<TransferTimes> times(uses.size());
  // As early as the order allows: not before the start of an earlier transfer.
  size_t earliest = 0;
  for (size_t index : sorted) {
    const TransferUse &use = uses[index];
    size_t start =
        use.isFixed() ? use.needed : std::max(earliest, use.ready.value_or(0));
    assert(start + use.isInstruction() >= earliest && start <= use.needed &&
           "starts don't follow the order");
    times[index].start = start;
    earliest = use.isInstruction() ? start + 1 : start;
  }
  // A transfer that is only received uses memory from its start on. So it
  // starts when it is sent and the previous one on its channel has been used,
  // unless a later transfer in the order has to start sooner. If an instruction
  // runs when it is sent, it starts before that: it would otherwise begin only
  // after the instruction, which may be a whole segment.
  std::map<size_t, size_t> usedAt;
  std::vector<size_t> wanted(uses.size());
  for (size_t index : sorted) {
    const TransferUse &use = uses[index];
    if (use.ready || use.isFixed())
      continue;
    wanted[index] = std::max(c.atReady[index], usedAt[use.channel]);
    usedAt[use.channel] = use.needed;
  }
  size_t latest = c.timeline->seconds.size();
  for (size_t index : llvm::reverse(sorted)) {
    size_t &start = times[index].start;
    start =
        std::max(start, std::min({wanted[index], latest, uses[index].needed}));
    latest = start;
  }
  // A wait for a sent value is not before the next start, because the receivers
  // may be late.
  for (size_t i = 0; i < sorted.size(); ++i) {
    const TransferUse &use = uses[sorted[i]];
    TransferTimes &time = times[sorted[i]];
    time.wait = use.needed;
    if (!use.keepsSource)
      continue;
    auto end = llvm::lower_bound(c.begins, *transfers[use.transfer].end);
    size_t wait = std::max<size_t>(time.start, end - c.begins.begin());
    if (i + 1 < sorted.size())
      wait = std::max(wait, times[sorted[i + 1]].start);
    time.wait = std::min(wait, use.needed);
  }
  return times;
}

TransferOrder Simulation::getOrder() {
  TransferOrder result;
  std::vector<size_t> rank(transfers.size());
  for (auto [position, transfer] : llvm::enumerate(order))
    rank[transfer] = position;
  for (const Class &c : classes) {
    result.times.push_back(getTimes(c, rank));
    result.seconds = std::max({result.seconds, c.clock, c.queueEnd});
  }
  result.order = std::move(order);
  return result;
}

std::optional<TransferOrder>
orderTransfers(const std::vector<ClassTimeline> &classes,
               const std::vector<double> &transferSeconds) {
  Simulation simulation(classes, transferSeconds);
  if (!simulation.run())
    return std::nullopt;
  return simulation.getOrder();
}

} // namespace whale
