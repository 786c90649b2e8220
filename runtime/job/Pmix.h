//===- Pmix.h - Processes started by mpirun or srun -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_JOB_PMIX_H
#define WHALE_RUNTIME_JOB_PMIX_H

#include "whale/Runtime/Job.h"

namespace whale::runtime::job {

/// Whether a launcher that speaks PMIx has started this process.
bool hasPmix();

/// Collective: asks the launcher for this process's number and the number of
/// processes. The first process opens the socket on which it coordinates and
/// publishes the address: on the loopback interface if all processes are on
/// its host, else at `host`, or its host's name where that is empty. Throws
/// Error.
JobOptions joinPmix(const std::string &host);

} // namespace whale::runtime::job

#endif // WHALE_RUNTIME_JOB_PMIX_H
