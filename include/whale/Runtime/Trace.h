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

enum class Queue : uint8_t { Compute, Communication };

/// Records when each rank did what; steps of several runs are consecutive.
class Trace {
public:
  using Clock = std::chrono::steady_clock;

  /// The work of an instruction, as far as it is known.
  struct Cost {
    std::string detail; ///< the symbol of a kernel, or the kind of instruction
    double flops = 0;
    double bytes = 0;
    /// The minimum seconds of this work at the peaks of the device (products in
    /// its caches, copies in its memory).
    double leastSeconds = 0;
    /// The lines of the user's program that it implements.
    std::vector<std::string> lines;
    /// The micro-batch that it computes, if known.
    std::optional<int64_t> moment;
    /// Collectives only.
    struct Exchange {
      std::string kind;
      int64_t sent, received;
      /// The part of its time spent waiting for other ranks.
      double waitedSeconds;
      /// From its start to the end of the wait for it.
      double totalSeconds;
      std::vector<int64_t> peers;
    };
    std::optional<Exchange> exchange;
  };

  struct Event {
    std::string name;
    Cost cost;
    Queue queue;
    Clock::time_point begin;
    Clock::time_point end;
    /// Counted from 0 over all recorded runs.
    int64_t step;
  };

  /// Starts the next step with `ranks` ranks; called by Program::run.
  void beginStep(size_t ranks);
  /// Adds an event. Each rank adds only its own events, so no lock is needed.
  void add(size_t rank, std::string name, Cost cost, Queue queue,
           Clock::time_point begin, Clock::time_point end);

  const std::vector<std::vector<Event>> &events() const { return byRank; }

  /// Returns Chrome trace-event JSON, which Perfetto opens: a process for each
  /// rank with a track for each queue. Bars contain FLOPs, bytes, their rates,
  /// and the fraction of the roofline that they reached.
  std::string json() const;

private:
  Clock::time_point origin = Clock::now();
  int64_t steps = 0;
  std::vector<std::vector<Event>> byRank;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRACE_H
