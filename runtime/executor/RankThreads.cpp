//===- RankThreads.cpp - A thread for each rank -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executor/RankThreads.h"

#include "whale/Runtime/Types.h"

#include <cassert>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

namespace whale::runtime {

static constexpr std::chrono::milliseconds interval(30);

RankThreads::RankThreads(int64_t count, Where where) : where(where) {
  assert((where == Where::OwnThreads || count == 1) && "one at a time");
  try {
    if (where == Where::Caller)
      threads.emplace_back([this] { watch(); });
    for (int64_t rank = 0; where == Where::OwnThreads && rank < count; ++rank)
      threads.emplace_back([this, rank] { work(rank); });
  } catch (const std::system_error &error) {
    stop();
    throw Error("cannot start a thread for each of " + std::to_string(count) +
                " ranks: " + error.what());
  }
}

RankThreads::~RankThreads() { stop(); }

void RankThreads::stop() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  start.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

void RankThreads::work(int64_t rank) {
  int64_t seen = 0;
  std::unique_lock lock(mutex);
  while (true) {
    start.wait(lock, [&] { return stopping || round != seen; });
    if (stopping)
      return;
    seen = round;
    lock.unlock();
    job(rank);
    lock.lock();
    if (--running == 0)
      done.notify_all();
  }
}

void RankThreads::watch() {
  int64_t seen = 0;
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (!watched && round == seen) {
      isAsleep = true;
      start.wait(lock, [&] { return stopping || round != seen; });
      isAsleep = false;
    }
    seen = round;
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
  running = 1;
  ++round;
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

bool RankThreads::run(std::function<void(int64_t)> work, const GoOn &goOn) {
  if (where == Where::Caller)
    return runHere(work, goOn);
  // What jobs hold goes after the lock.
  std::function<void(int64_t)> before, finished;
  std::unique_lock lock(mutex);
  assert(running == 0 && "an earlier run has ended");
  before = std::exchange(job, std::move(work));
  running = static_cast<int64_t>(threads.size());
  ++round;
  start.notify_all();
  if (!wait(lock, goOn))
    return false;
  finished = std::exchange(job, nullptr);
  return true;
}

} // namespace whale::runtime
