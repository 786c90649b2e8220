//===- RankThreads.cpp - A thread for each rank -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executor/RankThreads.h"

#include "whale/Runtime/Error.h"

#include <string>
#include <system_error>

namespace whale::runtime {

RankThreads::RankThreads(int64_t count) {
  try {
    for (int64_t rank = 0; rank < count; ++rank)
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
    const auto &current = *job;
    lock.unlock();
    current(rank);
    lock.lock();
    if (--running == 0)
      done.notify_all();
  }
}

void RankThreads::run(const std::function<void(int64_t)> &work) {
  std::unique_lock lock(mutex);
  job = &work;
  running = static_cast<int64_t>(threads.size());
  ++round;
  start.notify_all();
  done.wait(lock, [&] { return running == 0; });
}

} // namespace whale::runtime
