//===- BufferArena.cpp - Offsets in one block of memory ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One buffer after the other, each into the smallest gap between the buffers
// that are alive at the same time: the largest first or, where that wastes
// memory, the largest and longest-lived first, or the earliest.
//
//===----------------------------------------------------------------------===//

#include "BufferArena.h"

#include "whale/Step/BufferPlan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

namespace whale {
namespace {

bool together(const ArenaRequest &a, const ArenaRequest &b) {
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

/// The most bytes that are alive at once: no arena is smaller.
int64_t mostAlive(const std::vector<ArenaRequest> &requests) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const ArenaRequest &request : requests)
    for (auto [begin, end] : request.intervals) {
      int64_t bytes = llvm::alignTo(request.bytes, bufferAlignment);
      changes.push_back({begin, bytes});
      changes.push_back({end, -bytes});
    }
  llvm::sort(changes);
  int64_t alive = 0, most = 0;
  for (auto [time, change] : changes)
    most = std::max(most, alive += change);
  return most;
}

/// Places the requests in this order; returns the size of the arena, or one
/// that is at least `limit` as soon as that is reached.
int64_t packInOrder(const std::vector<ArenaRequest> &requests,
                    const std::vector<size_t> &order, int64_t limit,
                    std::vector<int64_t> &offsets) {
  int64_t size = 0;
  // What is placed, by ascending offset.
  struct Placed {
    int64_t offset;
    int64_t bytes;
    int64_t begin, end;
    size_t request;
  };
  std::vector<Placed> placed;
  for (size_t r : order) {
    int64_t bytes = llvm::alignTo(requests[r].bytes, bufferAlignment);
    int64_t begin = requests[r].intervals.front().first;
    int64_t end = requests[r].intervals.back().second;
    int64_t top = 0, best = -1, bestGap = 0;
    for (const Placed &other : placed) {
      if (other.end <= begin || end <= other.begin ||
          !together(requests[r], requests[other.request]))
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
    if (size >= limit)
      return size;
    auto at = llvm::upper_bound(placed, best,
                                [](int64_t offset, const Placed &other) {
                                  return offset < other.offset;
                                });
    placed.insert(at, {best, bytes, begin, end, r});
  }
  return size;
}

} // namespace

std::vector<int64_t> packArena(const std::vector<ArenaRequest> &requests,
                               int64_t &size) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0u);
  llvm::erase_if(order, [&](size_t r) {
    return requests[r].bytes == 0 || requests[r].intervals.empty();
  });
  auto span = [](const ArenaRequest &request) {
    return request.intervals.back().second - request.intervals.front().first;
  };
  using Key = std::function<double(const ArenaRequest &)>;
  const Key keys[] = {
      [](const ArenaRequest &request) { return double(request.bytes); },
      [&](const ArenaRequest &request) {
        return double(request.bytes) * span(request);
      },
      [](const ArenaRequest &request) {
        return -double(request.intervals.front().first);
      },
  };
  std::vector<int64_t> best(requests.size(), 0), offsets(requests.size(), 0);
  int64_t least = mostAlive(requests);
  size = std::numeric_limits<int64_t>::max();
  for (const Key &key : keys) {
    llvm::sort(order, [&](size_t a, size_t b) {
      const ArenaRequest &x = requests[a], &y = requests[b];
      return std::tuple(-key(x), x.intervals.front(), a) <
             std::tuple(-key(y), y.intervals.front(), b);
    });
    int64_t bytes = packInOrder(requests, order, size, offsets);
    if (bytes < size) {
      size = bytes;
      best = offsets;
    }
    if (size <= least)
      break;
  }
  return best;
}

} // namespace whale
