//===- LateQueues.h - Queues in odd orders ----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tests: the queues of all ranks of a program, which do not change until
// every rank either waits for something or has come to its end. Then one thing
// that may happen does, and another one, until a rank can go on. Which one is
// drawn by chance from a seed alone, so that a run can be repeated:
//
// - the next operation of a rank's compute queue runs;
// - the next of its communication queue: a transfer is posted;
// - a rank moves the data of the transfers that it has posted.
//
// Each of these has a priority, and what has the highest one comes first: a
// transfer of low priority takes its source and fills its destination only when
// nobody can go on without that. From its start until then its destination
// holds garbage. Cost: all is under one lock, and each thing that happens looks
// at all ranks and their open transfers.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_LATE_LATEQUEUES_H
#define WHALE_RUNTIME_DEVICE_LATE_LATEQUEUES_H

#include "device/Device.h"

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace whale::runtime::late {

class LateQueues {
public:
  /// `program` and `transport` outlive the queues.
  LateQueues(const format::Program &program, Transport &transport,
             uint64_t seed);

  void reset();

  // The rest by the thread of the rank.

  void put(int64_t rank, Queue queue, std::function<void()> operation);
  Event record(int64_t rank, Queue queue);
  void wait(int64_t rank, Queue queue, Event event);
  /// Returns when all that is on the queue is done.
  void drain(int64_t rank, Queue queue);

  struct Start {
    int64_t number, channel;
    std::vector<PartBuffers> parts;
  };
  void start(int64_t rank, Queue queue, Start start);
  Traffic waitFor(int64_t rank, int64_t number);

  /// The rank comes no more in this run, once its queues are done.
  void finish(int64_t rank);
  int64_t movedTransfers(int64_t rank) const { return ranks[rank].moved; }

private:
  struct Transfer {
    Start start;
    /// What it takes and fills.
    std::vector<std::span<const char>> sent, received;
    Ticket ticket;
    Traffic traffic;
    /// It is over when the rank has waited for it.
    bool isPosted = false, isDone = false, isOver = false;
    /// Of its post, and of the moving of its data.
    double postPriority = 0, movePriority = 0;
    /// How much of the compute queue is before the start.
    int64_t place = 0;
  };
  struct Operation {
    std::function<void()> run;
    /// If set, it does nothing but wait.
    std::optional<Event> event;
    /// What it posts.
    Transfer *transfer = nullptr;
  };
  struct Line {
    std::deque<Operation> operations;
    /// How many were put there and how many are done.
    int64_t put = 0, done = 0;
    /// As far as the queue waits for the compute queue.
    int64_t waited = 0;
  };
  /// A destination that becomes garbage when so much of the compute queue is
  /// done.
  struct Spoil {
    int64_t after;
    Transfer *transfer;
  };
  struct Rank {
    std::array<Line, 3> lines;
    /// Those that were started in this run, but for the oldest that are over.
    std::deque<Transfer> transfers;
    std::deque<Spoil> spoils;
    const Transfer *awaited = nullptr;
    double computePriority = 0;
    uint64_t draws = 0;
    /// Since something else happened.
    bool hasMoved = false;
    int64_t moved = 0;
    /// What it waits for; null if it goes on.
    const std::function<bool()> *until = nullptr;
    std::exception_ptr error;

    Line &line(Queue queue) { return lines[static_cast<size_t>(queue)]; }
  };
  /// Something that may happen.
  struct Choice {
    enum Kind : uint8_t { Compute, Communicate, Move } kind = Compute;
    int64_t rank = 0;
    double priority = -1;
    /// Of what is posted.
    Queue queue = Queue::Communication;
  };
  using Lock = std::unique_lock<std::mutex>;

  bool holdsBack(Choice::Kind kind) const;
  double draw(Rank &rank, bool isTransfer);
  void block(Lock &lock, int64_t rank, const std::function<bool()> &until);
  void fail();
  std::optional<Choice> choose();
  void step();
  void restart();
  void wake();
  void spoil(int64_t rank);
  void addChoices(int64_t number, std::vector<Choice> &choices);
  bool isReady(Rank &rank, const Operation &operation);
  void runNext(int64_t rank, Queue queue);
  void addPost(int64_t rank, Queue queue, std::vector<Choice> &choices);
  bool isCopy(const Transfer &transfer) const {
    return program.channels.at(transfer.start.channel)->isHostCopy();
  }
  void move(int64_t rank);
  void end(int64_t rank, Transfer &transfer);
  bool overlapsOpen(const Rank &rank, const Transfer &transfer) const;

  const format::Program &program;
  Transport &transport;
  const uint64_t seed;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Rank> ranks;
  /// Ranks that go on.
  size_t running = 0;
  /// How often all ranks have moved data since something else happened.
  int64_t rounds = 0;
  bool hasFailed = false;
};

/// Fills the part of a rank's destination that cells of a channel fill.
void spoilDestination(const ChannelPart &part, int64_t rank, void *dst);

/// What is in memory that nothing was written to: large in every type.
inline constexpr uint8_t garbage = 0x7F;

} // namespace whale::runtime::late

#endif // WHALE_RUNTIME_DEVICE_LATE_LATEQUEUES_H
