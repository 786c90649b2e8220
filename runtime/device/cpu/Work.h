//===- Work.h - How many threads pay ----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one rule for the threads of an operation on a processor. Waking a thread,
// and waiting for the last one, takes some microseconds, and on a machine that
// does other work, too, as long as that has the core. So an operation gets a
// thread for each share of work that takes a few times as long.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CPU_WORK_H
#define WHALE_RUNTIME_DEVICE_CPU_WORK_H

#include "program/BoundProgram.h"

#include <algorithm>

namespace whale::runtime {

/// The work of an operation, in bytes that it touches, as a kernel that one
/// thread reads and writes memory with. Of loops, cases and runs 0: they are
/// what is in them.
double workOf(const decltype(Instruction::operation) &operation);
double workOf(const Matmul &matmul);
double workOf(const Convolution &convolution);
double workOf(const Call &call);

/// How many of `most` threads so much work is worth: at least one.
inline int64_t threadsFor(double work, int64_t most) {
  // Some 50 microseconds: two threads that have less each took longer than one
  // where anything else ran beside them, and saved hardly any time alone.
  constexpr double workPerThread = 3 << 18;
  double worth = std::min(work / workPerThread, static_cast<double>(most));
  return std::max<int64_t>(1, static_cast<int64_t>(worth));
}

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CPU_WORK_H
