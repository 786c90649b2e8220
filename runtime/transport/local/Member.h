//===- Member.h - A rank's part of a channel --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_LOCAL_MEMBER_H
#define WHALE_RUNTIME_TRANSPORT_LOCAL_MEMBER_H

#include "transport/Slices.h"
#include "transport/Transport.h"

#include <deque>
#include <map>
#include <unordered_map>

namespace whale::runtime::local {

/// A rank in a channel: who is concerned, and how far its transfer at the head
/// of its queue has come. A rank leaves a transfer only when those that read
/// from it have, so none of those that it exchanges data with is at a later one
/// before it has reached this one.
struct Member {
  /// What the rank itself does next.
  enum class Stage : uint8_t {
    Pull,   ///< its boxes, out of its sources
    Reduce, ///< its slice of all the group's sources
    Copy,   ///< the others' slices
    Nothing,
  };

  // What the channel's tables say.
  const Collective *collective = nullptr;
  int64_t rank = 0;
  /// Itself and all that it exchanges data with; of an all-reduce the group, in
  /// its order. Null for messages without a channel.
  const std::vector<Member *> *peers = nullptr;
  /// Other members that it reads from; not of an all-reduce.
  std::vector<Member *> sources;
  /// How many others read from it: of an all-reduce, its slice of the result.
  size_t readers = 0;
  Stage firstStage = Stage::Nothing;
  Traffic traffic;
  /// What it takes on the links of the network.
  double linkSeconds = 0;

  // Of an all-reduce: the elements of its own slice, and how many members have
  // one that is not empty.
  Slice slice;
  size_t slices = 0;

  // Of messages without a channel: what goes, without what is empty; by rank
  // that any of it goes to or comes from its part, once both are at the head
  // of their queues.
  std::vector<RankMessage> sends, receives;
  std::map<int64_t, const Member *> partners;

  // The transfer at hand: by part of the channel.
  std::vector<PartBuffers> buffers;
  /// Which of the rank's transfers in this channel it is, from 1.
  int64_t use = 0;
  /// Peers that have reached it, itself among them.
  size_t arrived = 0;
  /// Peers whose slice of the result is complete.
  size_t reduced = 0;
  /// Others that have read from it.
  size_t reads = 0;
  Stage stage = Stage::Nothing;
  /// In seconds of the network's clock: when the rank's links are free for it,
  /// and when those of all peers are.
  double ready = 0, begins = 0;

  bool hasBegun() const {
    return arrived == (peers ? peers->size() : partners.size() + 1);
  }
  /// The rank itself has something to do.
  bool isActionable() const {
    return hasBegun() && stage != Stage::Nothing &&
           (stage != Stage::Copy || reduced == slices);
  }
  bool isDone() const {
    return hasBegun() && stage == Stage::Nothing && reads == readers;
  }

  /// Moves the data of its stage. Needs no lock: nobody else changes what is
  /// read or written while the member is actionable.
  void move() const;

private:
  void pull() const;
  void pull(size_t part) const;
  void pullMessages() const;
  void reduceSlice() const;
  void copySlices() const;
};

/// What is there of messages without a channel.
Member messagesOf(int64_t rank, std::span<const RankMessage> sends,
                  std::span<const RankMessage> receives);

/// The members of one channel.
class Channel {
public:
  /// `collective` outlives the channel.
  Channel(const Collective &collective, const Network &network);
  Channel(const Channel &) = delete;
  Channel &operator=(const Channel &) = delete;

  Member &at(int64_t rank) { return members.at(rank); }
  void reset();

private:
  void addCells();
  void addAllReduce();
  void addGroup(const Group &group);

  const Collective &collective;
  std::unordered_map<int64_t, Member> members;
  std::deque<std::vector<Member *>> lists;
};

} // namespace whale::runtime::local

#endif // WHALE_RUNTIME_TRANSPORT_LOCAL_MEMBER_H
