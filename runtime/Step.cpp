//===- Step.cpp - A step that was handed over -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Step.h"

#include "whale/System/Processors.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

namespace whale::runtime {

static constexpr const char *kInterrupted = "the run was interrupted";

std::shared_ptr<Step>
Step::create(std::span<const std::shared_ptr<Step>> before, OnLoss onLoss) {
  // A child of this process leaves it as it is: a condition that threads of the
  // parent wait for cannot be destroyed.
  std::shared_ptr<Step> step(new Step, [](Step *step) {
    if (step->process == system::processId())
      delete step;
  });
  step->process = system::processId();
  step->onLoss = std::move(onLoss);
  for (const std::shared_ptr<Step> &other : before)
    step->follow(other);
  return step;
}

void Step::check() const {
  Outcome how = outcome.load();
  if (how == Outcome::Failed)
    throw Error(error);
  if (how == Outcome::Interrupted)
    throw Interrupted(error);
  if (how == Outcome::Open && process != system::processId())
    throw Error("the step had not ended in the parent process when this one "
                "was forked: wait for its results before the fork");
}

void Step::wait(const AskInterrupted &interrupted) {
  constexpr std::chrono::milliseconds interval(30);
  check();
  if (hasEnded())
    return;
  auto ended = [&] { return hasEnded(); };
  std::unique_lock lock(mutex);
  if (!interrupted)
    changed.wait(lock, ended);
  while (!changed.wait_for(lock, interval, ended)) {
    lock.unlock();
    if (interrupted()) {
      interrupt();
      throw Interrupted(kInterrupted);
    }
    lock.lock();
  }
  check();
}

void Step::interrupt() {
  std::vector<std::shared_ptr<Step>> earlier;
  {
    std::lock_guard lock(mutex);
    earlier = before;
  }
  if (thread == std::this_thread::get_id())
    failInterrupted();
  for (const std::shared_ptr<Step> &step : earlier)
    step->interrupt();
}

void Step::stop(std::span<const std::shared_ptr<Step>> steps) {
  for (const std::shared_ptr<Step> &step : steps)
    if (step->process == system::processId() && step->claim())
      step->isGivenUp = true;
  for (const std::shared_ptr<Step> &step : steps) {
    if (step->process != system::processId())
      continue;
    std::unique_lock lock(step->mutex);
    step->changed.wait(lock, [&] { return step->hasLeft(); });
  }
}

void Step::follow(const std::shared_ptr<Step> &other) {
  if (!other || other->hasEnded())
    return;
  std::lock_guard lock(mutex);
  if (!isClaimed && std::ranges::count(before, other) == 0)
    before.push_back(other);
}

bool Step::claim() {
  OnLoss unused;
  return claim(unused);
}

bool Step::claim(OnLoss &taken) {
  // What they hold goes after the lock.
  std::vector<std::shared_ptr<Step>> earlier;
  std::lock_guard lock(mutex);
  if (isClaimed)
    return false;
  isClaimed = true;
  earlier.swap(before);
  taken.swap(onLoss);
  return true;
}

void Step::publish() { publish(Outcome::Well); }

void Step::publish(Outcome how) {
  assert(isClaimed && "one thread ends a step");
  {
    std::lock_guard lock(mutex);
    outcome = how;
  }
  changed.notify_all();
}

void Step::end(Outcome how, const std::string &what) {
  OnLoss lose;
  if (!claim(lose))
    return;
  error = what;
  if (lose)
    lose(how == Outcome::Interrupted
             ? "donated to a program that was interrupted"
             : "donated to a program that failed");
  publish(how);
}

void Step::failInterrupted() { end(Outcome::Interrupted, kInterrupted); }

void Step::leave() {
  {
    std::lock_guard lock(mutex);
    left = true;
  }
  changed.notify_all();
}

} // namespace whale::runtime
