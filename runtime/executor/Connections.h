//===- Connections.h - How the ranks of a program are connected -*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_CONNECTIONS_H
#define WHALE_RUNTIME_EXECUTOR_CONNECTIONS_H

#include "executor/Ranks.h"
#include "transport/ChannelNumbers.h"

namespace whale::runtime {

/// The channels of a program between its ranks, by its own numbers: all of them
/// through the memory of the hosts, and by NCCL those whose ranks are on GPUs.
class Connections {
public:
  /// All outlive it; nobody uses the ranks meanwhile. Collective where there
  /// are several processes. Throws Error.
  Connections(const BoundProgram &program, Ranks &ranks);

  /// Those of this process, by rank.
  std::vector<std::unique_ptr<Device>> createDevices();

  /// The channel that a rank waits in, if it does, while it executes an
  /// instruction. From any thread.
  std::optional<int64_t> awaited(int64_t rank,
                                 const Instruction &instruction) const;

  /// See Program::notes; complete once there are devices.
  const std::vector<LoadNote> &notes() const { return loadNotes; }

  void reset();
  void finish(int64_t rank);
  bool aborted() const { return host->aborted(); }
  bool settle();
  /// Leaves the transports' memory alone: they may use it as long as the
  /// process lives.
  void release();

private:
  void connectGpus();
  void remark(const LoadNote &note);

  const BoundProgram &program;
  Ranks &ranks;
  std::unique_ptr<ProgramChannels> host, gpus;
  std::vector<LoadNote> loadNotes;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_CONNECTIONS_H
