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

/// A socket that listens at a name or address, or where that is empty on all
/// interfaces; port 0 takes a free one. Throws Error.
int listenOn(const std::string &host, int port);
int portOf(int listener);
/// What this host calls itself.
std::string hostName();

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
};

} // namespace whale::runtime::job

#endif // WHALE_RUNTIME_JOB_COORDINATOR_H
