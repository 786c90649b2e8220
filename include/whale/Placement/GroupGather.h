//===- GroupGather.h - An all-gather without its shapes ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What matters of an all-gather or a reduce-scatter whose parts are equal: who
// has which part, and how the parts lie in the whole. So several of them can
// become one, of their parts side by side, and one can be divided by node.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLACEMENT_GROUPGATHER_H
#define WHALE_PLACEMENT_GROUPGATHER_H

#include "whale/Placement/Cells.h"

namespace whale {

struct GroupGather {
  StepKind kind = StepKind::AllGather;
  /// Of a reduce-scatter.
  Reduction reduction = Reduction::Sum;
  /// Each group has a whole of its own, all alike. Members are in the order of
  /// their parts.
  std::vector<std::vector<DeviceId>> groups;
  /// The extents of a whole in front of the dimension that is cut, and behind
  /// it, and what a member has of that dimension.
  Extents before, after;
  int64_t part = 1;

  /// Returns what a step of kind AllGather or ReduceScatter does; nullopt if
  /// the parts are not equal or cut along several dimensions, if the groups
  /// differ, or if some device is in none.
  static std::optional<GroupGather> of(const Step &step,
                                       const Topology &topology = {});

  int64_t members() const { return int64_t(groups.front().size()); }

  /// The same for parts of so many elements each, in a view of one dimension:
  /// the groups one behind the other, and in each the parts.
  Step asStep(int64_t elements) const;
};

} // namespace whale

#endif // WHALE_PLACEMENT_GROUPGATHER_H
