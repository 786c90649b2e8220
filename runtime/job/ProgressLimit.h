//===- ProgressLimit.h - How long a job may stand still ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_JOB_PROGRESSLIMIT_H
#define WHALE_RUNTIME_JOB_PROGRESSLIMIT_H

#include "whale/Runtime/Job.h"

#include <algorithm>

namespace whale::runtime::job {

/// Seconds in which a job may make no progress in its first step.
inline constexpr double firstStepsLimit = 120;

/// Seconds in which a job may make no progress inside a step, or 0: for ever.
/// `steps`: the fewest that a process has ended; `slowestStep`: the seconds of
/// the slowest one of any process.
inline double progressLimit(const JobOptions &options, uint64_t steps,
                            double slowestStep) {
  // Less than some reports take says nothing.
  if (options.progressLimit)
    return *options.progressLimit > 0
               ? std::max(*options.progressLimit, 3 * options.reportSeconds)
               : 0;
  constexpr double least = 10, factor = 20;
  return steps == 0 ? firstStepsLimit : std::max(least, factor * slowestStep);
}

} // namespace whale::runtime::job

#endif // WHALE_RUNTIME_JOB_PROGRESSLIMIT_H
