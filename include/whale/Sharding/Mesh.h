//===- Mesh.h - The devices of a TaskGraph, and shards on them -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A TaskGraph's virtual device seen as axes: repetitions of the group (nested
// data parallelism) and the devices inside one, or the axes of a mesh that the
// program names. Turns the layouts that propagation decided along each axis
// into a placement, with sizes in proportion to what each device can do.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SHARDING_MESH_H
#define WHALE_SHARDING_MESH_H

#include "whale/Planner/Cluster.h"
#include "whale/Planner/Placement.h"
#include "whale/Sharding/AxisPropagation.h"
#include <map>
#include <vector>

namespace whale {

class Mesh {
public:
  /// Two axes: `groups[g]` are the devices of repetition g, ids of `cluster`.
  Mesh(const std::vector<std::vector<DeviceId>> &groups,
       const Cluster &cluster);
  /// Axes of these sizes, outermost first, over `devices` in row-major order,
  /// which all get equal shares.
  Mesh(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<DeviceId> devices,
       const Cluster &cluster);

  /// The parts of an axis, the largest number where groups differ.
  int64_t getNumParts(unsigned axis) const { return parts[axis]; }
  /// The devices along an axis, at the first place of all others.
  std::vector<DeviceId> getDevices(unsigned axis) const;

  /// The placement of a tensor of this shape, given its layout along each axis.
  /// Where several axes split the same piece an inner one cuts what the outer
  /// have left. Pieces of one dimension must be equal or disjoint.
  Placement place(llvm::ArrayRef<int64_t> shape,
                  llvm::ArrayRef<AxisState> states) const;

private:
  /// The devices below one point of the outer axes.
  struct Node {
    /// For one unit of work.
    double seconds = 0;
    DeviceId device = 0;
    std::vector<Node> children;
  };

  static Node join(std::vector<Node> children);
  static Node nest(llvm::ArrayRef<int64_t> sizes,
                   llvm::ArrayRef<DeviceId> devices, double seconds);
  void countParts(const Node &node, unsigned axis);
  /// `extent` in integer shares whose largest finish time is least.
  Extents sharesOf(int64_t extent, const Node &node) const;
  PlacementNode makeNode(const Node &node, llvm::ArrayRef<AxisState> states,
                         llvm::ArrayRef<int64_t> dims, Extents &extents) const;

  Node root;
  std::vector<int64_t> parts;
  mutable std::map<std::pair<int64_t, std::vector<double>>, Extents> cache;
  /// By shape and states: programs repeat the same few on many devices.
  mutable std::map<std::vector<int64_t>, Placement> placements;
};

} // namespace whale

#endif // WHALE_SHARDING_MESH_H
