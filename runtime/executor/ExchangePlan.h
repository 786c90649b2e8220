//===- ExchangePlan.h - What goes between processes -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_EXECUTOR_EXCHANGEPLAN_H
#define WHALE_RUNTIME_EXECUTOR_EXCHANGEPLAN_H

#include "CopyBox.h"
#include "whale/ProgramFormat/Exchange.h"
#include "whale/Runtime/RankMap.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace whale::runtime {

using format::Layout;
using format::MovedPiece;
using format::Shape;

/// An array that goes from one layout to another.
struct ArrayMove {
  int64_t elementBytes;
  std::shared_ptr<const Layout> from;
  /// Which process has what of it.
  std::shared_ptr<const RankMap> fromRanks;
  std::shared_ptr<const Layout> to;

  bool operator==(const ArrayMove &other) const {
    return elementBytes == other.elementBytes &&
           (from == other.from || *from == *other.from) &&
           (fromRanks == other.fromRanks || *fromRanks == *other.fromRanks) &&
           (to == other.to || *to == *other.to);
  }
};

/// Where the ranks of an exchange are. Between GPUs each rank counts as a
/// process of its own: it is memory that they have in common or not.
struct ExchangePlaces {
  /// This process, and how many there are.
  int64_t process = 0, processes = 1;
  /// By rank of the layouts that are wanted.
  std::vector<int64_t> processOf;
  /// By process.
  std::vector<unsigned> hostOf;
  /// By process: whether it and this one read what is packed for them in each
  /// other's memory. Empty, in all processes, where none do.
  std::vector<bool> areRead;
  bool isRead(int64_t other) const {
    return !areRead.empty() && areRead[other];
  }
  /// The most bytes that a process gives, or takes, in a round.
  int64_t roundBytes = hostRoundBytes;
  /// What is packed is one huge page, and stays in the cache until it is sent.
  static constexpr int64_t hostRoundBytes = 2 << 20;
  /// What others read of a process lies there for two rounds.
  static constexpr int64_t readBytes = 2 * hostRoundBytes;
};

/// A piece of a shard, and how it is copied (CopyBox.h).
struct PlacedPiece {
  size_t piece;
  /// Counted over all moves.
  size_t shard;
  /// Where it begins in the shard.
  int64_t begin;
  int64_t elementBytes;
  int64_t runBytes;
  /// In the plan's list.
  size_t firstLoop, loops;
};

/// What this process gives in a round, or what it takes.
struct RoundSide {
  /// A piece in the memory for packed ones, and where it begins there. What is
  /// read in the memory of the process that has packed it begins so many bytes
  /// behind what the message of the number `told` says.
  struct Packed : PlacedPiece {
    int64_t offset;
    std::optional<size_t> told;
  };
  /// With another process.
  struct Message {
    enum class Content : uint8_t {
      /// A piece that lies in its shard as one run.
      Piece,
      /// What is packed from `offset` on.
      Packed,
      /// The number `offset`: where in the sender's memory the other process
      /// finds what is packed for it.
      Place,
      /// A number, too: that process has copied what it was told of in the
      /// round before.
      Copied
    };
    int64_t process;
    int64_t bytes;
    Content content;
    size_t piece;
    int64_t offset;
  };
  std::vector<Packed> packed;
  std::vector<Message> messages;
  /// Where what is packed ends.
  int64_t packedBytes = 0;
};

/// What goes at once.
struct ExchangeRound {
  RoundSide given, taken;
  /// How many pieces of which shards are given.
  std::vector<std::pair<size_t, int64_t>> uses;
};

/// The shards of a list of arrays, counted by array and rank.
struct ShardNumbers {
  void add(size_t ranks) { first.push_back(first.back() + ranks); }
  size_t of(size_t array, size_t rank) const { return first[array] + rank; }
  size_t count() const { return first.back(); }

  std::vector<size_t> first = {0};
};

struct ExchangePlan {
  std::vector<ArrayMove> moves;
  /// What moves go from, and to.
  ShardNumbers sources, results;
  /// Those that this process gives, or takes, or both.
  std::vector<MovedPiece> pieces;
  std::vector<CopyLoop> loops;
  std::span<const CopyLoop> loopsOf(const PlacedPiece &piece) const {
    return std::span(loops).subspan(piece.firstLoop, piece.loops);
  }
  /// By rank: those that stay in the process, and where they go.
  struct LocalPiece : PlacedPiece {
    size_t result;
    int64_t resultBegin;
  };
  std::vector<std::vector<LocalPiece>> local;
  /// Those in which this process gives or takes something.
  std::vector<ExchangeRound> rounds;
  /// How many pieces of each source this process gives.
  std::vector<int64_t> uses;
};

/// Plans an exchange for one process: all of them plan the same messages.
/// Pieces that are large go as messages of their own, the others of two
/// processes in one; what several get is packed once. Where processes read each
/// other's memory, they copy what is packed from there, and only other pieces
/// go as messages; what is packed in a round stays while the next one is
/// packed, in twice as much memory. Throws Error where a process that has no
/// rank would have to give something. Cost: that of exchangeOf.
ExchangePlan planExchange(std::span<const ArrayMove> moves,
                          const ExchangePlaces &places);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_EXECUTOR_EXCHANGEPLAN_H
