//===- BufferArena.cpp - Offsets in one block of memory ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assigns offsets by greedy best fit: one buffer after the other goes into the
// smallest gap between the buffers that are alive at the same time. Tries up to
// three orders: the largest first; if that wastes memory, the largest and
// longest-lived first, then the earliest first. Cost: quadratic in the number
// of buffers, for each order.
//
//===----------------------------------------------------------------------===//

#include "BufferArena.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <tuple>

namespace whale {
namespace {

/// A part of the caller's time, as 256 slots of equal length.
class Slots {
public:
  void set(int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot)
      words[slot / 64] |= uint64_t(1) << (slot % 64);
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
  /// For a caller's value, by segment: when it is alive in the segment's time,
  /// at any call.
  std::vector<TimeIntervals> within = {};
};

bool overlap(const TimeIntervals &a, const TimeIntervals &b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    auto [aBegin, aEnd] = a[i];
    auto [bBegin, bEnd] = b[j];
    if (std::max(aBegin, bBegin) < std::min(aEnd, bEnd))
      return true;
    (aEnd < bEnd ? i : j) += 1;
  }
  return false;
}

/// Returns the part of a segment's time that `intervals` cover at any of its
/// calls.
TimeIntervals findWithin(const TimeIntervals &intervals,
                         const ArenaCalls &calls) {
  TimeIntervals found;
  for (auto [begin, end] : intervals) {
    // The call in progress at the beginning, and the next one. If the next one
    // isn't the last that overlaps the interval, the interval covers it as a
    // whole.
    const int64_t *call = llvm::lower_bound(calls.begins, begin);
    if (call != calls.begins.begin() && call[-1] + calls.duration > begin)
      found.push_back(
          {begin - call[-1], std::min(end - call[-1], calls.duration)});
    if (call == calls.begins.end() || *call >= end)
      continue;
    if (*call + calls.duration <= end)
      return {{0, calls.duration}};
    found.push_back({0, end - *call});
  }
  llvm::sort(found);
  TimeIntervals merged;
  for (auto [begin, end] : found) {
    if (!merged.empty() && begin <= merged.back().second)
      merged.back().second = std::max(merged.back().second, end);
    else
      merged.push_back({begin, end});
  }
  return merged;
}

Span findSpan(const ArenaRequest &request,
              llvm::ArrayRef<ArenaCalls> segments) {
  if (request.segment) {
    llvm::ArrayRef<int64_t> calls = segments[*request.segment].begins;
    auto [begin, end] = request.intervals.front();
    return {{calls.front() + begin, calls.front() + end},
            calls.back() + request.intervals.back().second};
  }
  Span span{request.intervals.front(), request.intervals.back().second};
  for (const ArenaCalls &calls : segments)
    span.within.push_back(findWithin(request.intervals, calls));
  return span;
}

class Packer {
public:
  Packer(const std::vector<ArenaRequest> &requests,
         llvm::ArrayRef<ArenaCalls> segments);

  std::vector<int64_t> run(int64_t &size);

private:
  void fillSlots();
  bool together(size_t a, size_t b) const;
  int64_t mostAlive() const;
  int64_t packInOrder(int64_t limit, std::vector<int64_t> &offsets) const;

  const std::vector<ArenaRequest> &requests;
  llvm::ArrayRef<ArenaCalls> segments;
  std::vector<Span> spans;
  /// The requests that need an offset, in the order in which they get one.
  std::vector<size_t> order;
};

Packer::Packer(const std::vector<ArenaRequest> &requests,
               llvm::ArrayRef<ArenaCalls> segments)
    : requests(requests), segments(segments), spans(requests.size()) {
  for (auto [r, request] : llvm::enumerate(requests)) {
    if (request.bytes == 0 || request.intervals.empty() ||
        (request.segment && segments[*request.segment].begins.empty()))
      continue;
    spans[r] = findSpan(request, segments);
    order.push_back(r);
  }
  fillSlots();
}

/// For most pairs of requests, comparing slots decides whether they overlap,
/// without a walk over their intervals.
void Packer::fillSlots() {
  int64_t end = 1;
  for (size_t r : order)
    end = std::max(end, spans[r].end);
  int64_t length = llvm::divideCeil(end, Slots::count);
  for (size_t r : order) {
    std::optional<unsigned> segment = requests[r].segment;
    for (auto [begin, end] : requests[r].intervals) {
      if (begin >= end)
        continue;
      if (!segment) {
        spans[r].touched.set(begin / length, (end - 1) / length + 1);
        spans[r].covered.set(llvm::divideCeil(begin, length), end / length);
        continue;
      }
      for (int64_t call : segments[*segment].begins)
        spans[r].touched.set((call + begin) / length,
                             (call + end - 1) / length + 1);
    }
  }
}

bool Packer::together(size_t a, size_t b) const {
  if (!spans[a].touched.intersects(spans[b].touched))
    return false;
  if (spans[a].covered.intersects(spans[b].touched) ||
      spans[a].touched.intersects(spans[b].covered))
    return true;
  const ArenaRequest &x = requests[a], &y = requests[b];
  if (x.segment && y.segment && *x.segment != *y.segment)
    return false;
  if (x.segment && !y.segment)
    return overlap(x.intervals, spans[b].within[*x.segment]);
  if (y.segment && !x.segment)
    return overlap(y.intervals, spans[a].within[*y.segment]);
  return overlap(x.intervals, y.intervals);
}

/// The number of live bytes from each time on.
using Profile = std::vector<std::pair<int64_t, int64_t>>;

/// Sums up changes to a profile.
Profile sumUp(Profile changes) {
  llvm::sort(changes);
  int64_t alive = 0;
  for (auto &[time, bytes] : changes)
    bytes = alive += bytes;
  return changes;
}

/// Returns the largest number of bytes alive at once: a lower bound of the
/// arena.
int64_t Packer::mostAlive() const {
  // Callers' values, and locals in the time of their segments.
  Profile callers;
  std::vector<Profile> locals(segments.size());
  for (const ArenaRequest &request : requests)
    for (auto [begin, end] : request.intervals) {
      int64_t bytes = llvm::alignTo(request.bytes, bufferAlignment);
      Profile &changes = request.segment ? locals[*request.segment] : callers;
      changes.push_back({begin, bytes});
      changes.push_back({end, -bytes});
    }
  struct Call {
    int64_t begin, end;
    const Profile *locals;
  };
  std::vector<Call> calls;
  for (auto [segment, profile] : llvm::zip_equal(segments, locals)) {
    profile = sumUp(std::move(profile));
    for (int64_t begin : segment.begins) {
      calls.push_back({begin, begin + segment.duration, &profile});
      // A change of 0 bytes, so that the time between two entries is in one
      // call.
      callers.push_back({begin, 0});
      callers.push_back({begin + segment.duration, 0});
    }
  }
  llvm::sort(calls,
             [](const Call &a, const Call &b) { return a.begin < b.begin; });
  callers = sumUp(std::move(callers));
  int64_t most = 0;
  auto call = calls.begin();
  for (size_t i = 0; i < callers.size(); ++i) {
    auto [time, alive] = callers[i];
    most = std::max(most, alive);
    while (call != calls.end() && call->end <= time)
      ++call;
    if (call == calls.end() || call->begin > time)
      continue;
    int64_t begin = time - call->begin,
            end = callers[i + 1].first - call->begin;
    // Locals that are alive at `begin`, and the changes until `end`.
    auto step = llvm::upper_bound(*call->locals, std::pair(begin, INT64_MAX));
    if (begin < end && step != call->locals->begin())
      most = std::max(most, alive + std::prev(step)->second);
    for (; step != call->locals->end() && step->first < end; ++step)
      most = std::max(most, alive + step->second);
  }
  return most;
}

/// Assigns offsets in this order. Returns the size of the arena; as soon as
/// `limit` is reached, stops and returns a size of at least `limit`.
int64_t Packer::packInOrder(int64_t limit,
                            std::vector<int64_t> &offsets) const {
  int64_t size = 0;
  // Buffers with offsets, in ascending order of offset.
  struct Packed {
    int64_t offset;
    int64_t bytes;
    int64_t begin, end;
    size_t request;
  };
  std::vector<Packed> packed;
  for (size_t r : order) {
    int64_t bytes = llvm::alignTo(requests[r].bytes, bufferAlignment);
    int64_t begin = spans[r].first.first, end = spans[r].end;
    int64_t top = 0, best = -1, bestGap = 0;
    for (const Packed &other : packed) {
      // A buffer that ends below the top doesn't change the gaps.
      if (other.offset + other.bytes <= top || other.end <= begin ||
          end <= other.begin || !together(r, other.request))
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
    auto at = llvm::upper_bound(packed, best,
                                [](int64_t offset, const Packed &other) {
                                  return offset < other.offset;
                                });
    packed.insert(at, {best, bytes, begin, end, r});
  }
  return size;
}

std::vector<int64_t> Packer::run(int64_t &size) {
  using Key = std::function<double(size_t)>;
  const Key keys[] = {
      [&](size_t r) { return double(requests[r].bytes); },
      [&](size_t r) {
        return double(requests[r].bytes) *
               (spans[r].end - spans[r].first.first);
      },
      [&](size_t r) { return -double(spans[r].first.first); },
  };
  std::vector<int64_t> best(requests.size(), 0), offsets(requests.size(), 0);
  int64_t least = mostAlive();
  size = std::numeric_limits<int64_t>::max();
  for (const Key &key : keys) {
    llvm::sort(order, [&](size_t a, size_t b) {
      return std::tuple(-key(a), spans[a].first, a) <
             std::tuple(-key(b), spans[b].first, b);
    });
    int64_t bytes = packInOrder(size, offsets);
    if (bytes < size) {
      size = bytes;
      best = offsets;
    }
    // At most 0.25 % above the lower bound: another order isn't worth its time.
    if (size - least <= least / 400)
      break;
  }
  return best;
}

} // namespace

std::vector<int64_t> packArena(const std::vector<ArenaRequest> &requests,
                               llvm::ArrayRef<ArenaCalls> segments,
                               int64_t &size) {
  return Packer(requests, segments).run(size);
}

} // namespace whale
