//===- GroupReduction.h - An all-reduce without its shapes ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What matters of an all-reduce once its values are shards: who sums up with
// whom, and how many elements. So several of them can become one, of their
// elements side by side, and one can be divided by node.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLACEMENT_GROUPREDUCTION_H
#define WHALE_PLACEMENT_GROUPREDUCTION_H

#include "whale/Placement/Cells.h"

namespace whale {

struct GroupReduction {
  Reduction reduction = Reduction::Sum;
  /// Each group reduces elements of its own.
  std::vector<llvm::SmallVector<DeviceId>> groups;
  /// By group.
  Extents elements;

  /// Returns what a step of kind AllReduce does; nullopt if some device is in
  /// no group, or a group has no elements.
  static std::optional<GroupReduction> of(const Step &step,
                                          const Topology &topology = {});

  /// The step in a view of one dimension, the groups' elements one behind the
  /// other.
  Step asStep() const;

  /// How many members each group has in each node that it is in; nullopt if
  /// these are not equally many, fewer than two, or all in one node.
  std::optional<int64_t> membersByNode(const Topology &topology) const;

  /// The same as three steps in that view: a reduce-scatter in each node, an
  /// all-reduce of the parts across nodes, an all-gather in each node. The
  /// elements must be multiples of membersByNode, which must not be nullopt.
  std::vector<Step> divideByNode(const Topology &topology) const;

private:
  using Node = PlacementNode;
  Placement
  place(llvm::function_ref<Node(llvm::ArrayRef<DeviceId>, int64_t)> make) const;
};

} // namespace whale

#endif // WHALE_PLACEMENT_GROUPREDUCTION_H
