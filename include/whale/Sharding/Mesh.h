//===- Mesh.h - The devices of a TaskGraph, and shards on them -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A TaskGraph's virtual device seen as two axes: repetitions of the group
// (nested data parallelism) and the devices inside one. Turns the layouts that
// propagation decided along both axes into a placement, with sizes in
// proportion to what each device can do.
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
  /// `groups[g]` are the devices of repetition g, ids of `cluster`.
  Mesh(std::vector<std::vector<DeviceId>> groups, const Cluster &cluster);

  int64_t getNumGroups() const { return groups.size(); }
  /// The devices of the largest group.
  int64_t getGroupSize() const;
  /// The devices of repetition `index`.
  llvm::ArrayRef<DeviceId> getGroup(size_t index) const {
    return groups[index];
  }

  /// The placement of a tensor of this shape: `outer` over the groups, `inner`
  /// over the devices of each. Where both split the same piece the inner cuts
  /// what the outer has left. Pieces of one dimension must be equal or
  /// disjoint.
  Placement place(llvm::ArrayRef<int64_t> shape, const AxisState &outer,
                  const AxisState &inner) const;

private:
  /// `extent` in integer shares whose largest finish time is least.
  Extents sharesOf(int64_t extent, llvm::ArrayRef<double> secondsPerUnit) const;
  Placement makePlacement(llvm::ArrayRef<int64_t> shape, const AxisState &outer,
                          const AxisState &inner) const;

  std::vector<std::vector<DeviceId>> groups;
  /// Seconds for one unit of work: of each device, and of whole groups.
  std::vector<std::vector<double>> deviceSeconds;
  std::vector<double> groupSeconds;
  mutable std::map<std::pair<int64_t, std::vector<double>>, Extents> cache;
  /// By shape and states: programs repeat the same few on many devices.
  mutable std::map<std::vector<int64_t>, Placement> placements;
};

} // namespace whale

#endif // WHALE_SHARDING_MESH_H
