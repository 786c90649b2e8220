//===- StepQueue.cpp - Steps that follow one another ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the work of steps. Out: each is done by the queue's thread, behind all
// before it. A caller first reserves a place, of which there are few, and gives
// it back when the step has left. Of what is left to a device, the thread asks
// whether it has ended while it has nothing else to do, and before the next
// step is left. A short step that finds nothing before it can be run by its
// caller. Cost: two changes of threads a step, none for such a one.
//
//===----------------------------------------------------------------------===//

#include "executor/StepQueue.h"

#include "cuda/Backoff.h"

#include <chrono>
#include <deque>
#include <optional>
#include <system_error>
#include <utility>

namespace whale::runtime {

/// What the thread of a queue has in hand when the queue goes.
struct StepQueue::Core {
  struct Entry {
    Place place;
    std::shared_ptr<Step> step;
    Work work;
    TryEnd tryEnd = nullptr;
  };

  bool tryEnd();
  void settle();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Entry> entries;
  std::shared_ptr<Step> last;
  int64_t places = 0;
  bool stopping = false, hasThread = false;
  std::chrono::milliseconds idleLimit;
  /// Whether a thread has a step in hand; the queue's has also what is left.
  bool isBusy = false;

  /// Of the queue's thread.
  std::optional<Entry> left;
};

StepQueue::Place::~Place() {
  if (!core)
    return;
  {
    std::lock_guard lock(core->mutex);
    --core->places;
  }
  core->changed.notify_all();
}

StepQueue::StepQueue(std::chrono::milliseconds idleLimit)
    : core(std::make_shared<Core>()) {
  core->idleLimit = idleLimit;
  std::lock_guard lock(core->mutex);
  startThread();
}

/// Unless there is one; with the mutex held.
void StepQueue::startThread() {
  if (core->hasThread)
    return;
  if (thread.joinable())
    thread.join(); // It takes no lock any more.
  try {
    thread = std::thread([core = core] { work(*core); });
  } catch (const std::system_error &error) {
    throw Error(std::string("cannot start a thread for the steps: ") +
                error.what());
  }
  core->hasThread = true;
}

bool StepQueue::hasThread() const {
  std::lock_guard lock(core->mutex);
  return core->hasThread;
}

StepQueue::~StepQueue() {
  {
    std::lock_guard lock(core->mutex);
    core->stopping = true;
  }
  core->changed.notify_all();
  if (thread.get_id() == std::this_thread::get_id())
    thread.detach();
  else if (thread.joinable())
    thread.join();
}

/// Whether nothing is left.
bool StepQueue::Core::tryEnd() {
  if (!left)
    return true;
  if (left->tryEnd && !left->tryEnd())
    return false;
  left->tryEnd = nullptr;
  left->step->leave();
  left.reset();
  return true;
}

void StepQueue::Core::settle() {
  for (cuda::Backoff backoff; !tryEnd();)
    backoff.pause();
}

std::shared_ptr<Step> StepQueue::left() const {
  return core->left ? core->left->step : nullptr;
}

void StepQueue::settle() { core->settle(); }

void StepQueue::work(Core &core) {
  bool isMine = false;
  auto isNeeded = [&] {
    return core.stopping || (!core.entries.empty() && (isMine || !core.isBusy));
  };
  while (true) {
    std::unique_lock lock(core.mutex);
    for (cuda::Backoff backoff; core.left && !isNeeded();) {
      lock.unlock();
      if (!core.tryEnd())
        backoff.pause();
      lock.lock();
    }
    if (isMine && core.entries.empty())
      core.isBusy = isMine = false;
    core.changed.wait_for(lock, core.idleLimit, isNeeded);
    if (core.entries.empty()) {
      core.hasThread = false;
      return;
    }
    if (!isNeeded())
      continue; // A caller runs a step.
    core.isBusy = isMine = true;
    Core::Entry entry = std::move(core.entries.front());
    core.entries.pop_front();
    lock.unlock();
    entry.tryEnd = entry.work();
    entry.work = nullptr;
    core.settle();
    core.left = std::move(entry);
    core.tryEnd();
  }
}

StepQueue::Place StepQueue::reserve(const AskInterrupted &interrupted) {
  constexpr std::chrono::milliseconds interval(30);
  auto isFree = [&] { return core->places < mostSteps; };
  std::unique_lock lock(core->mutex);
  if (!interrupted)
    core->changed.wait(lock, isFree);
  while (!core->changed.wait_for(lock, interval, isFree)) {
    std::shared_ptr<Step> last = core->last;
    lock.unlock();
    if (interrupted()) {
      if (last)
        last->interrupt();
      throw Interrupted("the run was interrupted");
    }
    lock.lock();
  }
  startThread();
  ++core->places;
  return Place(core);
}

std::optional<StepQueue::Turn> StepQueue::tryTurn() {
  std::lock_guard lock(core->mutex);
  if (core->isBusy || !core->entries.empty())
    return std::nullopt;
  core->isBusy = true;
  return Turn(core);
}

StepQueue::Turn::~Turn() {
  if (!core)
    return;
  bool isAwaited;
  {
    std::lock_guard lock(core->mutex);
    core->isBusy = false;
    isAwaited = !core->entries.empty();
  }
  if (isAwaited)
    core->changed.notify_all();
}

void StepQueue::push(Place place, std::shared_ptr<Step> step, Work work) {
  {
    std::lock_guard lock(core->mutex);
    startThread();
    step->follow(core->last);
    core->last = step;
    core->entries.push_back(
        {std::move(place), std::move(step), std::move(work)});
  }
  core->changed.notify_all();
}

} // namespace whale::runtime
