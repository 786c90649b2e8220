//===- Transport.h - How ranks exchange data --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The seam between the executor and the ranks' connection.
//
// A rank has one queue of transfers, in the order of its starts. Its n-th start
// of a channel meets the n-th starts of the ranks that it exchanges data with
// there: the rest of its group in an all-reduce, else those that it reads from
// and those that read from it. For it the transfer begins when all of them have
// it at the head of their queues, so nothing is sent before its receive is
// posted. It leaves the rank's queue when it is done: each `dst` is complete
// and nobody reads any `src` any more. Ranks whose starts are parts of one
// total order never wait for one another in a circle.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_TRANSPORT_H
#define WHALE_RUNTIME_TRANSPORT_TRANSPORT_H

#include "program/Format.h"
#include "whale/Runtime/Network.h"

namespace whale::runtime {

/// By number.
using Channels = std::map<int64_t, format::Shared<Collective>>;

/// Thrown in the ranks that stop because another one failed.
class Aborted : public std::exception {
public:
  const char *what() const noexcept override { return "stopped"; }
};

/// What a rank exchanged with others.
struct Traffic {
  int64_t sent = 0;
  int64_t received = 0;
  /// How long it waited for them, inside `wait`.
  double waitedSeconds = 0;
  /// How long it slept there because links of a network were not done.
  double linkSeconds = 0;
};

/// Bytes that go to another rank, or come from it.
struct RankMessage {
  int64_t peer;
  void *data;
  int64_t bytes;
};

/// Where a rank has what it gives and takes of a part of a channel; null for
/// nothing.
struct PartBuffers {
  const void *src = nullptr;
  void *dst = nullptr;
};

/// One transfer of a rank.
struct Ticket {
  /// `ofMessages` for one that has no channel.
  int64_t channel = 0;
  static constexpr int64_t ofMessages = -1;
  /// Counts the rank's starts in this run.
  int64_t number = 0;
};

/// A rank calls `start`, `test`, `wait` and `finish` on its own thread. All
/// throw Aborted when the run was aborted.
class Transport {
public:
  virtual ~Transport() = default;

  /// Adds channels, of which this process has perhaps not all, with numbers
  /// that are less than `end`; from any thread. Their numbers here are larger
  /// by what is returned. Where ranks are in several processes, all of these
  /// call it in one order, with one `end`.
  virtual int64_t addChannels(const Channels &channels, int64_t end) = 0;
  /// Those that were added with this result are not started any more. From any
  /// thread.
  virtual void dropChannels(int64_t first) = 0;

  /// Posts this rank's transfer in a channel, with the buffers of each of its
  /// parts, and returns at once. Until it is done, nobody else writes a `src`
  /// and nobody else uses a `dst`; they may be one buffer in an all-reduce.
  virtual Ticket start(int64_t rank, int64_t channel,
                       std::span<const PartBuffers> parts) = 0;
  /// The same in a channel of one part.
  Ticket start(int64_t rank, int64_t channel, const void *src, void *dst) {
    PartBuffers buffers{src, dst};
    return start(rank, channel, {&buffers, 1});
  }

  /// Posts messages as one transfer of the rank, for what no channel describes:
  /// the bytes are wherever they are. Both ends of two ranks' messages list
  /// them in one order, with the same sizes. All ranks that have any call it at
  /// the same place of their queues.
  virtual Ticket startMessages(int64_t rank, std::span<const RankMessage> sends,
                               std::span<const RankMessage> receives) = 0;

  /// Whether the rank's part is done; only before the wait for it. Moves the
  /// rank's transfers forward.
  virtual bool test(int64_t rank, const Ticket &ticket) = 0;

  /// Returns when the rank's part is done; once for each start, in any order.
  /// Meanwhile moves all transfers of the rank forward. Throws Error when every
  /// rank that still runs waits for another one.
  virtual Traffic wait(int64_t rank, const Ticket &ticket) = 0;

  /// The rank executes no more collectives in this run. Throws Error when the
  /// ranks that still run all wait.
  virtual void finish(int64_t rank) = 0;

  /// Wakes all waiting ranks, which throw Aborted. From any thread.
  virtual void abort() = 0;
  /// True from `abort` on; cheap.
  virtual bool aborted() const = 0;

  /// After an abort, when no rank is inside: returns when the ranks' buffers
  /// are not used any more, or false where they may be for ever.
  virtual bool settle() { return true; }

  /// Makes ready for the next run; no rank is inside.
  virtual void reset() = 0;
};

/// Ranks are threads of this process and read one another's buffers. With a
/// network, a transfer is done when its time on the links (LinkTimes.h) has
/// passed, too.
std::unique_ptr<Transport> createLocalTransport(size_t ranks,
                                                const Network &network = {});

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_TRANSPORT_H
