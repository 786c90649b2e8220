//===- Transfer.h - One use of a channel by a rank --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_MESSAGE_TRANSFER_H
#define WHALE_RUNTIME_TRANSPORT_MESSAGE_TRANSFER_H

#include "transport/message/Mover.h"
#include "transport/message/Part.h"

#include <array>
#include <deque>

namespace whale::runtime::message {

/// What a message is in one use of a channel: what a rank gives, the result of
/// a reduction, or what a LinkClock says.
enum class MessageKind : Mover::Tag { Data, Result, Delay };

/// Where ranks are, and what names a message between two of them in one use of
/// a channel.
class Addresses {
public:
  /// Throws Error where tags are too few for so many ranks of a process.
  Addresses(std::vector<int64_t> processOfRank, Mover::Tag maxTag);

  int64_t processOf(int64_t rank) const { return process[rank]; }
  /// Of a channel from 0, or of `Ticket::ofMessages`. Where there are more
  /// channels than tags, several have one: two ranks exchange their messages in
  /// the order of their queues, and those of one tag arrive in it.
  Mover::Tag tagOf(int64_t channel, MessageKind kind, int64_t from,
                   int64_t to) const {
    auto number =
        static_cast<Mover::Tag>((channel - Ticket::ofMessages) % channelTags);
    Mover::Tag tag = number << kindBits | Mover::Tag(kind);
    tag = tag << rankBits | local[from];
    return tag << rankBits | local[to];
  }

private:
  /// By rank; and its number among the ranks of its process.
  std::vector<int64_t> process;
  std::vector<Mover::Tag> local;
  static constexpr int kindBits = 2;
  int rankBits = 0;
  int64_t channelTags = 0;
};

/// The transfer at the head of a rank's queue.
class Transfer {
public:
  Transfer(Mover &mover, const Addresses &addresses)
      : mover(mover), addresses(addresses) {}

  /// `memory`: as many bytes of staging memory as the part needs.
  void begin(const Part &part, Part::Buffers buffers, char *memory);
  /// Does what the messages that have ended allow; false where that is nothing.
  bool advance();
  bool isDone() const { return !part; }

private:
  /// Of an all-reduce, one other member.
  struct Member {
    int64_t rank;
    size_t position;
    /// Messages with its slice of the source.
    int64_t toIt = 0;
    bool isAwaited = false;
  };

  void beginCells();
  bool finishCells();
  void beginSmallReduction();
  bool finishSmallReduction();
  void beginReduction();
  bool advanceReduction();
  void receiveChunk(int64_t chunk);
  void reduceChunk(int64_t chunk);
  Slice chunkOf(const Slice &slice, int64_t chunk) const;
  int64_t chunksIn(const Slice &slice) const;
  char *slotOf(int64_t chunk, size_t member) const;

  void send(int64_t to, MessageKind kind, const void *data, int64_t bytes,
            bool isSynchronous, int64_t &count);
  void receive(int64_t from, MessageKind kind, void *data, int64_t bytes,
               int64_t &count);
  Mover &mover;
  const Addresses &addresses;
  const Part *part = nullptr;
  /// By part of the channel; of an all-reduce, its only ones.
  std::vector<PartBuffers> buffers;
  const char *src = nullptr;
  char *dst = nullptr;
  char *staging = nullptr;
  int64_t elementBytes = 0;
  /// Messages that have not ended: sends, and receives apart from those of
  /// chunks, which are counted by slot.
  int64_t sending = 0, receiving = 0;
  std::array<int64_t, chunksAtOnce> chunks = {};
  /// A deque: messages count at their addresses.
  std::deque<Member> members;
  int64_t reduced = 0;
};

} // namespace whale::runtime::message

#endif // WHALE_RUNTIME_TRANSPORT_MESSAGE_TRANSFER_H
