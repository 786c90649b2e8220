//===- RankThreads.h - A thread for each rank -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_RANKTHREADS_H
#define WHALE_RUNTIME_EXECUTOR_RANKTHREADS_H

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace whale::runtime {

/// Threads that stay from run to run, so that what OpenMP keeps for each thread
/// that calls it stays warm. Those that had nothing to do for some seconds end,
/// with OpenMP's, and are started anew for the next run: there may be programs
/// for hundreds of shapes, of which few are in use.
///
/// The one rank of a process may be run by the thread that calls `run`: no
/// thread has to be woken for it, nor for its end. The thread here asks whether
/// to go on, and runs that follow one another do not wake it.
class RankThreads {
public:
  enum class Where : uint8_t { OwnThreads, Caller };

  /// How long a thread waits for the next run before it ends.
  static constexpr std::chrono::milliseconds patience{2000};

  /// Throws Error when the system has no more threads.
  explicit RankThreads(int64_t count, Where where = Where::OwnThreads,
                       std::chrono::milliseconds idleLimit = patience);
  ~RankThreads();

  /// Called every few hundredths of a second by a thread that waits; false
  /// ends the waiting.
  using GoOn = std::function<bool()>;

  /// Calls `job(rank)` on every thread, waits for all and returns true; or
  /// returns false where `goOn` has ended the waiting, and the threads are left
  /// to finish by themselves. A job in the caller's thread is never left: there
  /// `goOn`, which another thread calls, has to end it. `job` must not throw.
  /// Throws Error when the system has no more threads.
  bool run(std::function<void(int64_t)> job, const GoOn &goOn = nullptr);

  /// Waits for threads that a run has left; false as there.
  bool wait(const GoOn &goOn = nullptr);
  bool isBusy();
  /// Counts runs.
  int64_t round();
  /// Those that have not ended.
  int64_t count();

private:
  void work(int64_t rank, int64_t seen);
  void watch(int64_t seen);
  void startMissing();
  bool runHere(const std::function<void(int64_t)> &work, const GoOn &goOn);
  bool wait(std::unique_lock<std::mutex> &lock, const GoOn &goOn);
  void stop();

  const std::chrono::milliseconds idleLimit;
  std::mutex mutex;
  std::condition_variable start, done;
  std::function<void(int64_t)> job;
  int64_t rounds = 0;
  int64_t running = 0;
  bool stopping = false;
  const Where where;
  /// Of a run in the caller's thread; whether it is being asked; whether the
  /// thread that asks must be woken for the next run.
  const GoOn *watched = nullptr;
  bool isAsking = false, isAsleep = false;
  struct Thread {
    std::thread thread;
    bool isAlive = false;
  };
  std::vector<Thread> threads;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_RANKTHREADS_H
