//===- BufferArena.cpp - Offsets in one block of memory ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assigns offsets by greedy best fit: one buffer after the other goes into the
// smallest gap between the buffers that are alive at the same time; one of
// which parts are needed at other times, to the first offset at which all of
// them fit. Tries some orders, until one wastes (or, where requests are many,
// saves) next to nothing. Of each it tries some variants, with those first that
// didn't fit.
//
// - Of requests that take turns: first what is alive when most is; first what
//   meets most other bytes; the earliest first; the longest-lived first.
// - Of requests one after the other, as of micro-batches in flight: by length
//   of life, in classes, and in each as they are born. What is kept for a
//   backward then fills what an earlier micro-batch left, and what dies in
//   between has what is left over. With two in flight of which one is larger,
//   they must take turns at both ends of the arena: gaps are filled at the end
//   where the neighbour lives longer.
//
// Cost: quadratic in the number of buffers: to find the pairs that are alive at
// the same time, a bit for each of them, and for each order tried.
//
//===----------------------------------------------------------------------===//

#include "BufferArena.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <array>
#include <functional>
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

/// A request, or a part of one: bytes that are needed at the same times.
struct Piece {
  size_t request;
  /// From the request's first byte on.
  int64_t offset;
  int64_t bytes;
  const TimeIntervals *intervals;
  std::optional<unsigned> segment = std::nullopt;
  Span span = {};
};

Span findSpan(const Piece &piece, llvm::ArrayRef<ArenaCalls> segments) {
  const TimeIntervals &intervals = *piece.intervals;
  if (piece.segment) {
    llvm::ArrayRef<int64_t> calls = segments[*piece.segment].begins;
    auto [begin, end] = intervals.front();
    return {{calls.front() + begin, calls.front() + end},
            calls.back() + intervals.back().second};
  }
  return {intervals.front(), intervals.back().second};
}

/// How many variants of an order are tried, and how many in a row that bring
/// nothing. Those that help are mostly among the first three.
constexpr unsigned mostAttempts = 6;
constexpr unsigned mostInVain = 3;
/// Of so many requests all orders are tried; of more, none after one that saves
/// less than 0.1 %, if no more than 3 % is wasted.
constexpr size_t fewRequests = 512;

/// Of more pieces no variants are tried: packing is quadratic in them.
constexpr size_t manyPieces = 4096;

/// An order by length of life. Each suits some programs best; those that suited
/// most of the plans of large pipelines come first.
struct LifeOrder {
  /// Lives of one class differ by at most so many times.
  double ratio;
  /// In a class, the last to be born comes first.
  bool isReverse;
  bool atBothEnds;
};
constexpr LifeOrder lifeOrders[] = {{4, false, false},  {4, true, false},
                                    {2, false, true},   {2, true, true},
                                    {1.5, true, false}, {2.5, false, false}};
/// Values of less than one part in this many of the largest are small.
constexpr int64_t smallShare = 1024;

class Packer {
public:
  Packer(const std::vector<ArenaRequest> &requests,
         llvm::ArrayRef<ArenaCalls> segments, int64_t alignment);

  std::vector<int64_t> run(int64_t &reached, int64_t limit, ArenaOrder how);

private:
  /// Pieces with their places in the arena, in ascending order of offset. The
  /// first aligned offsets behind them are looked through far more often than
  /// anything else.
  struct Packed {
    std::vector<int64_t> offsets, ends;
    std::vector<size_t> pieces;

    void insert(int64_t offset, int64_t end, size_t piece) {
      size_t at = llvm::upper_bound(offsets, offset) - offsets.begin();
      offsets.insert(offsets.begin() + at, offset);
      ends.insert(ends.begin() + at, end);
      pieces.insert(pieces.begin() + at, piece);
    }
  };

  void add(size_t request, int64_t offset, int64_t bytes,
           const TimeIntervals &intervals);
  void fillSlots();
  void fillConflicts();
  template <typename Overlap>
  void compare(size_t a, size_t b, Overlap overlap);
  std::vector<int64_t> findCrowds() const;
  int64_t sumConflicts(size_t request) const;
  int64_t findGap(size_t number, const Packed &packed,
                  std::optional<int64_t> end) const;
  int64_t findRoom(llvm::ArrayRef<size_t> pieces, const Packed &packed) const;
  int64_t packInOrder(int64_t limit, std::optional<int64_t> end,
                      std::vector<int64_t> &offsets, size_t &highest) const;
  /// Requests are in descending order of their keys; of equal ones the largest
  /// comes first.
  using Key = std::function<std::pair<int64_t, int64_t>(size_t)>;
  void sortBy(const Key &key);
  /// Another order isn't worth its time.
  bool isGood() const {
    return size < limit && size - least <= least / goodShare;
  }
  void tryVariants(int64_t reached, std::optional<int64_t> end);
  void runTurns();
  void runLives();

  const std::vector<ArenaRequest> &requests;
  llvm::ArrayRef<ArenaCalls> segments;
  const int64_t alignment;
  std::vector<Piece> pieces;
  /// The pairs of pieces that are alive at the same time.
  Pairs conflicts;
  /// By request: its pieces, itself first. None for one without bytes.
  std::vector<llvm::SmallVector<size_t, 1>> piecesOf;
  /// The requests that need an offset, in the order in which they get one.
  std::vector<size_t> order;
  /// The best offsets so far, and the size of the arena with them.
  std::vector<int64_t> best;
  int64_t size = 0;
  /// Arenas of so many bytes or more are worth nothing.
  int64_t limit = 0;
  /// No arena is smaller.
  int64_t least = 0;
  /// An arena is good that wastes less than one part in so many.
  int64_t goodShare = 0;
};

Packer::Packer(const std::vector<ArenaRequest> &requests,
               llvm::ArrayRef<ArenaCalls> segments, int64_t alignment)
    : requests(requests), segments(segments), alignment(alignment),
      piecesOf(requests.size()) {
  for (auto [r, request] : llvm::enumerate(requests)) {
    if (request.bytes == 0 || request.intervals.empty() ||
        (request.segment && segments[*request.segment].begins.empty()))
      continue;
    order.push_back(r);
    add(r, 0, llvm::alignTo(request.bytes, alignment), request.intervals);
    for (const ArenaRequest::Part &part : request.parts)
      if (part.bytes && !part.intervals.empty())
        add(r, part.offset, part.bytes, part.intervals);
  }
  fillSlots();
  fillConflicts();
}

void Packer::add(size_t request, int64_t offset, int64_t bytes,
                 const TimeIntervals &intervals) {
  piecesOf[request].push_back(pieces.size());
  Piece &piece = pieces.emplace_back(
      Piece{request, offset, bytes, &intervals, requests[request].segment});
  piece.span = findSpan(piece, segments);
}

/// For most pairs of pieces, comparing slots decides whether they overlap,
/// without a walk over their intervals.
void Packer::fillSlots() {
  int64_t end = 1;
  for (const Piece &piece : pieces)
    end = std::max(end, piece.span.end);
  int64_t length = llvm::divideCeil(end, Slots::count);
  for (Piece &piece : pieces) {
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
void Packer::compare(size_t a, size_t b, Overlap overlap) {
  const Span &x = pieces[a].span, &y = pieces[b].span;
  if (x.covered.intersects(y.touched) || x.touched.intersects(y.covered) ||
      (x.touched.intersects(y.touched) && overlap()))
    conflicts.add(a, b);
}

void Packer::fillConflicts() {
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

/// By request: the most bytes that are alive in any slot of time in which it
/// is.
std::vector<int64_t> Packer::findCrowds() const {
  std::array<int64_t, Slots::count> alive = {};
  auto forEachSlot = [](const Piece &piece, auto fn) {
    for (int64_t slot = 0; slot < Slots::count; ++slot)
      if (piece.span.touched.contains(slot))
        fn(slot);
  };
  for (const Piece &piece : pieces)
    forEachSlot(piece, [&](int64_t slot) { alive[slot] += piece.bytes; });
  std::vector<int64_t> most(requests.size(), 0);
  for (const Piece &piece : pieces)
    forEachSlot(piece, [&](int64_t slot) {
      most[piece.request] = std::max(most[piece.request], alive[slot]);
    });
  return most;
}

/// The bytes that are alive at the same time as a piece of the request, at any
/// of its times.
int64_t Packer::sumConflicts(size_t request) const {
  int64_t most = 0;
  for (size_t number : piecesOf[request]) {
    int64_t sum = 0;
    conflicts.forEach(number,
                      [&](size_t other) { sum += pieces[other].bytes; });
    most = std::max(most, sum);
  }
  return most;
}

/// The smallest gap between what is alive at the same time, or what is behind
/// it all. If the arena shall have an `end`, what is in front of that is a gap
/// too, and gaps are filled at the end where the neighbour lives longer.
int64_t Packer::findGap(size_t number, const Packed &packed,
                        std::optional<int64_t> end) const {
  int64_t bytes = pieces[number].bytes, top = 0, best = -1, bestGap = 0;
  int64_t below = INT64_MAX; // When the neighbour there dies.
  const uint64_t *others = conflicts.of(number);
  auto see = [&](int64_t offset, int64_t above) {
    int64_t gap = offset - top;
    if (gap >= bytes && (best < 0 || gap < bestGap)) {
      // Parts may begin at other offsets than requests.
      auto high = int64_t(llvm::alignDown(offset - bytes, alignment));
      best = end && above > below && high > top ? high : top;
      bestGap = gap;
    }
  };
  for (auto [other, behind] : llvm::enumerate(packed.ends)) {
    // A buffer that ends below the top doesn't change the gaps. One branch for
    // both conditions: neither can be predicted.
    size_t piece = packed.pieces[other];
    bool isInTheWay = (behind > top) & Pairs::contains(others, piece);
    if (!isInTheWay)
      continue;
    see(packed.offsets[other], pieces[piece].span.end);
    if (best >= 0 && bestGap == bytes)
      return best;
    top = behind;
    below = pieces[piece].span.end;
  }
  if (end && best < 0)
    see(*end, INT64_MAX);
  return best < 0 ? top : best;
}

/// The first offset at which no piece meets what is alive at the same time.
int64_t Packer::findRoom(llvm::ArrayRef<size_t> group,
                         const Packed &packed) const {
  // From the first on, up to the second, the request cannot begin.
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (size_t number : group) {
    const Piece &piece = pieces[number];
    const uint64_t *others = conflicts.of(number);
    for (auto [offset, other] :
         llvm::zip_equal(packed.offsets, packed.pieces)) {
      int64_t end = offset + pieces[other].bytes;
      if (end > piece.offset && Pairs::contains(others, other))
        taken.push_back(
            {offset - piece.offset - piece.bytes + 1, end - piece.offset});
    }
  }
  llvm::sort(taken);
  int64_t offset = 0;
  for (auto [begin, end] : taken) {
    if (begin > offset)
      break;
    offset = std::max(offset, int64_t(llvm::alignTo(end, alignment)));
  }
  return offset;
}

/// Assigns offsets in this order. Returns the size of the arena; as soon as
/// `limit` is reached, stops and returns a size of at least `limit`. `highest`
/// is the position in the order of the request that first reaches the size.
int64_t Packer::packInOrder(int64_t limit, std::optional<int64_t> end,
                            std::vector<int64_t> &offsets,
                            size_t &highest) const {
  int64_t size = 0;
  highest = 0;
  Packed packed;
  for (auto [position, r] : llvm::enumerate(order)) {
    llvm::ArrayRef<size_t> group = piecesOf[r];
    const Piece &whole = pieces[group.front()];
    offsets[r] = group.size() == 1 ? findGap(group.front(), packed, end)
                                   : findRoom(group, packed);
    if (offsets[r] + whole.bytes > size) {
      size = offsets[r] + whole.bytes;
      highest = position;
    }
    if (size >= limit)
      return size;
    for (size_t number : group) {
      const Piece &piece = pieces[number];
      int64_t offset = offsets[r] + piece.offset;
      packed.insert(offset, llvm::alignTo(offset + piece.bytes, alignment),
                    number);
    }
  }
  return size;
}

void Packer::sortBy(const Key &key) {
  using Rank = std::tuple<std::pair<int64_t, int64_t>, int64_t,
                          std::pair<int64_t, int64_t>, size_t>;
  std::vector<Rank> ranks(requests.size());
  for (size_t r : order) {
    auto [major, minor] = key(r);
    ranks[r] = {{-major, -minor},
                -requests[r].bytes,
                pieces[piecesOf[r].front()].span.first,
                r};
  }
  llvm::sort(order, [&](size_t a, size_t b) { return ranks[a] < ranks[b]; });
}

/// Tries the order, and then those in which what reached the top comes first,
/// for arenas of fewer bytes than `reached`, and than the best of them.
void Packer::tryVariants(int64_t reached, std::optional<int64_t> end) {
  std::vector<int64_t> offsets(requests.size(), 0);
  const unsigned most = pieces.size() <= manyPieces ? mostAttempts : 1;
  unsigned inVain = 0;
  for (unsigned attempt = 0; attempt < most && inVain < mostInVain; ++attempt) {
    size_t highest;
    int64_t bytes = packInOrder(reached, end, offsets, highest);
    inVain = bytes < reached ? 0 : inVain + 1;
    reached = std::min(reached, bytes);
    if (bytes < size) {
      size = bytes;
      best = offsets;
    }
    if (isGood())
      return;
    std::rotate(order.begin(), order.begin() + highest,
                order.begin() + highest + 1);
  }
}

void Packer::runTurns() {
  std::vector<int64_t> crowds = findCrowds();
  auto spanOf = [&](size_t r) -> const Span & {
    return pieces[piecesOf[r].front()].span;
  };
  using Keys = std::pair<int64_t, int64_t>;
  const Key keys[] = {
      [&](size_t r) { return Keys(crowds[r], 0); },
      [&](size_t r) { return Keys(sumConflicts(r), 0); },
      [&](size_t r) { return Keys(-spanOf(r).first.first, 0); },
      [&](size_t r) { return Keys(spanOf(r).end - spanOf(r).first.first, 0); },
  };
  for (const Key &key : keys) {
    const int64_t before = size;
    sortBy(key);
    tryVariants(size, /*end=*/std::nullopt);
    if (isGood() ||
        (order.size() > fewRequests && before - size <= before / 1000 &&
         size - least <= least / 100 * 3))
      return;
  }
}

/// Small values, those that are alive several times, and locals of segments
/// come last: most find room between the others.
void Packer::runLives() {
  int64_t largest = 0, horizon = 1;
  std::vector<int64_t> met(requests.size());
  for (size_t r : order) {
    const Span &span = pieces[piecesOf[r].front()].span;
    horizon = std::max(horizon, span.end);
    met[r] = sumConflicts(r);
  }
  auto isOnce = [&](size_t r) {
    return !requests[r].segment && requests[r].intervals.size() == 1;
  };
  auto lengthOf = [&](size_t r) {
    auto [begin, end] = requests[r].intervals.front();
    return std::max<int64_t>(end - begin, 1);
  };
  for (size_t r : order)
    if (isOnce(r) && lengthOf(r) < horizon / 2)
      largest = std::max(largest, requests[r].bytes);
  for (const LifeOrder &lives : lifeOrders) {
    auto key = [&](size_t r) -> std::pair<int64_t, int64_t> {
      if (!isOnce(r) || requests[r].bytes < largest / smallShare)
        return {0, met[r]};
      // What lives almost all the time is the first class.
      double times = double(horizon) / double(lengthOf(r));
      int64_t number = times >= 1.25;
      while ((times /= lives.ratio) >= 1)
        ++number;
      int64_t begin = requests[r].intervals.front().first;
      return {INT32_MAX - number, lives.isReverse ? begin : -begin};
    };
    sortBy(key);
    // A variant of an order that is worse than another may be the best.
    tryVariants(limit, lives.atBothEnds ? std::optional(least) : std::nullopt);
    if (isGood())
      return;
  }
}

std::vector<int64_t> Packer::run(int64_t &reached, int64_t limit,
                                 ArenaOrder how) {
  best.assign(requests.size(), 0);
  least = mostAlive(requests, segments, alignment);
  size = this->limit = limit;
  goodShare = how == ArenaOrder::Turns ? 2000 : kWasteShare;
  if (how == ArenaOrder::Turns)
    runTurns();
  else
    runLives();
  reached = size;
  return std::move(best);
}

} // namespace

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

std::vector<int64_t> packArena(const std::vector<ArenaRequest> &requests,
                               llvm::ArrayRef<ArenaCalls> segments,
                               int64_t alignment, int64_t &size, int64_t limit,
                               ArenaOrder how) {
  return Packer(requests, segments, alignment).run(size, limit, how);
}

} // namespace whale
