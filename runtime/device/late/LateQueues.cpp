//--===- LateQueues.cpp - Queues in odd orders ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: what the ranks put on their queues, and what they wait for. Out: the
// same, one thing after the other. All state is under one lock; the rank that
// comes to wait last lets things happen on its own thread, until one can go on.
// A transport does not say whether a rank can move data, so all are asked in
// turn. Cost: each thing that happens looks at all ranks and their open
// transfers.
//
//===----------------------------------------------------------------------===//

#include "device/late/LateQueues.h"

#include "CopyBox.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace whale::runtime::late {

/// A transport does not say whether a rank has moved anything. When each rank
/// has tried so often in turn, and no transfer has ended, they wait for
/// something else.
static constexpr int64_t mostRounds = 4;

LateQueues::LateQueues(const format::Program &program, Transport &transport,
                       uint64_t seed)
    : program(program), transport(transport), seed(seed) {
  ranks.resize(program.ranks.size());
}

void LateQueues::reset() {
  Lock lock(mutex);
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i] = Rank();
    // Ranks draw apart from each other: their threads come in any order.
    ranks[i].draws = (seed << 20) + (i << 40);
    ranks[i].computePriority = draw(ranks[i], /*isTransfer=*/false);
  }
  running = ranks.size();
  rounds = 0;
  hasFailed = false;
}

/// A number from 0 to 1, or one less for what is held back.
double LateQueues::draw(Rank &rank, bool isTransfer) {
  // SplitMix64.
  uint64_t x = (++rank.draws) * 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  double value = static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
  return holdsBack(isTransfer ? Choice::Move : Choice::Compute) ? value - 1
                                                                : value;
}

/// Of four seeds, one holds all transfers back, and one all computation.
bool LateQueues::holdsBack(Choice::Kind kind) const {
  return seed % 4 == (kind == Choice::Compute ? 1 : 0);
}

//===----------------------------------------------------------------------===//
// What ranks ask for
//===----------------------------------------------------------------------===//

void LateQueues::put(int64_t rank, Queue queue,
                     std::function<void()> operation) {
  Lock lock(mutex);
  Line &line = ranks[rank].line(queue);
  line.operations.push_back({std::move(operation), {}, nullptr});
  ++line.put;
}

Event LateQueues::record(int64_t rank, Queue queue) {
  Lock lock(mutex);
  return {queue, ranks[rank].line(queue).put};
}

void LateQueues::wait(int64_t rank, Queue queue, Event event) {
  Lock lock(mutex);
  Line &line = ranks[rank].line(queue);
  if (event.queue == queue)
    return;
  line.operations.push_back({nullptr, event, nullptr});
  ++line.put;
  line.waited = event.number;
}

void LateQueues::start(int64_t rank, Queue queue, Start start) {
  Lock lock(mutex);
  Rank &self = ranks[rank];
  Transfer &transfer = self.transfers.emplace_back();
  transfer.start = std::move(start);
  const Collective &channel = *program.channels.at(transfer.start.channel);
  for (size_t i = 0; i < channel.parts.size(); ++i) {
    const ChannelPart &part = channel.parts[i];
    auto add = [&](const std::map<int64_t, Shape> &shapes, const void *data,
                   std::vector<std::span<const char>> &list) {
      auto shape = shapes.find(rank);
      if (!data || shape == shapes.end())
        return;
      int64_t bytes = elementCount(shape->second) * byteSize(part.dtype);
      if (bytes > 0)
        list.emplace_back(static_cast<const char *>(data), bytes);
    };
    const PartBuffers &buffers = transfer.start.parts[i];
    add(part.srcShapes, buffers.src, transfer.sent);
    add(part.dstShapes, buffers.dst, transfer.received);
  }
  transfer.postPriority = draw(self, /*isTransfer=*/true);
  transfer.movePriority = draw(self, /*isTransfer=*/true);
  transfer.place = self.line(Queue::Compute).put;
  Line &line = self.line(queue);
  if (!transfer.received.empty())
    self.spoils.push_back(
        {queue == Queue::Compute ? line.put : line.waited, &transfer});
  line.operations.push_back({nullptr, {}, &transfer});
  ++line.put;
}

Traffic LateQueues::waitFor(int64_t rank, int64_t number) {
  Lock lock(mutex);
  Rank &self = ranks[rank];
  // In a loop a number comes again.
  auto it = std::find_if(self.transfers.rbegin(), self.transfers.rend(),
                         [&](const Transfer &transfer) {
                           return transfer.start.number == number;
                         });
  if (it == self.transfers.rend())
    throw Error("transfer " + std::to_string(number) + " was not started");
  Transfer &transfer = *it;
  self.awaited = &transfer;
  block(lock, rank, [&] { return transfer.isDone; });
  self.awaited = nullptr;
  transfer.isOver = true;
  Traffic traffic = transfer.traffic;
  while (!self.transfers.empty() && self.transfers.front().isOver)
    self.transfers.pop_front();
  return traffic;
}

void LateQueues::drain(int64_t rank, Queue queue) {
  Lock lock(mutex);
  const Line &line = ranks[rank].line(queue);
  block(lock, rank, [&] { return line.done == line.put; });
}

void LateQueues::finish(int64_t rank) {
  for (Queue queue : {Queue::Compute, Queue::Communication, Queue::Copy})
    drain(rank, queue);
  Lock lock(mutex);
  --running;
  changed.notify_all();
}

/// Lets the ranks go that wait.
void LateQueues::fail() {
  hasFailed = true;
  changed.notify_all();
}

/// Returns when `until` is true. The last rank that comes to wait lets things
/// happen; no other thread is inside then.
void LateQueues::block(Lock &lock, int64_t rank,
                       const std::function<bool()> &until) {
  Rank &self = ranks[rank];
  if (!until() && !self.error) {
    self.until = &until;
    --running;
    try {
      while (self.until) {
        if (hasFailed || transport.aborted())
          throw Aborted();
        // A run that is stopped from outside wakes no rank here.
        constexpr std::chrono::milliseconds patience(20);
        if (running == 0)
          step();
        else
          changed.wait_for(lock, patience);
      }
    } catch (...) {
      // It never waits again, so nothing happens any more.
      self.until = nullptr;
      ++running;
      fail();
      throw;
    }
  }
  if (self.error) {
    fail();
    std::rethrow_exception(std::exchange(self.error, nullptr));
  }
}

//===----------------------------------------------------------------------===//
// What happens
//===----------------------------------------------------------------------===//

/// Lets ranks go on that have what they waited for.
void LateQueues::wake() {
  for (Rank &rank : ranks)
    if (rank.until && (rank.error || (*rank.until)())) {
      rank.until = nullptr;
      ++running;
    }
  if (running)
    changed.notify_all();
}

bool LateQueues::isReady(Rank &rank, const Operation &operation) {
  if (!operation.event)
    return true;
  return rank.line(operation.event->queue).done >= operation.event->number;
}

/// What is next on a queue of transfers.
void LateQueues::addPost(int64_t number, Queue queue,
                         std::vector<Choice> &choices) {
  Rank &rank = ranks[number];
  const Line &line = rank.line(queue);
  if (line.operations.empty() || !isReady(rank, line.operations.front()))
    return;
  const Operation &next = line.operations.front();
  // Waits are over at once: what is behind them has a priority.
  double priority = next.transfer ? next.transfer->postPriority : 2;
  bool isNeeded = rank.awaited && !rank.awaited->isPosted;
  if (holdsBack(Choice::Communicate) && next.transfer && !isNeeded)
    priority -= 2;
  choices.push_back({Choice::Communicate, number, priority, queue});
}

void LateQueues::addChoices(int64_t number, std::vector<Choice> &choices) {
  Rank &rank = ranks[number];
  const Line &compute = rank.line(Queue::Compute);
  if (!compute.operations.empty() && isReady(rank, compute.operations.front()))
    choices.push_back({Choice::Compute, number, rank.computePriority});
  addPost(number, Queue::Communication, choices);
  addPost(number, Queue::Copy, choices);
  auto open = std::find_if(rank.transfers.begin(), rank.transfers.end(),
                           [](const Transfer &transfer) {
                             return transfer.isPosted && !transfer.isDone;
                           });
  if (open != rank.transfers.end() && !rank.hasMoved)
    choices.push_back({Choice::Move, number, open->movePriority});
}

/// Of what may happen now, what has the highest priority.
std::optional<LateQueues::Choice> LateQueues::choose() {
  std::vector<Choice> choices;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    addChoices(static_cast<int64_t>(rank), choices);
  auto best = std::max_element(
      choices.begin(), choices.end(),
      [](const Choice &a, const Choice &b) { return a.priority < b.priority; });
  if (best == choices.end())
    return std::nullopt;
  return *best;
}

/// Lets one thing happen.
void LateQueues::step() {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    spoil(static_cast<int64_t>(rank));
  std::optional<Choice> next = choose();
  // What is held back comes after all moves that may yet bring something.
  while ((!next || (next->kind != Choice::Move && holdsBack(next->kind))) &&
         rounds < mostRounds) {
    ++rounds;
    for (Rank &rank : ranks)
      rank.hasMoved = false;
    next = choose();
  }
  if (!next)
    throw Error("the ranks wait for one another and none can go on");
  Rank &rank = ranks[next->rank];
  try {
    if (next->kind == Choice::Move) {
      move(next->rank);
    } else {
      runNext(next->rank,
              next->kind == Choice::Compute ? Queue::Compute : next->queue);
      restart();
    }
  } catch (const std::exception &) {
    rank.error = std::current_exception();
  }
  wake();
}

/// Something has happened: ranks that had no data to move may have some.
void LateQueues::restart() {
  rounds = 0;
  for (Rank &rank : ranks)
    rank.hasMoved = false;
}

void LateQueues::runNext(int64_t rank, Queue queue) {
  Rank &self = ranks[rank];
  Line &line = self.line(queue);
  Operation operation = std::move(line.operations.front());
  line.operations.pop_front();
  ++line.done;
  if (queue == Queue::Compute && draw(self, false) > 0.5)
    self.computePriority = draw(self, /*isTransfer=*/false);
  if (operation.run)
    operation.run();
  if (!operation.transfer)
    return;
  Transfer &transfer = *operation.transfer;
  const Start &start = transfer.start;
  if (!isCopy(transfer))
    transfer.ticket = transport.start(rank, start.channel, start.parts);
  transfer.isPosted = true;
}

void LateQueues::move(int64_t rank) {
  Rank &self = ranks[rank];
  self.hasMoved = true;
  for (Transfer &transfer : self.transfers)
    if (transfer.isPosted && !transfer.isDone &&
        (isCopy(transfer) || transport.test(rank, transfer.ticket))) {
      end(rank, transfer);
      restart();
    }
}

void LateQueues::end(int64_t rank, Transfer &transfer) {
  Rank &self = ranks[rank];
  if (!isCopy(transfer)) {
    transfer.traffic = transport.wait(rank, transfer.ticket);
  } else if (!transfer.received.empty()) {
    std::span<const char> from = transfer.sent.front();
    std::memcpy(transfer.start.parts.front().dst, from.data(), from.size());
    transfer.traffic.sent = transfer.traffic.received =
        static_cast<int64_t>(from.size());
  }
  transfer.isDone = true;
  self.moved += self.line(Queue::Compute).done > transfer.place;
}

//===----------------------------------------------------------------------===//
// Garbage
//===----------------------------------------------------------------------===//

using Ranges = std::vector<std::span<const char>>;
static bool overlap(const Ranges &a, const Ranges &b) {
  return std::ranges::any_of(a, [&](std::span<const char> x) {
    return std::ranges::any_of(b, [&](std::span<const char> y) {
      return x.data() < y.data() + y.size() && y.data() < x.data() + x.size();
    });
  });
}

/// Whether a destination holds what this transfer or an earlier one is still
/// to take, or to fill: the transfers of a rank go on one after the other.
bool LateQueues::overlapsOpen(const Rank &rank,
                              const Transfer &transfer) const {
  for (const Transfer &other : rank.transfers) {
    bool isSame = &other == &transfer;
    if (!other.isDone &&
        (overlap(transfer.received, other.sent) ||
         (!isSame && overlap(transfer.received, other.received))))
      return true;
    if (isSame)
      break;
  }
  return false;
}

void LateQueues::spoil(int64_t number) {
  Rank &rank = ranks[number];
  int64_t done = rank.line(Queue::Compute).done;
  for (; !rank.spoils.empty() && rank.spoils.front().after <= done;
       rank.spoils.pop_front()) {
    const Transfer &transfer = *rank.spoils.front().transfer;
    if (transfer.isPosted || overlapsOpen(rank, transfer))
      continue;
    const Collective &channel = *program.channels.at(transfer.start.channel);
    for (size_t i = 0; i < channel.parts.size(); ++i)
      if (void *dst = transfer.start.parts[i].dst)
        spoilDestination(channel.parts[i], number, dst);
  }
}

void spoilDestination(const ChannelPart &part, int64_t rank, void *dst) {
  int64_t elementBytes = byteSize(part.dtype);
  const Shape &shape = part.dstShapes.at(rank);
  auto bytesOf = [&](const Shape &size) {
    return static_cast<size_t>(elementCount(size) * elementBytes);
  };
  auto cells = part.cells.find(rank);
  if (cells == part.cells.end()) {
    std::memset(dst, garbage, bytesOf(shape));
    return;
  }
  std::vector<uint8_t> fill;
  for (const Cell &cell : *cells->second) {
    fill.assign(bytesOf(cell.size), garbage);
    copyBox(dst, shape, cell.dstStart, fill.data(), cell.size,
            Shape(cell.size.size(), 0), cell.size, elementBytes);
  }
}

} // namespace whale::runtime::late
