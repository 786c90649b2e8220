//===- ArenaPieces.cpp - What is alive at the same time -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: buffers with the times at which they, or parts of them, are needed, in
// those of the caller or of each call of a segment. Out: for each pair whether
// they are alive at the same time, and the most bytes that are at once.
//
// Times are cut into 256 slots; most pairs differ in these, or one is alive in
// all of a slot in which the other is too. Intervals are compared for the rest.
// Cost: quadratic in the number of buffers, a bit for each pair.
//
//===----------------------------------------------------------------------===//

#include "ArenaPieces.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <optional>

namespace whale {

static bool overlap(const TimeIntervals &a, const TimeIntervals &b) {
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
static TimeIntervals findWithin(const TimeIntervals &intervals,
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

static Span findSpan(const ArenaPiece &piece,
                     llvm::ArrayRef<ArenaCalls> segments) {
  const TimeIntervals &intervals = *piece.intervals;
  if (piece.segment) {
    llvm::ArrayRef<int64_t> calls = segments[*piece.segment].begins;
    auto [begin, end] = intervals.front();
    return {{calls.front() + begin, calls.front() + end},
            calls.back() + intervals.back().second};
  }
  return {intervals.front(), intervals.back().second};
}

ArenaPieces::ArenaPieces(const std::vector<ArenaRequest> &requests,
                         llvm::ArrayRef<ArenaCalls> segments, int64_t alignment)
    : requests(requests), segments(segments), piecesOf(requests.size()) {
  for (auto [r, request] : llvm::enumerate(requests)) {
    if (request.bytes == 0 || request.intervals.empty() ||
        (request.segment && segments[*request.segment].begins.empty()))
      continue;
    add(r, 0, llvm::alignTo(request.bytes, alignment), request.intervals);
    for (const ArenaRequest::Part &part : request.parts)
      if (part.bytes && !part.intervals.empty())
        add(r, part.offset, part.bytes, part.intervals);
  }
  fillSlots();
  fillConflicts();
}

void ArenaPieces::add(size_t request, int64_t offset, int64_t bytes,
                      const TimeIntervals &intervals) {
  piecesOf[request].push_back(pieces.size());
  ArenaPiece &piece = pieces.emplace_back(ArenaPiece{
      request, offset, bytes, &intervals, requests[request].segment});
  piece.span = findSpan(piece, segments);
}

/// For most pairs of pieces, comparing slots decides whether they overlap,
/// without a walk over their intervals.
void ArenaPieces::fillSlots() {
  int64_t end = 1;
  for (const ArenaPiece &piece : pieces)
    end = std::max(end, piece.span.end);
  int64_t length = llvm::divideCeil(end, Slots::count);
  for (ArenaPiece &piece : pieces) {
    for (auto [begin, end] : *piece.intervals) {
      if (begin >= end)
        continue;
      if (!piece.segment) {
        piece.span.touched.set(begin / length, (end - 1) / length + 1);
        piece.span.covered.set(llvm::divideCeil(begin, length), end / length);
        continue;
      }
      for (int64_t call : segments[*piece.segment].begins)
        piece.span.touched.set((call + begin) / length,
                               (call + end - 1) / length + 1);
    }
  }
}

/// Records whether two pieces are alive at the same time. `overlap` is asked
/// where slots don't decide it.
template <typename Overlap>
void ArenaPieces::compare(size_t a, size_t b, Overlap overlap) {
  const Span &x = pieces[a].span, &y = pieces[b].span;
  if (x.covered.intersects(y.touched) || x.touched.intersects(y.covered) ||
      (x.touched.intersects(y.touched) && overlap()))
    conflicts.add(a, b);
}

void ArenaPieces::fillConflicts() {
  conflicts.resize(pieces.size());
  std::vector<size_t> callers;
  std::vector<std::vector<size_t>> locals(segments.size());
  for (auto [number, piece] : llvm::enumerate(pieces))
    (piece.segment ? locals[*piece.segment] : callers).push_back(number);
  auto beginOf = [&](size_t number) { return pieces[number].span.first.first; };
  auto sortByBegin = [&](std::vector<size_t> &numbers) {
    llvm::sort(numbers, [&](size_t a, size_t b) {
      return std::pair(beginOf(a), a) < std::pair(beginOf(b), b);
    });
  };
  // Most pairs live one after the other, and are not looked at.
  auto compareAll = [&](llvm::ArrayRef<size_t> numbers) {
    for (auto [i, a] : llvm::enumerate(numbers))
      for (size_t b : numbers.drop_front(i + 1)) {
        if (beginOf(b) >= pieces[a].span.end)
          break;
        compare(a, b, [&] {
          return overlap(*pieces[a].intervals, *pieces[b].intervals);
        });
      }
  };
  sortByBegin(callers);
  compareAll(callers);
  // No two segments run at the same time.
  for (auto [segment, numbers] : llvm::zip_equal(segments, locals)) {
    if (numbers.empty())
      continue;
    sortByBegin(numbers);
    compareAll(numbers);
    if (segment.among)
      for (size_t a : numbers)
        for (size_t b : locals[*segment.among])
          compare(a, b, [&] {
            return overlap(*pieces[a].intervals, *pieces[b].intervals);
          });
    const int64_t begin = segment.begins.front(),
                  end = segment.begins.back() + segment.duration;
    for (size_t caller : callers) {
      if (beginOf(caller) >= end)
        break;
      if (pieces[caller].span.end <= begin)
        continue;
      std::optional<TimeIntervals> within;
      for (size_t local : numbers)
        compare(caller, local, [&] {
          if (!within)
            within = findWithin(*pieces[caller].intervals, segment);
          return overlap(*within, *pieces[local].intervals);
        });
    }
  }
}

std::vector<int64_t> ArenaPieces::findCrowds() const {
  std::array<int64_t, Slots::count> alive = {};
  auto forEachSlot = [](const ArenaPiece &piece, auto fn) {
    for (int64_t slot = 0; slot < Slots::count; ++slot)
      if (piece.span.touched.contains(slot))
        fn(slot);
  };
  for (const ArenaPiece &piece : pieces)
    forEachSlot(piece, [&](int64_t slot) { alive[slot] += piece.bytes; });
  std::vector<int64_t> most(requests.size(), 0);
  for (const ArenaPiece &piece : pieces)
    forEachSlot(piece, [&](int64_t slot) {
      most[piece.request] = std::max(most[piece.request], alive[slot]);
    });
  return most;
}

int64_t ArenaPieces::sumConflicts(size_t request) const {
  int64_t most = 0;
  for (size_t number : piecesOf[request]) {
    int64_t sum = 0;
    conflicts.forEach(number,
                      [&](size_t other) { sum += pieces[other].bytes; });
    most = std::max(most, sum);
  }
  return most;
}

/// The number of live bytes from each time on.
using Profile = std::vector<std::pair<int64_t, int64_t>>;

/// Sums up changes to a profile.
static Profile sumUp(Profile changes) {
  llvm::sort(changes);
  int64_t alive = 0;
  for (auto &[time, bytes] : changes)
    bytes = alive += bytes;
  return changes;
}

int64_t mostAlive(const std::vector<ArenaRequest> &requests,
                  llvm::ArrayRef<ArenaCalls> segments, int64_t alignment) {
  // Callers' values, and locals in the time of their segments.
  Profile callers;
  std::vector<Profile> locals(segments.size());
  for (const ArenaRequest &request : requests) {
    Profile &changes = request.segment ? locals[*request.segment] : callers;
    auto add = [&](int64_t bytes, const TimeIntervals &intervals) {
      for (auto [begin, end] : intervals) {
        changes.push_back({begin, bytes});
        changes.push_back({end, -bytes});
      }
    };
    add(llvm::alignTo(request.bytes, alignment), request.intervals);
    for (const ArenaRequest::Part &part : request.parts)
      add(part.bytes, part.intervals);
  }
  struct Call {
    int64_t begin, end;
    const Profile *locals;
  };
  std::vector<Call> calls;
  std::vector<bool> isDivided(segments.size());
  for (auto [segment, profile] : llvm::zip_equal(segments, locals))
    if (segment.among) {
      isDivided[*segment.among] = true;
      llvm::append_range(profile, locals[*segment.among]);
    }
  for (auto [s, segment] : llvm::enumerate(segments)) {
    Profile &profile = locals[s];
    if (isDivided[s])
      continue;
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

} // namespace whale
