//===- Recompute.h - What a backward computes again -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which values of a forward are kept for its backward, and which are computed
// again there. The forward is a chain of pieces, each of which uses what the
// one before it makes; its backward passes them from the last to the first.
// Uses no IR.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLANNER_RECOMPUTE_H
#define WHALE_PLANNER_RECOMPUTE_H

#include <cstdint>
#include <span>
#include <vector>

namespace whale {

/// One way to have what the backward of adjacent pieces needs.
struct RecomputeChoice {
  /// The pieces, from `first` up to but not including `end`.
  int64_t first = 0, end = 1;
  /// Bytes of these pieces that are kept from the forward to their backward.
  int64_t keptBytes = 0;
  /// Bytes that are there besides while their backward runs: what is computed
  /// again for it.
  int64_t againBytes = 0;
  /// Seconds that computing them again takes.
  double seconds = 0;
};

/// One choice for each piece of a chain, by index, in the order of the pieces.
struct RecomputePlan {
  std::vector<size_t> choices;
  double seconds = 0;
  /// The most bytes that are there at a time.
  int64_t peakBytes = 0;
};

/// Returns the most bytes that a chain of choices, which cover its pieces in
/// order, has at a time. While the backward of a choice runs, what it keeps and
/// what all before it keep is there, and what it computes again; of each other
/// micro-batch in flight, all that is kept.
int64_t findRecomputePeak(std::span<const RecomputeChoice> chain,
                          int64_t inFlight);

/// Returns the fastest plan for `numPieces` pieces whose peak is at most
/// `limit`, of equally fast ones that with the lowest peak; if none is, the one
/// with the lowest peak. Every piece must be in a choice of its own.
///
/// Dynamic programming over the pieces: for each number of them, the plans that
/// no other one beats in bytes kept, peak and seconds. These may be
/// exponentially many; beyond a few thousand those are dropped that keep almost
/// the same bytes as another one. Cost: choices times plans, with a logarithm.
RecomputePlan chooseRecompute(int64_t numPieces,
                              std::span<const RecomputeChoice> choices,
                              int64_t inFlight, int64_t limit);

} // namespace whale

#endif // WHALE_PLANNER_RECOMPUTE_H
