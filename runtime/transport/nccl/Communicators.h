//===- Communicators.h - NCCL's communicators of ranks ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_NCCL_COMMUNICATORS_H
#define WHALE_RUNTIME_TRANSPORT_NCCL_COMMUNICATORS_H

#include "transport/nccl/NcclTransport.h"

#include <atomic>

namespace whale::runtime::nccl {

/// Bytes for a rank, or from one.
struct Message {
  int64_t peer;
  const void *data;
  int64_t bytes;
};

/// The communicators of groups of ranks, of which some are here. A rank's
/// methods are called on the thread that its GPU is attached to. None blocks
/// for longer than `stop` is false: then they throw Aborted.
class Communicators {
public:
  /// `gpus` by rank, null for those that are not here. Collective.
  Communicators(const cuda::Libraries &libraries,
                std::vector<std::shared_ptr<cuda::Gpu>> gpus,
                Exchange exchange);
  ~Communicators() { end(); }

  const std::vector<std::shared_ptr<cuda::Gpu>> &localGpus() const {
    return gpus;
  }
  /// By rank of all processes, what tells its GPU from others; empty where it
  /// is on none.
  const std::vector<std::string> &gpuOfRanks() const { return gpuOfRank; }

  /// Makes one for each group that has none, in their order. Collective:
  /// processes give the groups that their ranks are in, and perhaps others.
  /// Returns why one of them cannot begin, the same in all: then nothing has
  /// been made. Where it throws, those that were made are still to be ended.
  std::string connect(const Groups &groups);
  /// Whether a group has one; the same in all processes.
  bool has(const Group &group) const { return connected.contains(group); }
  /// Whether all that were made have been ended.
  bool areEnded() const { return wereEnded; }
  /// Ends all that are here, on any thread: in order if nothing was stopped and
  /// the other ranks do the same within seconds, else as `abandon` does.
  void end();
  /// Puts a group of sends and receives on the rank's communication stream, of
  /// a channel if there is one.
  void put(int64_t rank, const Group &group, std::optional<int64_t> channel,
           std::vector<Message> sends, std::vector<Message> receives);
  /// Throws the error of NCCL, if there is one, of a channel if that is known.
  void check(int64_t rank, std::optional<int64_t> channel) const;
  void throwIfStopped() const {
    if (stop)
      throw Aborted();
  }
  /// Aborts what ranks have, on any thread, which ends what is on their
  /// communication streams.
  void abandon(std::span<const int64_t> ranks);

  std::atomic<bool> stop = false;

private:
  /// Calls `visit` with all that are here; of a GPU that is lost, with none.
  template <typename Visit>
  void forEach(Visit visit) const {
    for (size_t rank = 0; rank < gpus.size(); ++rank)
      if (gpus[rank] && gpus[rank]->tryAttach())
        for (const auto &[group, communicator] : ofRank[rank])
          if (communicator)
            visit(communicator);
  }
  /// The first error of those that are here; else kNcclInProgress where one has
  /// something to do, or 0.
  cuda::NcclStatus state() const;
  void check(const char *function, cuda::NcclStatus status,
             cuda::Communicator communicator = nullptr,
             std::optional<int64_t> channel = std::nullopt) const;
  void begin(const Group &group,
             const std::map<std::string, cuda::CommunicatorId> &ids);
  void drop(const Group &group);
  bool abortsInGroups() const;
  bool isReady(cuda::Communicator communicator,
               std::optional<int64_t> channel) const;
  void ready(cuda::Communicator communicator,
             std::optional<int64_t> channel = std::nullopt) const;

  const cuda::Libraries &libraries;
  /// Opened when the first one is made.
  const cuda::Nccl *nccl = nullptr;
  const std::vector<std::shared_ptr<cuda::Gpu>> gpus;
  const Exchange exchange;
  std::vector<std::string> gpuOfRank;
  /// By rank. A group has one in all its ranks or in none.
  std::vector<std::map<Group, cuda::Communicator>> ofRank;
  /// Those that have communicators in any process.
  Groups connected;
  bool wereEnded = false;
};

} // namespace whale::runtime::nccl

#endif // WHALE_RUNTIME_TRANSPORT_NCCL_COMMUNICATORS_H
