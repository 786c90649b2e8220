//===- BufferLiveness.h - When each value is alive --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the buffer plan: the live intervals of values. Time is a sequence
// of points: an instruction is one point; a loop has one for its entry, the end
// of its condition, the end of its body and its exit; a branch has one for its
// entry, the end of each branch and its exit; a call has all points of its
// segment. Point p covers the half-open interval [2p, 2p + 2): values that p
// reads are alive up to its end, values that it writes from its start, so both
// conflict unless the pair is permitted.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_STEP_BUFFERLIVENESS_H
#define WHALE_LIB_STEP_BUFFERLIVENESS_H

#include "whale/Step/BufferPlan.h"

#include <map>
#include <set>
#include <tuple>

namespace whale {

struct LiveInterval {
  int64_t begin;
  int64_t end;
  unsigned root;
};

/// A parallel copy into `dst` from `src` (roots) at a point of time.
struct CarryMove {
  unsigned dst;
  unsigned src;
};

class BufferLiveness {
public:
  explicit BufferLiveness(const BufferFunction &function);

  /// Returns the value whose content `value` has, through views, loop-carried
  /// values that no iteration changes and branches that agree.
  unsigned root(unsigned value) const;

  /// Returns when a root is alive: ascending, disjoint intervals.
  const std::vector<LiveInterval> &intervals(unsigned root) const {
    return live[root];
  }

  /// Whether `written`, defined at point p, may use the buffer that `read` has
  /// up to p.
  bool permitted(int64_t point, unsigned written, unsigned read) const {
    return permits.count({point, written, read});
  }

  /// A range of an argument's bytes. The argument is alive at least as long.
  struct Part {
    unsigned argument;
    int64_t offset;
  };
  /// Returns null if the root is not a part of an argument.
  const Part *part(unsigned root) const {
    auto it = parts.find(root);
    return it == parts.end() ? nullptr : &it->second;
  }

  /// The end of the last point.
  int64_t end = 0;
  /// By segment the starts of its calls, in ascending order.
  std::vector<std::vector<int64_t>> calls;

  /// Pairs of values to merge, by kind; `depth` is the number of loops around.
  struct Wish {
    unsigned a;
    unsigned b;
    unsigned depth;
  };
  std::vector<Wish> requiredInPlace, carries, inits, optionalInPlace;
  /// Values that always share one buffer: the two arguments and the result of
  /// a loop-carried value.
  std::vector<std::pair<unsigned, unsigned>> fixed;

  /// Moves before instruction i and at the end of region i, with their points.
  std::vector<std::vector<CarryMove>> before, atEnd;
  std::vector<int64_t> pointBefore, pointAtEnd;

private:
  friend class LivenessWalk;
  void unite(const BufferRegion &region, const BufferFunction &function);

  mutable std::vector<unsigned> parent;
  std::map<unsigned, Part> parts;
  std::vector<std::vector<LiveInterval>> live;
  std::set<std::tuple<int64_t, unsigned, unsigned>> permits;
};

} // namespace whale

#endif // WHALE_LIB_STEP_BUFFERLIVENESS_H
