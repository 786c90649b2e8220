//===- Handshake.h - What processes must have in common ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_JOB_HANDSHAKE_H
#define WHALE_RUNTIME_JOB_HANDSHAKE_H

#include "whale/ProgramFormat/Program.h"
#include "whale/Runtime/Job.h"
#include "whale/Runtime/RankMap.h"

namespace whale::runtime::job {

/// One process's side of the handshake before a program runs.
struct Handshake {
  /// The checksum of the program.
  std::string program;
  /// What computes its products, which decides their bits.
  std::string instructionSet;
  /// Threads of each rank; 0 shares each host's cores out among its ranks.
  int64_t threadsPerRank = 0;
};

/// Collective: returns the threads of each rank, the same in all processes.
/// Throws one Error in all of them where they differ in what decides the
/// results, or where ranks of one node of the cluster are on several hosts.
int64_t shakeHands(Job &job, const Handshake &mine, const RankMap &map,
                   const format::Program &program);

} // namespace whale::runtime::job

#endif // WHALE_RUNTIME_JOB_HANDSHAKE_H
