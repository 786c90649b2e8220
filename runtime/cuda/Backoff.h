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
#include <thread>

namespace whale::runtime::cuda {

/// Between the questions of a thread that waits for a GPU: first it leaves the
/// processor to others that want it, after a millisecond it sleeps.
class Backoff {
public:
  std::chrono::steady_clock::duration waited() const {
    return std::chrono::steady_clock::now() - begin;
  }
  void pause() const {
    if (waited() < std::chrono::milliseconds(1))
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

private:
  const std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_CUDA_BACKOFF_H
