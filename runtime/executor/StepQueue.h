//===- StepQueue.h - Steps that follow one another --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each program has a queue of its own: its steps take turns with its ranks and
// their memory, and a step that never ends holds up nothing else. A step waits
// for those whose results it takes, which were submitted before it; so no
// queues wait for one another.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_STEPQUEUE_H
#define WHALE_RUNTIME_EXECUTOR_STEPQUEUE_H

#include "whale/Runtime/Step.h"

namespace whale::runtime {

class StepQueue {
  struct Core;

public:
  /// One step runs. Those behind it hold memory for their arguments; two make
  /// up for a caller that is late once.
  static constexpr int64_t mostSteps = 3;

  /// Throws Error when the system has no more threads.
  StepQueue();
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

  /// Waits for a free place. Where `interrupted` says so, steps here end as
  /// Step::interrupt says, and this throws Interrupted.
  Place reserve(const AskInterrupted &interrupted);

  /// Calls `work`, which must not throw, after that of all steps before.
  void push(Place place, std::shared_ptr<Step> step,
            std::function<void()> work);

private:
  static void work(const std::shared_ptr<Core> &core);

  std::shared_ptr<Core> core;
  std::thread thread;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_STEPQUEUE_H
