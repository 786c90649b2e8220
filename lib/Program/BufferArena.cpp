//===- BufferArena.cpp - Offsets in one block of memory ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Greedy by size: the largest buffer first, each into the smallest gap between
// the buffers that are alive at the same time.
//
//===----------------------------------------------------------------------===//

#include "BufferArena.h"

#include "whale/Program/BufferPlan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace whale {
namespace {

bool together(const ArenaRequest &a, const ArenaRequest &b) {
  if (a.intervals.back().second <= b.intervals.front().first ||
      b.intervals.back().second <= a.intervals.front().first)
    return false;
  size_t i = 0, j = 0;
  while (i < a.intervals.size() && j < b.intervals.size()) {
    auto [aBegin, aEnd] = a.intervals[i];
    auto [bBegin, bEnd] = b.intervals[j];
    if (std::max(aBegin, bBegin) < std::min(aEnd, bEnd))
      return true;
    (aEnd < bEnd ? i : j) += 1;
  }
  return false;
}

} // namespace

std::vector<int64_t> packArena(const std::vector<ArenaRequest> &requests,
                               int64_t &size) {
  size = 0;
  std::vector<int64_t> offsets(requests.size(), 0);
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0u);
  llvm::erase_if(order, [&](size_t r) {
    return requests[r].bytes == 0 || requests[r].intervals.empty();
  });
  llvm::sort(order, [&](size_t a, size_t b) {
    const ArenaRequest &x = requests[a], &y = requests[b];
    return std::tuple(-x.bytes, x.intervals.front(), a) <
           std::tuple(-y.bytes, y.intervals.front(), b);
  });

  // What is placed, by ascending offset.
  struct Placed {
    int64_t offset;
    int64_t bytes;
    size_t request;
  };
  std::vector<Placed> placed;
  for (size_t r : order) {
    int64_t bytes = llvm::alignTo(requests[r].bytes, bufferAlignment);
    int64_t top = 0, best = -1, bestGap = 0;
    for (const Placed &other : placed) {
      if (!together(requests[r], requests[other.request]))
        continue;
      int64_t gap = other.offset - top;
      if (gap >= bytes && (best < 0 || gap < bestGap)) {
        best = top;
        bestGap = gap;
      }
      top = std::max(top, other.offset + other.bytes);
    }
    if (best < 0)
      best = top;
    offsets[r] = best;
    size = std::max(size, best + bytes);
    auto at = llvm::upper_bound(placed, best,
                                [](int64_t offset, const Placed &other) {
                                  return offset < other.offset;
                                });
    placed.insert(at, {best, bytes, r});
  }
  return offsets;
}

} // namespace whale
