//===- SlowRank.h - A rank that works slower than it can --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shows on one machine what a cluster of unequal devices would do. The work
// between two exchanges with other ranks lasts as long as the rank's thread
// spends on the processor for it times a factor, or what it really takes if
// that is more. As long as the ranks together want less than the machine has,
// those that share cores don't slow each other down, and the ratios of their
// speeds are those of the factors.
//

#ifndef WHALE_RUNTIME_EXECUTOR_SLOWRANK_H
#define WHALE_RUNTIME_EXECUTOR_SLOWRANK_H

#include <chrono>
#include <ctime>
#include <thread>

namespace whale::runtime {

/// Used by one thread.
class SlowRank {
public:
  /// `slowdown` is at least 1; with 1 nothing is done.
  explicit SlowRank(double slowdown = 1) : factor(slowdown) {}

  /// Work begins.
  void begin() {
    if (factor > 1) {
      start = std::chrono::steady_clock::now();
      startOnProcessor = processorSeconds();
    }
  }

  /// Returns when the work since `begin` has lasted as long as it should.
  void wait() const {
    if (factor <= 1)
      return;
    std::chrono::duration<double> length(
        (processorSeconds() - startOnProcessor) * factor);
    std::this_thread::sleep_until(
        start + std::chrono::duration_cast<std::chrono::nanoseconds>(length));
  }

private:
  static double processorSeconds() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
  }

  double factor;
  std::chrono::steady_clock::time_point start;
  double startOnProcessor = 0;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_SLOWRANK_H
