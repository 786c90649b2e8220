//===- Coordinator.h - What connects the processes of a job -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_JOB_COORDINATOR_H
#define WHALE_RUNTIME_JOB_COORDINATOR_H

#include "whale/Runtime/Job.h"

namespace whale::runtime::job {

/// Runs in the first process, on a thread of its own.
class Coordinator {
public:
  /// Takes `listener` over, and `first`: the connection with the first process,
  /// which has nothing to prove.
  static std::unique_ptr<Coordinator> create(const JobOptions &options,
                                             const std::string &secret,
                                             int listener, int first);
  /// Ends the thread.
  virtual ~Coordinator() = default;

  /// See Job::forget.
  virtual void forget() = 0;
};

} // namespace whale::runtime::job

#endif // WHALE_RUNTIME_JOB_COORDINATOR_H
