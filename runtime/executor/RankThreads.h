//===- RankThreads.h - A thread for each rank -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_RANKTHREADS_H
#define WHALE_RUNTIME_EXECUTOR_RANKTHREADS_H

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace whale::runtime {

/// Threads that live as long as the program: what OpenMP keeps for each thread
/// that calls it stays warm from step to step.
class RankThreads {
public:
  /// Throws Error when the system has no more threads.
  explicit RankThreads(int64_t count);
  ~RankThreads();

  /// Calls `job(rank)` on every thread and waits for all. `job` must not throw.
  void run(const std::function<void(int64_t)> &job);

private:
  void work(int64_t rank);
  void stop();

  std::mutex mutex;
  std::condition_variable start, done;
  const std::function<void(int64_t)> *job = nullptr;
  int64_t round = 0;
  int64_t running = 0;
  bool stopping = false;
  std::vector<std::thread> threads;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_RANKTHREADS_H
