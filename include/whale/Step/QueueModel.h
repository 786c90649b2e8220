//===- QueueModel.h - Time of a program's queues ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: what the queue of computation of each rank does, with the seconds of each
// piece of work, and what each transfer carries over which links, or how long
// it takes. Out: when each rank does what. The rules are those of the executor
// and its transports: a rank posts its transfers in the order of its starts, a
// transfer begins when it is the first that all its participants have not
// ended, and a wait blocks a rank until its part of the transfer is over.
// Transfers that go on at once share the links that they have in common, and
// may slow down what their ranks compute. Nothing here depends on where the
// seconds are from: those of a cost model and those that were measured are both
// fine. Where the order of a rank's work is still to be found, StepEngine.h
// asks for each item at the time when the rank can take it.
//
// Uses neither LLVM nor MLIR, so that what runs programs can ask, too.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_QUEUEMODEL_H
#define WHALE_STEP_QUEUEMODEL_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace whale {

/// What a rank does next on its queue of computation.
struct QueueItem {
  enum class Kind : uint8_t {
    Compute,
    Start,
    Wait,
    /// Blocks until a computation of any rank is over, and what it made has
    /// arrived: a send that is buffered, and shares nothing with others.
    Await,
    /// Of a rank that has nothing to do at present: what chooses its items is
    /// asked again when the time has passed, or something else happened.
    Idle,
  };
  static constexpr size_t kNoSignal = static_cast<size_t>(-1);

  Kind kind = Kind::Compute;
  /// Start, Wait: the index in RankQueue::parts. Each is started once, and
  /// waited for at most once.
  size_t part = 0;
  /// Compute: how long it takes. Wait: the work that the rank does itself in
  /// it, such as copies, after the transfer is over. Await: from the end of the
  /// computation to the arrival. Idle: the time, which may be infinite.
  double seconds = 0;
  /// Compute: what its end is known by, to those that Await it.
  size_t signal = kNoSignal;
  /// Compute: what it reads and writes of the memory of the rank's host.
  double bytes = 0;
};

/// A rank's part in a transfer.
struct TransferPart {
  /// The same number for all participants, which are those that have it; one
  /// that no other rank has begins when it heads its rank's queue.
  size_t transfer = 0;
  /// From the transfer's begin to the end of this part; of one that carries
  /// something, besides the time that this takes.
  double seconds = 0;
  /// Whether it is a copy between the memories of the rank's host and device,
  /// which have a queue of their own and leave computation alone.
  bool isCopy = false;
};

struct RankQueue {
  /// None if a QueueSource says them.
  std::vector<QueueItem> items;
  std::vector<TransferPart> parts;
  /// How much longer it computes while a transfer of its goes on: a part of the
  /// time without one.
  double overlapTax = 0;
  static constexpr size_t kNoHost = static_cast<size_t>(-1);
  /// Of a rank that shares cores and memory with others: the number of its
  /// host, and how many ranks of it this one stands for.
  size_t host = kNoHost;
  double ranksOnHost = 1;
};

/// What all ranks share.
struct SharedLinks {
  /// What a transfer carries over a link.
  struct Load {
    size_t link = 0;
    double bytes = 0;
  };
  /// All loads advance in proportion, and the transfer is over when they are.
  struct Cargo {
    std::vector<Load> loads;
    /// Of several transfers that are alike and written down as one: the seconds
    /// that each of them takes alone. 0 of one.
    double secondsAlone = 0;
  };
  /// Bytes per second of each link.
  std::vector<double> bandwidths;
  /// By transfer; of those beyond the end nothing.
  std::vector<Cargo> cargos;
  /// What ranks share that compute on one host. Where more compute at once than
  /// it has cores, all of them get as much of these. Of the memory's bandwidth
  /// none gets more than another that could do with more.
  struct Host {
    double cores = std::numeric_limits<double>::infinity();
    double memoryBandwidth = std::numeric_limits<double>::infinity();
  };
  std::vector<Host> hosts;
};

/// From when to when, in seconds from the step's begin.
struct Period {
  double begin = 0, end = 0;
};

struct RankTimes {
  /// When the rank is done with its items.
  double seconds = 0;
  /// By item, in the order in which they were taken. That of a wait is the time
  /// for which the rank is blocked, and the work that it does then.
  std::vector<Period> items;
  /// By part, once its transfer has begun.
  std::vector<Period> parts;
};

/// Returns when each rank does what; nullopt if ranks wait for one another in a
/// circle. Of the transfers that share a link none gets more than another that
/// could do with more (max-min fairness of the part of the time that each would
/// take alone).
std::optional<std::vector<RankTimes>>
timeQueues(const std::vector<RankQueue> &ranks, const SharedLinks &links = {});

/// Returns the seconds at which each rank is done with its items, counted from
/// the step's begin; nullopt if ranks wait for one another in a circle. A rank
/// is done when it has computed everything, whether or not transfers that it
/// does not wait for are over.
std::optional<std::vector<double>>
rankSeconds(const std::vector<RankQueue> &ranks);

} // namespace whale

#endif // WHALE_STEP_QUEUEMODEL_H
