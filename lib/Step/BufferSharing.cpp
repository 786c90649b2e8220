//===- BufferSharing.cpp - Values that share a buffer -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Merges classes of values whose live intervals don't overlap. The parts of a
// pack or unpack get ranges of the whole's buffer: the class of a part stays
// its own, and whoever joins it must agree with all that is in the range. Cost:
// a merge is linear in the intervals of both classes.
//
//===----------------------------------------------------------------------===//

#include "BufferSharing.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <set>

namespace whale {

TimeIntervals SharedBuffer::times() const {
  TimeIntervals times;
  for (const LiveInterval &interval : intervals) {
    if (!times.empty() && interval.begin <= times.back().second)
      times.back().second = std::max(times.back().second, interval.end);
    else
      times.push_back({interval.begin, interval.end});
  }
  return times;
}

std::vector<Piece> piecesOf(const BufferFunction &function,
                            const BufferInstr &instr) {
  bool isPack = instr.kind == BufferInstr::Pack;
  if (!isPack && instr.kind != BufferInstr::Unpack)
    return {};
  std::vector<Piece> pieces;
  unsigned whole = isPack ? instr.results[0] : instr.operands[0];
  int64_t offset = 0;
  for (unsigned part : isPack ? llvm::ArrayRef<unsigned>(instr.operands)
                              : llvm::ArrayRef<unsigned>(instr.results)) {
    pieces.push_back({part, whole, offset});
    offset += function.values[part].bytes;
  }
  return pieces;
}

BufferSharing::BufferSharing(const BufferFunction &function,
                             const BufferLiveness &liveness,
                             llvm::ArrayRef<unsigned> written)
    : function(function), liveness(liveness) {
  size_t count = function.values.size();
  classes.resize(count);
  shared.resize(count);
  members.resize(count);
  for (size_t v = 0; v < count; ++v) {
    classes[v] = v;
    members[v] = {unsigned(v)};
    shared[v].bytes = function.values[v].bytes;
    shared[v].type = function.values[v].type;
    shared[v].intervals = liveness.intervals(v);
    if (function.values[v].constant) {
      shared[v].readOnly = true;
      shared[v].space = BufferSpace::Constant;
      shared[v].index = v;
    }
  }
  for (unsigned value : function.body.yields)
    shared[liveness.root(value)].isResult = true;
  for (auto [i, arg] : llvm::enumerate(function.body.args)) {
    SharedBuffer &c = shared[arg];
    c.space = BufferSpace::Argument;
    c.index = i;
    c.readOnly = !llvm::is_contained(written, unsigned(i));
  }
  for (size_t v = 0; v < count; ++v) {
    const BufferLiveness::Part *part = liveness.part(v);
    if (!part)
      continue;
    assert(shared[part->argument].space == BufferSpace::Argument);
    shared[v].readOnly = true;
    shared[v].space = BufferSpace::Part;
    shared[v].index = shared[part->argument].index;
    shared[v].offset = part->offset;
  }
}

// Whether two classes are ever alive at once, except at points at which a
// member of one is permitted to use the other's buffer.
bool BufferSharing::conflict(const SharedBuffer &a,
                             const SharedBuffer &b) const {
  auto handsOver = [&](const LiveInterval &from, const LiveInterval &to) {
    return to.begin % 2 == 0 && from.end == to.begin + 2 &&
           liveness.permitted(to.begin / 2, to.root, from.root);
  };
  // The starts of a class's intervals ascend, so the intervals of `b` that
  // overlap one of `a` form a sliding window.
  size_t first = 0;
  for (const LiveInterval &x : a.intervals) {
    while (first < b.intervals.size() && b.intervals[first].end <= x.begin)
      ++first;
    if (first == b.intervals.size())
      break;
    for (size_t j = first; j < b.intervals.size(); ++j) {
      const LiveInterval &y = b.intervals[j];
      if (y.begin >= x.end)
        break;
      if (!handsOver(x, y) && !handsOver(y, x))
        return true;
    }
  }
  return false;
}

/// Whether `other` can be in the memory of class `piece`, which may be a range
/// of another class.
bool BufferSharing::canJoin(const SharedBuffer &other, unsigned piece) const {
  const SharedBuffer &x = shared[piece];
  if (!x.pieces.empty())
    return false;
  if (!x.whole)
    return true;
  const SharedBuffer &whole = shared[*x.whole];
  // A result is better computed in a buffer of its own than copied there.
  if (other.whole || other.space || other.isResult || conflict(other, whole))
    return false;
  return llvm::none_of(whole.pieces, [&](unsigned number) {
    const SharedBuffer &y = shared[number];
    return y.offset < x.offset + x.bytes && x.offset < y.offset + y.bytes &&
           conflict(other, y);
  });
}

bool BufferSharing::merge(unsigned a, unsigned b, bool always) {
  unsigned ca = classOf(a), cb = classOf(b);
  if (ca == cb)
    return true;
  SharedBuffer &x = shared[ca], &y = shared[cb];
  if (!always) {
    if (x.readOnly || y.readOnly || (x.space && y.space) ||
        x.bytes != y.bytes || x.type != y.type || !canJoin(x, cb) ||
        !canJoin(y, ca) || conflict(x, y))
      return false;
  }
  // The common case: one class ends before the other begins.
  auto earlier = [](const LiveInterval &l, const LiveInterval &r) {
    return l.begin < r.begin;
  };
  std::vector<LiveInterval> &into = x.intervals, &from = y.intervals;
  if (into.empty() || from.empty() || !earlier(from.front(), into.back())) {
    llvm::append_range(into, from);
  } else if (earlier(from.back(), into.front())) {
    into.insert(into.begin(), from.begin(), from.end());
  } else {
    std::vector<LiveInterval> both;
    std::merge(into.begin(), into.end(), from.begin(), from.end(),
               std::back_inserter(both), earlier);
    into = std::move(both);
  }
  if (y.space) {
    x.space = y.space;
    x.index = y.index;
  }
  x.isResult |= y.isResult;
  if (y.whole) {
    x.whole = y.whole;
    x.offset = y.offset;
    llvm::replace(shared[*y.whole].pieces, cb, ca);
  }
  for (unsigned member : members[cb])
    classes[member] = ca;
  llvm::append_range(members[ca], members[cb]);
  members[cb].clear();
  y = {};
  return true;
}

void BufferSharing::merge(const std::vector<BufferLiveness::Wish> &wishes) {
  std::map<unsigned, std::vector<BufferLiveness::Wish>, std::greater<>> byDepth;
  for (const BufferLiveness::Wish &wish : wishes)
    byDepth[wish.depth].push_back(wish);
  for (const auto &[depth, group] : byDepth)
    for (const BufferLiveness::Wish &wish : group)
      merge(wish.a, wish.b);
}

void BufferSharing::placePieces() {
  std::vector<Piece> pieces;
  std::function<void(const BufferRegion &)> collect =
      [&](const BufferRegion &region) {
        for (const BufferInstr &instr : region.instrs) {
          llvm::append_range(pieces, piecesOf(function, instr));
          for (const BufferRegion &inner : instr.regions)
            collect(inner);
        }
      };
  collect(function.body);
  if (pieces.empty())
    return;
  // What is computed in place of a whole is in its buffer, too.
  std::set<unsigned> wholes;
  for (const Piece &piece : pieces)
    wholes.insert(liveness.root(piece.whole));
  for (const BufferLiveness::Wish &wish : liveness.optionalInPlace)
    if (wholes.count(wish.a) || wholes.count(wish.b))
      merge(wish.a, wish.b);
  for (const Piece &piece : pieces)
    placePiece(piece);
}

void BufferSharing::placePiece(const Piece &piece) {
  unsigned number = classOf(piece.value), wholeNumber = classOf(piece.whole);
  SharedBuffer &x = shared[number], &whole = shared[wholeNumber];
  if (x.bytes == 0 || piece.offset % pieceAlignment != 0 || whole.whole ||
      whole.space || whole.isResult)
    return;
  // What was in the range before shares its buffer.
  for (unsigned other : whole.pieces)
    if (shared[other].offset == piece.offset && shared[other].bytes == x.bytes)
      if (merge(members[other].front(), piece.value))
        return;
  if (number == wholeNumber || x.space || x.readOnly || x.isResult || x.whole ||
      !x.pieces.empty())
    return;
  x.whole = wholeNumber;
  x.offset = piece.offset;
  SharedBuffer alone = x;
  alone.whole.reset();
  if (canJoin(alone, number)) {
    whole.pieces.push_back(number);
  } else {
    x.whole.reset();
    x.offset = 0;
  }
}

} // namespace whale
