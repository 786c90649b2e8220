//===- Part.h - A rank's messages in a channel ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_MESSAGE_PART_H
#define WHALE_RUNTIME_TRANSPORT_MESSAGE_PART_H

#include "transport/Reduce.h"
#include "transport/Slices.h"
#include "transport/Transport.h"

#include <functional>
#include <set>

namespace whale::runtime::message {

/// What a rank sends and receives in one use of a channel; both sides of a
/// message derive it from the program alone.
struct Part {
  /// A box of the buffer of a part of the channel, with the extents of its
  /// cells, as a piece of a message: its elements in row-major order, at
  /// `offset` bytes.
  struct Piece {
    size_t part;
    const Shape *start;
    const Shape *size;
    int64_t offset;
  };
  /// What goes from one rank to another one: of all parts of the channel in
  /// the order of their element sizes, from large to small, each in the order
  /// of the receiver's cells; but large parts by themselves (aloneBytes).
  struct Message {
    int64_t peer;
    std::vector<Piece> pieces;
    int64_t bytes = 0;
    /// Where it is in the buffer of its only piece, if that has it in one run;
    /// else it goes through staging memory, at `staging`.
    std::optional<int64_t> direct;
    int64_t staging = 0;
    /// Where it is, if it is in none of the channel's buffers.
    char *data = nullptr;

    /// What is direct is of this part.
    size_t directPart() const { return pieces.front().part; }
  };
  /// One cell of the destination; `sources` say where its contributions are:
  /// in a received message, or, without one, in the rank's own source.
  struct Source {
    const Message *message = nullptr;
    int64_t offset = 0;
    const Shape *start = nullptr;
  };
  struct Assembly {
    size_t part;
    const Cell *cell;
    std::vector<Source> sources;
  };

  /// `collective` outlives the part.
  Part(const Collective &collective, int64_t channel, int64_t rank);
  /// Messages without a channel.
  Part(int64_t rank, std::span<const RankMessage> sends,
       std::span<const RankMessage> receives);
  Part(const Part &) = delete;
  Part &operator=(const Part &) = delete;

  bool hasChannel() const;

  using Buffers = std::span<const PartBuffers>;
  /// Copies the elements of a message that the rank sends to `to`, from its
  /// sources.
  void pack(const Message &message, Buffers buffers, char *to) const;
  /// Where a message has been received.
  using DataOf = std::function<const char *(const Message &)>;
  /// Calls `visit` with the part, the cell and the sources of each assembly.
  void forEachAssembly(
      Buffers buffers, const DataOf &dataOf,
      const std::function<void(size_t part, const Cell &,
                               std::span<const BoxSource>)> &visit) const;
  /// Fills the destinations with what assemblies say.
  void assemble(Buffers buffers, const DataOf &dataOf) const;
  /// Of an all-reduce: reduces the sources of all members, in the group's
  /// order; `dataOf` is where that of a peer is, by its place in `peers`.
  void reduceSources(const char *src, char *dst,
                     const std::function<const char *(size_t)> &dataOf) const;

  const Collective &collective;
  const int64_t channel, rank;
  Traffic traffic;
  /// All that the rank exchanges data with, itself apart.
  std::vector<int64_t> peers;
  int64_t stagingBytes = 0;
  /// What it takes on the links of an emulated network, where there is one.
  std::optional<double> linkSeconds;

  /// Unless it is an all-reduce.
  std::vector<Message> sends, receives;
  /// What is left to do once all messages are there.
  std::vector<Assembly> assemblies;

  /// Of an all-reduce: the group, by position the slices of its members, and
  /// the rank's own position. Where `isSmall`, each member sends all to all
  /// others and reduces all: half the messages.
  std::vector<int64_t> group;
  bool isSmall = false;
  std::vector<Slice> slices;
  size_t position = 0;

private:
  void addAllReduce();
  void addCells();

  using Cells = std::vector<Cell>;
  /// Those of a part that the rank receives; null if there are none.
  const Cells *ownCells(const ChannelPart &tensor) const;
  void addMessages();
  /// Parts of the channel, and the peers of which there are terms of sums.
  using Terms = std::set<std::pair<size_t, int64_t>>;
  Terms findTerms() const;
  void planStaging(std::vector<Message> &messages,
                   std::map<int64_t, Shape> ChannelPart::*extents,
                   const Terms &terms);
  void addAssemblies();
};

/// What a rank sends another one of a part is a message by itself from so many
/// bytes on: to pack it would cost more than what a message costs.
inline constexpr int64_t aloneBytes = 64 << 10;
/// Most bytes of a message of several parts: it is packed at both ends.
inline constexpr int64_t mostJoined = 1 << 20;
/// Most bytes of a small all-reduce: what messages cost beside their bytes
/// decides until about here.
inline constexpr int64_t smallBytes = 32 << 10;
/// Bytes of a slice that are received from each member at a time: enough to
/// hide the start of a message, and few enough to stay in the cache.
inline constexpr int64_t chunkBytes = 512 << 10;
/// Chunks that are on their way while one is reduced, and that one.
inline constexpr int64_t chunksAtOnce = 2;

} // namespace whale::runtime::message

#endif // WHALE_RUNTIME_TRANSPORT_MESSAGE_PART_H
