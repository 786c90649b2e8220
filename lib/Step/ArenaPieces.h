//===- ArenaPieces.h - What is alive at the same time -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_STEP_ARENAPIECES_H
#define WHALE_LIB_STEP_ARENAPIECES_H

#include "BufferArena.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <array>

namespace whale {

/// A part of the caller's time, as 256 slots of equal length.
class Slots {
public:
  void set(int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot)
      words[slot / 64] |= uint64_t(1) << (slot % 64);
  }
  bool contains(int64_t slot) const {
    return words[slot / 64] >> (slot % 64) & 1;
  }
  bool intersects(const Slots &other) const {
    uint64_t common = 0;
    for (size_t i = 0; i < words.size(); ++i)
      common |= words[i] & other.words[i];
    return common != 0;
  }
  static constexpr int64_t count = 256;

private:
  std::array<uint64_t, count / 64> words = {};
};

/// The live range of a request in the caller's time.
struct Span {
  /// The first interval, and the end of the last.
  std::pair<int64_t, int64_t> first;
  int64_t end;
  /// The slots in which it is alive at some time; for a caller's value also
  /// those in which it is alive all the time.
  Slots touched = {}, covered = {};
};

/// Pairs of pieces: a bit for each.
class Pairs {
public:
  void resize(size_t count) {
    words = llvm::divideCeil(count, 64);
    bits.assign(count * words, 0);
  }
  void add(size_t a, size_t b) {
    set(a, b);
    set(b, a);
  }
  /// The bits of the pairs of a piece.
  const uint64_t *of(size_t piece) const { return &bits[piece * words]; }
  static bool contains(const uint64_t *row, size_t piece) {
    return row[piece / 64] >> (piece % 64) & 1;
  }
  /// Calls `fn` with each piece that `piece` is paired with.
  template <typename Fn>
  void forEach(size_t piece, Fn fn) const {
    for (size_t word = 0; word < words; ++word)
      for (uint64_t rest = of(piece)[word]; rest; rest &= rest - 1)
        fn(64 * word + llvm::countr_zero(rest));
  }

private:
  void set(size_t a, size_t b) {
    bits[a * words + b / 64] |= uint64_t(1) << (b % 64);
  }
  size_t words = 0;
  std::vector<uint64_t> bits;
};

/// A request, or a part of one: bytes that are needed at the same times.
struct ArenaPiece {
  size_t request;
  /// From the request's first byte on.
  int64_t offset;
  int64_t bytes;
  const TimeIntervals *intervals;
  std::optional<unsigned> segment = std::nullopt;
  Span span = {};
};

/// Requests in pieces, and which of them are alive at the same time.
class ArenaPieces {
public:
  /// What is given must outlive this.
  ArenaPieces(const std::vector<ArenaRequest> &requests,
              llvm::ArrayRef<ArenaCalls> segments, int64_t alignment);

  size_t size() const { return pieces.size(); }
  const ArenaPiece &operator[](size_t piece) const { return pieces[piece]; }
  /// The pieces of a request, itself first. None for one without bytes.
  llvm::ArrayRef<size_t> of(size_t request) const { return piecesOf[request]; }
  /// The live range of a request that has bytes.
  const Span &spanOf(size_t request) const {
    return pieces[piecesOf[request].front()].span;
  }
  /// The bits of the pieces that are alive at the same time as `piece`.
  const uint64_t *conflictsOf(size_t piece) const {
    return conflicts.of(piece);
  }
  /// The bytes that are alive at the same time as a piece of the request, at
  /// any of its times.
  int64_t sumConflicts(size_t request) const;
  /// By request: the most bytes that are alive in any slot of time in which it
  /// is.
  std::vector<int64_t> findCrowds() const;

private:
  void add(size_t request, int64_t offset, int64_t bytes,
           const TimeIntervals &intervals);
  void fillSlots();
  void fillConflicts();
  template <typename Overlap>
  void compare(size_t a, size_t b, Overlap overlap);

  const std::vector<ArenaRequest> &requests;
  llvm::ArrayRef<ArenaCalls> segments;
  std::vector<ArenaPiece> pieces;
  std::vector<llvm::SmallVector<size_t, 1>> piecesOf;
  /// The pairs of pieces that are alive at the same time.
  Pairs conflicts;
};

} // namespace whale

#endif // WHALE_LIB_STEP_ARENAPIECES_H
