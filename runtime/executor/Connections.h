//===- Connections.h - How the ranks of a program are connected -*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_CONNECTIONS_H
#define WHALE_RUNTIME_EXECUTOR_CONNECTIONS_H

#include "device/Device.h"
#include "transport/nccl/NcclTransport.h"
#include "whale/Cluster/Topology.h"
#include "whale/Runtime/Program.h"

namespace whale::runtime {

/// Which ranks run in this process.
struct Ranks {
  /// All ranks in one process.
  explicit Ranks(size_t count) : Ranks(count, nullptr) {}
  Ranks(size_t count, std::shared_ptr<Job> job);

  bool isLocal(size_t rank) const { return processOf[rank] == process; }

  /// Null where there is one process.
  std::shared_ptr<Job> job;
  int64_t process = 0;
  /// By rank.
  std::vector<int64_t> processOf;
  std::vector<int64_t> local;
};

/// The transports of a program: one between all ranks, through the memory of
/// their hosts, and NCCL where ranks are on GPUs. Both are aborted together.
class Connections {
public:
  /// All outlive it. Collective where there are several processes.
  Connections(const BoundProgram &program, const LoadOptions &options,
              const Ranks &place);
  /// Lets the ranks on GPUs meet, before anything is run. Collective, too;
  /// `abort` ends it with Aborted.
  void connect();

  /// Those of this process, by rank.
  std::vector<std::unique_ptr<Device>> createDevices(const Ranks &place);

  Transport &host() { return *transport; }
  /// By rank, its host.
  const Topology &hosts() const { return hostOfRank; }
  /// The channel that a rank waits in, if it does, while it executes an
  /// instruction. From any thread.
  std::optional<int64_t> awaited(int64_t rank,
                                 const Instruction &instruction) const;

  /// See Program::notes; complete once there are devices.
  const std::vector<LoadNote> &notes() const { return loadNotes; }

  void reset();
  void finish(int64_t rank);
  void abort();
  bool aborted() const { return transport->aborted(); }
  bool settle();
  /// Leaves the transports' memory alone: they may use it as long as the
  /// process lives.
  void release();

private:
  void findGpus(const Ranks &place);
  bool isOnGpu(size_t rank) const {
    return !program.classOf(static_cast<int64_t>(rank)).isForProcessor;
  }

  const BoundProgram &program;
  const LoadOptions &options;
  const Topology hostOfRank;
  std::unique_ptr<Transport> transport;
  /// By rank; null where it is not here or on the processor, empty where the
  /// program is for no GPUs.
  std::vector<std::shared_ptr<cuda::Gpu>> gpus;
  std::unique_ptr<NcclTransport> gpuTransport;
  std::vector<LoadNote> loadNotes;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_CONNECTIONS_H
