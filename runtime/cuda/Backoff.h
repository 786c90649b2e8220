//===- Backoff.h - Pauses of a thread that asks again -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_BACKOFF_H
#define WHALE_RUNTIME_CUDA_BACKOFF_H

#include <chrono>
#include <sys/prctl.h>
#include <thread>

namespace whale::runtime::cuda {

/// Between the questions of a thread that waits for a GPU: first it leaves the
/// processor to others that want it, after a millisecond it sleeps. The GPU is
/// idle from the end of a step until this thread has seen it: it sleeps for
/// 20 us, not the 50 more that Linux otherwise adds to collect its timers.
class Backoff {
public:
  std::chrono::steady_clock::duration waited() const {
    return std::chrono::steady_clock::now() - begin;
  }
  void pause() const {
    if (waited() < std::chrono::milliseconds(1))
      std::this_thread::yield();
    else
      sleep();
  }

private:
  static void sleep() {
    [[maybe_unused]] thread_local const int status =
        prctl(PR_SET_TIMERSLACK, 1000UL);
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }

  const std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_CUDA_BACKOFF_H
