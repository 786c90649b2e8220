//===- QueueModel.h - Time of a program's queues ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: what the queue of computation of each rank does, with the seconds of each
// piece of work and of each transfer. Out: when each rank does what. The rules
// are those of the executor and its transports: a rank posts its transfers in
// the order of its starts, a transfer begins when it is the first that all its
// participants have not ended, and a wait blocks a rank until its part of the
// transfer is over. Nothing here depends on where the seconds are from: those
// of a cost model and those that were measured are both fine.
//
// Costs O(pieces + parts of transfers). Uses neither LLVM nor MLIR, so that
// what runs programs can ask, too.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_QUEUEMODEL_H
#define WHALE_STEP_QUEUEMODEL_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace whale {

/// What a rank does next on its queue of computation.
struct QueueItem {
  enum class Kind : uint8_t { Compute, Start, Wait };
  Kind kind = Kind::Compute;
  /// Start, Wait: the index in RankQueue::parts. Each is started once, in this
  /// order, and waited for at most once, later.
  size_t part = 0;
  /// Compute: how long it takes. Wait: the work that the rank does itself in
  /// it, such as copies, after the transfer is over.
  double seconds = 0;
};

/// A rank's part in a transfer.
struct TransferPart {
  /// The same number for all participants, which are those that have it; one
  /// that no other rank has begins when it heads its rank's queue.
  size_t transfer = 0;
  /// From the transfer's begin to the end of this part.
  double seconds = 0;
};

struct RankQueue {
  std::vector<QueueItem> items;
  std::vector<TransferPart> parts;
};

/// From when to when, in seconds from the step's begin.
struct Period {
  double begin = 0, end = 0;
};

struct RankTimes {
  /// When the rank is done with its items.
  double seconds = 0;
  /// By item. That of a wait is the time for which the rank is blocked, and the
  /// work that it does then.
  std::vector<Period> items;
  /// By part, once its transfer has begun.
  std::vector<Period> parts;
};

/// Returns when each rank does what; nullopt if ranks wait for one another in a
/// circle.
std::optional<std::vector<RankTimes>>
timeQueues(const std::vector<RankQueue> &ranks);

/// Returns the seconds at which each rank is done with its items, counted from
/// the step's begin; nullopt if ranks wait for one another in a circle. A rank
/// is done when it has computed everything, whether or not transfers that it
/// does not wait for are over.
std::optional<std::vector<double>>
rankSeconds(const std::vector<RankQueue> &ranks);

} // namespace whale

#endif // WHALE_STEP_QUEUEMODEL_H
