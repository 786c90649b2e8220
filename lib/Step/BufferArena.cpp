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
// Cost: quadratic in the number of buffers, for each order tried.
//
//===----------------------------------------------------------------------===//

#include "BufferArena.h"

#include "ArenaPieces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <functional>
#include <tuple>

namespace whale {
namespace {

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
/// most of the plans of large pipelines come first. A ratio near 1 makes length
/// of life alone decide, a very large one birth alone; these are in between.
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
/// Values of less than one part in this many of the largest are small: they are
/// placed last, into gaps. A thousand of them take no more than the largest. A
/// smaller number would take values that need room of their own for small ones;
/// a larger one lets small ones cut up the room that large ones need.
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
  const ArenaPieces pieces;
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
      pieces(requests, segments, alignment) {
  for (size_t r = 0; r < requests.size(); ++r)
    if (!pieces.of(r).empty())
      order.push_back(r);
}

/// The smallest gap between what is alive at the same time, or what is behind
/// it all. If the arena shall have an `end`, what is in front of that is a gap
/// too, and gaps are filled at the end where the neighbour lives longer.
int64_t Packer::findGap(size_t number, const Packed &packed,
                        std::optional<int64_t> end) const {
  int64_t bytes = pieces[number].bytes, top = 0, best = -1, bestGap = 0;
  int64_t below = INT64_MAX; // When the neighbour there dies.
  const uint64_t *others = pieces.conflictsOf(number);
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
    const ArenaPiece &piece = pieces[number];
    const uint64_t *others = pieces.conflictsOf(number);
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
    llvm::ArrayRef<size_t> group = pieces.of(r);
    const ArenaPiece &whole = pieces[group.front()];
    offsets[r] = group.size() == 1 ? findGap(group.front(), packed, end)
                                   : findRoom(group, packed);
    if (offsets[r] + whole.bytes > size) {
      size = offsets[r] + whole.bytes;
      highest = position;
    }
    if (size >= limit)
      return size;
    for (size_t number : group) {
      const ArenaPiece &piece = pieces[number];
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
    ranks[r] = {
        {-major, -minor}, -requests[r].bytes, pieces.spanOf(r).first, r};
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
  std::vector<int64_t> crowds = pieces.findCrowds();
  auto spanOf = [&](size_t r) -> const Span & { return pieces.spanOf(r); };
  using Keys = std::pair<int64_t, int64_t>;
  const Key keys[] = {
      [&](size_t r) { return Keys(crowds[r], 0); },
      [&](size_t r) { return Keys(pieces.sumConflicts(r), 0); },
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
    const Span &span = pieces.spanOf(r);
    horizon = std::max(horizon, span.end);
    met[r] = pieces.sumConflicts(r);
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
      // What lives almost all the time, four fifths of it, is the first class:
      // little else can use its room before or after. With a larger bound,
      // values that are dead for a good part of the time would be among these;
      // with one near 1, only what lives from the very beginning to the end.
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
  // Turns can reach what is alive at once, so that next to nothing may be
  // wasted: 0.05%, 40 MB of an arena of 80 GB. If more might be, memory would
  // be lost that another order may save. Less isn't worth another packing,
  // whose time is quadratic in the buffers.
  goodShare = how == ArenaOrder::Turns ? 2000 : kWasteShare;
  if (how == ArenaOrder::Turns)
    runTurns();
  else
    runLives();
  reached = size;
  return std::move(best);
}

} // namespace

std::vector<int64_t> packArena(const std::vector<ArenaRequest> &requests,
                               llvm::ArrayRef<ArenaCalls> segments,
                               int64_t alignment, int64_t &size, int64_t limit,
                               ArenaOrder how) {
  return Packer(requests, segments, alignment).run(size, limit, how);
}

} // namespace whale
