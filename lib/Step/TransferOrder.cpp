//===- TransferOrder.cpp - When transfers start and end ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lets the classes run side by side on the engine. A class computes its
// instructions in order and blocks where it needs a transfer that isn't over; a
// transfer is ready when the last of its senders is, and is then started in all
// participants. The order of these starts is the result, but that none of a
// class comes between two of one of its instructions (a loop). Then each class
// starts and waits for its transfers as early or late as this order allows.
//
// Linear in the participants of transfers, besides the engine's cost. Each
// class sorts its transfers twice, and searches its instructions for the end of
// each that it sends.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/TransferOrder.h"

#include "whale/Step/StepEngine.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

namespace whale {
namespace {

/// Starts transfers as they become ready, while the classes compute.
class OrderMaker : public QueueSource {
public:
  OrderMaker(const std::vector<ClassTimeline> &classes,
             const std::vector<double> &transferSeconds);

  std::optional<TransferOrder> run();
  std::optional<QueueItem> next(size_t number, StepEngine &) override;

private:
  struct Transfer {
    /// How many classes must still reach it before it is ready.
    size_t missing = 0;
    /// The participants: class and use.
    std::vector<std::pair<size_t, size_t>> uses;
  };
  struct Class {
    const ClassTimeline *timeline = nullptr;
    /// The next instruction.
    size_t next = 0;
    /// When each instruction began; the last entry is the end.
    std::vector<double> begins;
    /// Uses by `ready`; `sent` counts those that are ready, `passed` the uses,
    /// ordered by `needed`, that it has waited for or waits for.
    std::vector<size_t> byReady;
    size_t sent = 0, passed = 0;
    /// Whether some, but not all transfers of its instruction have begun, and
    /// the class's other transfers that are ready meanwhile.
    bool isInside = false;
    std::vector<size_t> postponed;
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

  void markReady(size_t transfer);
  bool postpone(size_t transfer);
  void start(size_t transfer);
  std::vector<TransferTimes> getTimes(size_t number,
                                      const std::vector<size_t> &rank) const;

  std::vector<Class> classes;
  std::vector<Transfer> transfers;
  std::vector<size_t> order;
  /// The parts are the uses.
  std::vector<RankQueue> queues;
  StepEngine engine;
};

} // namespace

/// Returns the classes' parts in transfers.
static std::vector<RankQueue>
queuesOf(const std::vector<ClassTimeline> &timelines,
         const std::vector<double> &transferSeconds) {
  std::vector<RankQueue> queues(timelines.size());
  for (auto [queue, timeline] : llvm::zip_equal(queues, timelines))
    for (const TransferUse &use : timeline.uses)
      queue.parts.push_back({use.transfer, transferSeconds[use.transfer]});
  return queues;
}

OrderMaker::OrderMaker(const std::vector<ClassTimeline> &timelines,
                       const std::vector<double> &transferSeconds)
    : transfers(transferSeconds.size()),
      queues(queuesOf(timelines, transferSeconds)), engine(queues) {
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
void OrderMaker::markReady(size_t number) {
  if (--transfers[number].missing == 0)
    start(number);
}

/// Whether the transfer can't start yet, as a class can't start it within an
/// instruction.
bool OrderMaker::postpone(size_t number) {
  for (auto [c, use] : transfers[number].uses)
    if (classes[c].isInside &&
        !classes[c].timeline->uses[use].isInstruction()) {
      classes[c].postponed.push_back(number);
      return true;
    }
  return false;
}

/// Whether the class, which has just started the transfer of this use, has
/// another one in the same instruction.
static bool hasNextWithin(const ClassTimeline &timeline, size_t use) {
  return use + 1 < timeline.uses.size() &&
         timeline.uses[use + 1].isInstruction() &&
         timeline.uses[use + 1].needed == timeline.uses[use].needed;
}

void OrderMaker::start(size_t number) {
  if (postpone(number))
    return;
  order.push_back(number);
  std::vector<size_t> next;
  for (auto [participant, use] : transfers[number].uses) {
    Class &c = classes[participant];
    c.atReady[use] = c.runningAt(engine.now());
    engine.start(participant, use);
    if (!c.timeline->uses[use].isInstruction())
      continue;
    c.isInside = hasNextWithin(*c.timeline, use);
    if (!c.isInside)
      llvm::append_range(next, std::exchange(c.postponed, {}));
  }
  for (size_t postponed : next)
    start(postponed);
}

std::optional<QueueItem> OrderMaker::next(size_t number, StepEngine &) {
  Class &c = classes[number];
  const std::vector<TransferUse> &uses = c.timeline->uses;
  while (c.sent < c.byReady.size() && *uses[c.byReady[c.sent]].ready <= c.next)
    markReady(uses[c.byReady[c.sent++]].transfer);
  if (c.passed < uses.size() && uses[c.passed].needed == c.next) {
    size_t use = c.passed++;
    if (uses[use].isFixed())
      markReady(uses[use].transfer);
    return QueueItem{QueueItem::Kind::Wait, use};
  }
  c.begins[c.next] = engine.now();
  if (c.next == c.timeline->seconds.size())
    return std::nullopt;
  return QueueItem{QueueItem::Kind::Compute, 0, c.timeline->seconds[c.next++]};
}

std::vector<TransferTimes>
OrderMaker::getTimes(size_t number, const std::vector<size_t> &rank) const {
  const Class &c = classes[number];
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
    double over = engine.times()[number].parts[sorted[i]].end;
    auto end = llvm::lower_bound(c.begins, over);
    size_t wait = std::max<size_t>(time.start, end - c.begins.begin());
    if (i + 1 < sorted.size())
      wait = std::max(wait, times[sorted[i + 1]].start);
    time.wait = std::min(wait, use.needed);
  }
  return times;
}

std::optional<TransferOrder> OrderMaker::run() {
  for (auto [number, transfer] : llvm::enumerate(transfers))
    if (transfer.missing == 0)
      start(number);
  if (!engine.run(*this) || order.size() != transfers.size())
    return std::nullopt;
  TransferOrder result;
  std::vector<size_t> rank(transfers.size());
  for (auto [position, transfer] : llvm::enumerate(order))
    rank[transfer] = position;
  for (auto [number, times] : llvm::enumerate(engine.times())) {
    result.times.push_back(getTimes(number, rank));
    result.seconds = std::max(result.seconds, times.seconds);
    for (const Period &part : times.parts)
      result.seconds = std::max(result.seconds, part.end);
  }
  result.order = std::move(order);
  return result;
}

std::optional<TransferOrder>
orderTransfers(const std::vector<ClassTimeline> &classes,
               const std::vector<double> &transferSeconds) {
  return OrderMaker(classes, transferSeconds).run();
}

} // namespace whale
