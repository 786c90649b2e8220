//===- Parallel.h - The threads of one rank ---------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops over the rank's threads run in the OpenMP runtime that oneDNN uses too:
// a second pool of threads would compete with the first for the same cores.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CPU_PARALLEL_H
#define WHALE_RUNTIME_DEVICE_CPU_PARALLEL_H

#include <algorithm>
#include <cstdint>
#include <functional>

namespace whale::runtime {

/// Says how many threads parallel regions begun by this thread get.
void setThreadCount(int64_t threads);

/// How many that is, of the calling thread.
int64_t getThreadCount();

/// Throws Error where the system has not so many threads, the calling one among
/// them: OpenMP's runtimes end the process then.
void checkThreads(int64_t count);

/// Sets the number for as long as it lives.
class ThreadCount {
public:
  explicit ThreadCount(int64_t threads) : before(getThreadCount()) {
    setThreadCount(threads);
  }
  ~ThreadCount() { setThreadCount(before); }
  ThreadCount(const ThreadCount &) = delete;
  ThreadCount &operator=(const ThreadCount &) = delete;

private:
  int64_t before;
};

/// How many of `most` threads so much work is worth, at least one. The work is
/// given in bytes, as that of a kernel which one thread reads and writes memory
/// with; it is the one rule for all operations and functions of a processor.
/// Waking a thread, and waiting for the last one, takes some microseconds, and
/// some ten where its core sleeps or does other work. So a thread is taken for
/// each share of work that takes a few times as long.
inline int64_t threadsFor(double work, int64_t most) {
  // Some 50 microseconds: two threads that have less each took longer than one
  // where anything else ran beside them, and saved hardly any time alone.
  constexpr double workPerThread = 3 << 18;
  double worth = std::min(work / workPerThread, static_cast<double>(most));
  return std::max<int64_t>(1, static_cast<int64_t>(worth));
}

/// Calls `body(begin, end)` for `parts` nearly equal consecutive ranges that
/// make up [0, count), perhaps at once; returns when all are done, with the
/// first exception if any threw.
void parallelFor(int64_t count, int64_t parts,
                 const std::function<void(int64_t, int64_t)> &body);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CPU_PARALLEL_H
