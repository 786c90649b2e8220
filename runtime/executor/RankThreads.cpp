//===- RankThreads.cpp - A thread for each rank -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executor/RankThreads.h"

#include "whale/Runtime/Types.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <system_error>
#include <utility>

namespace whale::runtime {

static constexpr std::chrono::milliseconds interval(30);

RankThreads::RankThreads(int64_t count, Where where,
                         std::chrono::milliseconds idleLimit)
    : idleLimit(idleLimit), where(where), threads(count) {
  assert((where == Where::OwnThreads || count == 1) && "one at a time");
  try {
    std::lock_guard lock(mutex);
    startMissing();
  } catch (const Error &) {
    stop();
    throw;
  }
}

RankThreads::~RankThreads() { stop(); }

void RankThreads::stop() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  start.notify_all();
  for (Thread &each : threads)
    if (each.thread.joinable())
      each.thread.join();
}

/// With the mutex held, between two runs.
void RankThreads::startMissing() {
  for (size_t i = 0; i < threads.size(); ++i) {
    Thread &each = threads[i];
    if (each.isAlive)
      continue;
    if (each.thread.joinable())
      each.thread.join(); // It takes no lock any more.
    try {
      each.thread = std::thread([this, i, seen = rounds] {
        where == Where::Caller ? watch(seen)
                               : work(static_cast<int64_t>(i), seen);
      });
      each.isAlive = true;
    } catch (const std::system_error &error) {
      throw Error("cannot start a thread for each of " +
                  std::to_string(threads.size()) + " ranks: " + error.what());
    }
  }
}

int64_t RankThreads::count() {
  std::lock_guard lock(mutex);
  return std::ranges::count_if(threads, &Thread::isAlive);
}

void RankThreads::work(int64_t rank, int64_t seen) {
  std::unique_lock lock(mutex);
  while (true) {
    bool isCalled = start.wait_for(lock, idleLimit,
                                   [&] { return stopping || rounds != seen; });
    if (stopping || !isCalled) {
      threads[rank].isAlive = false;
      return;
    }
    seen = rounds;
    lock.unlock();
    job(rank);
    lock.lock();
    if (--running == 0)
      done.notify_all();
  }
}

void RankThreads::watch(int64_t seen) {
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (!watched && rounds == seen) {
      isAsleep = true;
      bool isCalled = start.wait_for(
          lock, idleLimit, [&] { return stopping || rounds != seen; });
      isAsleep = false;
      if (!isCalled) {
        threads.front().isAlive = false;
        return;
      }
    }
    seen = rounds;
    start.wait_for(lock, interval, [&] { return stopping; });
    if (!watched)
      continue;
    isAsking = true;
    const GoOn &ask = *watched;
    lock.unlock();
    ask();
    lock.lock();
    isAsking = false;
    done.notify_all();
  }
}

bool RankThreads::runHere(const std::function<void(int64_t)> &work,
                          const GoOn &goOn) {
  std::unique_lock lock(mutex);
  if (goOn)
    startMissing();
  running = 1;
  ++rounds;
  watched = goOn ? &goOn : nullptr;
  if (isAsleep && goOn)
    start.notify_all();
  lock.unlock();
  work(0);
  lock.lock();
  running = 0;
  watched = nullptr;
  // `goOn` is the caller's.
  done.wait(lock, [&] { return !isAsking; });
  return true;
}

bool RankThreads::wait(std::unique_lock<std::mutex> &lock, const GoOn &goOn) {
  auto idle = [&] { return running == 0; };
  if (!goOn)
    done.wait(lock, idle);
  while (!done.wait_for(lock, interval, idle)) {
    lock.unlock();
    bool more = goOn();
    lock.lock();
    if (!more)
      return running == 0;
  }
  return true;
}

bool RankThreads::wait(const GoOn &goOn) {
  std::unique_lock lock(mutex);
  return wait(lock, goOn);
}

bool RankThreads::isBusy() {
  std::lock_guard lock(mutex);
  return running != 0;
}

int64_t RankThreads::round() {
  std::lock_guard lock(mutex);
  return rounds;
}

bool RankThreads::run(std::function<void(int64_t)> work, const GoOn &goOn) {
  if (where == Where::Caller)
    return runHere(work, goOn);
  // What jobs hold goes after the lock.
  std::function<void(int64_t)> before, finished;
  std::unique_lock lock(mutex);
  assert(running == 0 && "an earlier run has ended");
  startMissing();
  before = std::exchange(job, std::move(work));
  running = static_cast<int64_t>(threads.size());
  ++rounds;
  start.notify_all();
  if (!wait(lock, goOn))
    return false;
  finished = std::exchange(job, nullptr);
  return true;
}

} // namespace whale::runtime
