//===- StepQueue.h - Steps that follow one another --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks have one queue, for the steps of all programs that share them: these
// take turns with the ranks and their memory. A step waits for those whose
// results it takes, which were submitted before it; so no queues wait for one
// another.
//
// A step may be left to its device, where the next one goes behind it: it is
// started before the one that was left is over.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_STEPQUEUE_H
#define WHALE_RUNTIME_EXECUTOR_STEPQUEUE_H

#include "whale/Runtime/Step.h"

#include <chrono>
#include <functional>
#include <optional>

namespace whale::runtime {

class StepQueue {
  struct Core;

public:
  /// One step runs, and perhaps one is on the device behind it. They hold
  /// memory for their arguments; two that wait make up for a caller that is
  /// late once.
  static constexpr int64_t mostSteps = 3;

  /// How long the thread waits for the next step before it ends.
  static constexpr std::chrono::milliseconds patience{2000};

  /// Throws Error when the system has no more threads.
  explicit StepQueue(std::chrono::milliseconds idleLimit = patience);
  /// When no step is left; the last one's own thread may call it.
  ~StepQueue();

  /// A step's place among those `mostSteps`, until it has left.
  class Place {
  public:
    explicit Place(std::shared_ptr<Core> core) : core(std::move(core)) {}
    Place(Place &&) = default;
    Place &operator=(Place &&) = default;
    ~Place();

  private:
    std::shared_ptr<Core> core;
  };

  /// While it exists no step of the queue runs: its holder runs one.
  class Turn {
  public:
    explicit Turn(std::shared_ptr<Core> core) : core(std::move(core)) {}
    Turn(Turn &&) = default;
    Turn &operator=(Turn &&) = default;
    ~Turn();

  private:
    std::shared_ptr<Core> core;
  };
  /// Nothing where a step runs or waits. What the holder runs must leave
  /// nothing to a device.
  std::optional<Turn> tryTurn();

  /// Whether it has a thread now.
  bool hasThread() const;

  /// Waits for a free place; throws Error when the system has no thread for the
  /// steps, which ends while there are none. Where `interrupted` says so, steps
  /// here end as Step::interrupt says, and this throws Interrupted.
  Place reserve(const AskInterrupted &interrupted);

  /// Ends a step that was left, unless it is too early: false then.
  using TryEnd = std::function<bool()>;
  /// Returns null once the step has ended.
  using Work = std::function<TryEnd()>;
  /// Calls `work`, after that of all steps before, and what it returns, again
  /// and again. Neither throws.
  void push(Place place, std::shared_ptr<Step> step, Work work);

  // For the work of a step.

  /// The step before, where it was left and has perhaps not ended.
  std::shared_ptr<Step> left() const;
  /// Returns when there is none.
  void settle();

private:
  static void work(Core &core);
  void startThread();

  std::shared_ptr<Core> core;
  std::thread thread;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_STEPQUEUE_H
