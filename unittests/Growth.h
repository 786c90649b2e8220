//===- Growth.h - How time grows with size ----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_GROWTH_H
#define WHALE_UNITTESTS_GROWTH_H

#include <algorithm>
#include <cstddef>
#include <ctime>

namespace whale::test {

/// The processor's seconds for this thread: what others run does not count.
inline double ownSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

/// Whether work of 16 times the size takes at most 64 times as long, the best
/// of three each. Linear work takes 16 times, or 20 with a logarithm; quadratic
/// work takes 256 times.
template <typename Work>
bool isNearlyLinear(Work work, size_t size) {
  auto secondsOf = [&](size_t count) {
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
      double begin = ownSeconds();
      work(count);
      best = std::min(best, ownSeconds() - begin);
    }
    return best;
  };
  double small = secondsOf(size);
  return secondsOf(16 * size) < 64 * small;
}

} // namespace whale::test

#endif // WHALE_UNITTESTS_GROWTH_H
