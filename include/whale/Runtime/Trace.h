//===- Trace.h - Timeline of a run ------------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRACE_H
#define WHALE_RUNTIME_TRACE_H

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace whale::runtime {

enum class Queue : uint8_t { Compute, Communication, Copy };

/// Collects what each rank did when; several runs follow one another in it.
class Trace {
public:
  using Clock = std::chrono::steady_clock;

  /// What an instruction did, as far as that is known.
  struct Cost {
    std::string detail; ///< the symbol of a kernel, or the kind of instruction
    /// What the device has chosen for it, where it had a choice.
    std::string algorithm = {};
    double flops = 0;
    double bytes = 0;
    /// The least seconds that this work takes at the peaks of the device
    /// (products in its caches, copies in its memory).
    double leastSeconds = 0;
    /// The lines of the user's program that it comes from.
    std::vector<std::string> lines;
    /// Of a function: the scope that it is run for, of several that share it.
    std::string scope = {};
    /// The micro-batch that it is for, where the program says.
    std::optional<int64_t> moment;
    /// Of a collective.
    struct Exchange {
      std::string kind;
      int64_t sent, received;
      /// The part of its time that the rank waited for others.
      double waitedSeconds;
      /// When its start began, what that took, and from there to the end of
      /// the wait.
      Clock::time_point begin;
      double startSeconds, totalSeconds;
      std::vector<int64_t> peers;
      /// The number of its channel, and the peers that it sends to and receives
      /// from one by one; none of what all do together.
      int64_t channel = 0;
      std::vector<int64_t> receivers = {}, senders = {};
    };
    std::optional<Exchange> exchange;
    /// Bytes of the arena that are in use meanwhile, where that is known.
    std::optional<int64_t> arenaBytes = {};
  };

  struct Event {
    std::string name;
    Cost cost;
    Queue queue;
    Clock::time_point begin;
    Clock::time_point end;
    /// Counted from 0 over the runs recorded here.
    int64_t step;
  };

  /// Starts the next step with these ranks, by their names; called by
  /// Program::run.
  void beginStep(const std::vector<std::string> &ranks);
  /// Each rank appends only its own events, hence without a lock.
  void add(size_t rank, std::string name, Cost cost, Queue queue,
           Clock::time_point begin, Clock::time_point end);

  const std::vector<std::vector<Event>> &events() const { return byRank; }

  /// Chrome trace-event JSON, opened by Perfetto: a process for each rank, in
  /// it a track for each queue and for the starts of what is sent, with arrows
  /// from there to the waits for it, and a counter of the arena's bytes. Bars
  /// say phase and micro-batch, FLOPs, bytes and their rates, and which share
  /// of the roofline they reached. Of some ranks only, if given.
  std::string json(const std::vector<size_t> *ranks = nullptr) const;
  /// One text for those of several processes, whose traces began together.
  static std::string join(const std::vector<std::string> &parts);

private:
  Clock::time_point origin = Clock::now();
  int64_t steps = 0;
  std::vector<std::string> names;
  std::vector<std::vector<Event>> byRank;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRACE_H
