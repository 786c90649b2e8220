//===- BufferArena.h - Offsets in one block of memory -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_STEP_BUFFERARENA_H
#define WHALE_LIB_STEP_BUFFERARENA_H

#include "whale/Step/BufferPlan.h"

namespace whale {

/// Whether a value is worth effort where the largest has so many bytes: large
/// results take turns with those of other segments too, and large locals have a
/// place in each layout. Both make more calls differ.
inline bool isLarge(int64_t bytes, int64_t largest) {
  constexpr int64_t largeShare = 32;
  return bytes > largest / largeShare;
}

/// A buffer that needs `bytes` during its intervals. The times of a local of a
/// segment are relative to each of its calls.
struct ArenaRequest {
  int64_t bytes;
  TimeIntervals intervals;
  std::optional<unsigned> segment = std::nullopt;
  /// What is needed of it at other times: from byte `offset` on.
  struct Part {
    int64_t offset;
    int64_t bytes;
    TimeIntervals intervals;
  };
  std::vector<Part> parts = {};
};

/// The calls of a segment, one after the other, of one duration.
struct ArenaCalls {
  int64_t duration;
  llvm::ArrayRef<int64_t> begins;
  /// If these are only some of a segment's calls: the entry of all of them.
  std::optional<unsigned> among = std::nullopt;
};

/// In which orders requests are placed. Turns is best where a request stands
/// for all that take turns in its place; Lives where each value has a request,
/// up to an arena that wastes one part in kWasteShare.
enum class ArenaOrder { Turns, Lives };

/// An arena wastes much if it is larger than what is alive at once by more than
/// one part in this many: just below the 3 % that a plan may waste.
inline constexpr int64_t kWasteShare = 34;

/// Returns an offset for each request, multiples of `alignment`, such that
/// requests alive at the same time don't overlap; sets `size` to the bytes of
/// the arena. Gives up where these are no fewer than `limit`: then `size` is at
/// least that, and the offsets are worth nothing. No two calls overlap in time,
/// also of different segments. If some calls of a segment have an entry, each
/// is in one.
std::vector<int64_t> packArena(const std::vector<ArenaRequest> &requests,
                               llvm::ArrayRef<ArenaCalls> segments,
                               int64_t alignment, int64_t &size,
                               int64_t limit = INT64_MAX,
                               ArenaOrder how = ArenaOrder::Turns);

/// Returns the most bytes that requests take at once: a lower bound of `size`.
int64_t mostAlive(const std::vector<ArenaRequest> &requests,
                  llvm::ArrayRef<ArenaCalls> segments, int64_t alignment);

} // namespace whale

#endif // WHALE_LIB_STEP_BUFFERARENA_H
