//===- Box.cpp - A rectangle of elements ----------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Boxes and their conversion between views of one tensor. The idea: the
// coarsest common refinement of two views is found by dividing factors off both
// from the minor end; a box is refined to it dimension by dimension and
// coarsened to the other view. Linear in the number of dimensions.
//
//===----------------------------------------------------------------------===//

#include "whale/Placement/Box.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace whale;

int64_t whale::volumeOf(ArrayRef<int64_t> extents) {
  int64_t volume = 1;
  for (int64_t extent : extents)
    volume *= extent;
  return volume;
}

Box Box::whole(ArrayRef<int64_t> view) {
  return {Extents(view.size(), 0), Extents(view)};
}

bool Box::contains(const Box &other) const {
  assert(start.size() == other.start.size() && "boxes of different views");
  if (other.empty())
    return true;
  for (unsigned d = 0, e = start.size(); d != e; ++d)
    if (other.start[d] < start[d] ||
        other.start[d] + other.size[d] > start[d] + size[d])
      return false;
  return true;
}

std::optional<Box> Box::intersect(const Box &other) const {
  assert(start.size() == other.start.size() && "boxes of different views");
  Box common;
  for (unsigned d = 0, e = start.size(); d != e; ++d) {
    int64_t begin = std::max(start[d], other.start[d]);
    int64_t end = std::min(start[d] + size[d], other.start[d] + other.size[d]);
    if (begin >= end)
      return std::nullopt;
    common.start.push_back(begin);
    common.size.push_back(end - begin);
  }
  return common;
}

bool Box::overlaps(const Box &other) const {
  for (unsigned d = 0, e = start.size(); d != e; ++d)
    if (std::max(start[d], other.start[d]) >=
        std::min(start[d] + size[d], other.start[d] + other.size[d]))
      return false;
  return true;
}

raw_ostream &whale::operator<<(raw_ostream &os, const Box &box) {
  os << '[';
  for (unsigned d = 0, e = box.start.size(); d != e; ++d)
    os << (d ? ", " : "") << box.start[d] << ':' << box.start[d] + box.size[d];
  return os << ']';
}

std::optional<CommonView> whale::commonRefinement(ArrayRef<int64_t> first,
                                                  ArrayRef<int64_t> second) {
  CommonView common;
  if (first == second) {
    common.extents.assign(first.begin(), first.end());
    for (unsigned d = 0; d != first.size(); ++d)
      common.first.push_back({d, d + 1});
    common.second = common.first;
    return common;
  }
  if (llvm::is_contained(first, 0) && llvm::is_contained(second, 0)) {
    // Any prime divides both views as the zeros do.
    constexpr int64_t prime = 65537;
    Extents filled(first), other(second);
    llvm::replace(filled, int64_t(0), prime);
    llvm::replace(other, int64_t(0), prime);
    std::optional<CommonView> found = commonRefinement(filled, other);
    if (found)
      llvm::replace(found->extents, prime, int64_t(0));
    return found;
  }
  if (volumeOf(first) != volumeOf(second) || volumeOf(first) == 0)
    return std::nullopt;
  // Factors are divided off both views from the minor end; runs are counted
  // from there too and reversed at the end.
  struct Side {
    ArrayRef<int64_t> view;
    SmallVector<std::pair<unsigned, unsigned>, 4> runs;
    int64_t rest = 1;
    unsigned begin = 0;
    bool open = false;
    bool fetch(unsigned emitted) {
      if (!open && !view.empty()) {
        rest = view.back();
        view = view.drop_back();
        begin = emitted;
        open = true;
      }
      return open;
    }
    void take(int64_t factor, unsigned emitted) {
      rest /= factor;
      if (rest == 1) {
        runs.push_back({begin, emitted});
        open = false;
      }
    }
  } a{first, {}}, b{second, {}};
  Extents minorFirst;
  while (true) {
    unsigned n = minorFirst.size();
    bool hasA = a.fetch(n), hasB = b.fetch(n);
    if (!hasA && !hasB)
      break;
    // A dimension of extent 1 has no counterpart on the other side.
    if (hasA && a.rest == 1) {
      minorFirst.push_back(1);
      a.take(1, n + 1);
      if (hasB && b.begin == n && b.rest == 1)
        b.take(1, n + 1);
      continue;
    }
    if (hasB && b.rest == 1) {
      minorFirst.push_back(1);
      b.take(1, n + 1);
      continue;
    }
    if (!hasA || !hasB)
      return std::nullopt;
    int64_t factor = std::min(a.rest, b.rest);
    if (a.rest % factor || b.rest % factor)
      return std::nullopt;
    minorFirst.push_back(factor);
    a.take(factor, n + 1);
    b.take(factor, n + 1);
  }
  unsigned total = minorFirst.size();
  common.extents.assign(minorFirst.rbegin(), minorFirst.rend());
  for (auto [begin, end] : llvm::reverse(a.runs))
    common.first.push_back({total - end, total - begin});
  for (auto [begin, end] : llvm::reverse(b.runs))
    common.second.push_back({total - end, total - begin});
  return common;
}

/// Converts [start, start + size) of the product of `extents` to a box of these
/// extents; appends it to `box`.
static bool refineInterval(int64_t start, int64_t size,
                           ArrayRef<int64_t> extents, Box &box) {
  for (unsigned d = 0, e = extents.size(); d != e; ++d) {
    int64_t minor = volumeOf(extents.drop_front(d + 1));
    if (size == 0 || (start % minor == 0 && size % minor == 0)) {
      box.start.push_back(start / minor);
      box.size.push_back(size / minor);
      for (int64_t rest : extents.drop_front(d + 1)) {
        box.start.push_back(0);
        box.size.push_back(rest);
      }
      return true;
    }
    if (start / minor != (start + size - 1) / minor)
      return false;
    box.start.push_back(start / minor);
    box.size.push_back(1);
    start %= minor;
  }
  return true;
}

/// The inverse: returns the interval of the product that the part [begin, end)
/// of `box` covers, if it is one.
static std::optional<std::pair<int64_t, int64_t>>
coarsenInterval(const Box &box, ArrayRef<int64_t> view, unsigned begin,
                unsigned end) {
  int64_t start = 0, size = 1;
  bool inside = false;
  for (unsigned d = begin; d != end; ++d) {
    if (inside && box.size[d] != view[d])
      return std::nullopt;
    inside |= box.size[d] != 1;
    start = start * view[d] + box.start[d];
    size *= box.size[d];
  }
  return std::make_pair(start, size);
}

std::optional<Box> whale::convertBox(const Box &box, ArrayRef<int64_t> from,
                                     ArrayRef<int64_t> to) {
  if (from == to)
    return box;
  if (box.empty()) {
    Box none = Box::whole(to);
    if (to.empty())
      return std::nullopt; // a scalar has no empty part
    if (!none.empty())
      none.size.front() = 0;
    return none;
  }
  std::optional<CommonView> common = commonRefinement(from, to);
  if (!common) {
    // The views interleave; a box of one can be a box of the other only if it
    // is one interval in memory.
    auto flat = coarsenInterval(box, from, 0, from.size());
    Box result;
    if (!flat || !refineInterval(flat->first, flat->second, to, result))
      return std::nullopt;
    return result;
  }
  Box refined, result;
  for (unsigned d = 0; d != from.size(); ++d) {
    auto [begin, end] = common->first[d];
    if (!refineInterval(
            box.start[d], box.size[d],
            ArrayRef<int64_t>(common->extents).slice(begin, end - begin),
            refined))
      return std::nullopt;
  }
  // Dimensions that belong to no dimension of `from` have extent 1 and are
  // between the runs; a run is never empty, so the run lengths identify them.
  if (refined.start.size() != common->extents.size()) {
    Box padded = Box::whole(common->extents);
    unsigned next = 0;
    for (auto [begin, end] : common->first)
      for (unsigned d = begin; d != end; ++d, ++next) {
        padded.start[d] = refined.start[next];
        padded.size[d] = refined.size[next];
      }
    refined = std::move(padded);
  }
  for (auto [begin, end] : common->second) {
    auto interval = coarsenInterval(refined, common->extents, begin, end);
    if (!interval)
      return std::nullopt;
    result.start.push_back(interval->first);
    result.size.push_back(interval->second);
  }
  return result;
}
