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

#include "whale/Cluster/Cluster.h"
#include "whale/Placement/Placement.h"
#include "whale/Planner/ShareCost.h"
#include "whale/Sharding/AxisPropagation.h"
#include <map>
#include <optional>
#include <vector>

namespace whale {

/// What devices do in one second, all of them together, in units.
double rateOf(llvm::ArrayRef<ShareCost> devices);

/// What the sizes of shards follow.
struct MeshBalance {
  /// Of the devices of each group.
  using ByDevice = std::vector<std::vector<ShareCost>>;
  /// Shares of the mini-batch, or of a micro-batch.
  ByDevice batch;
  /// Groups share the mini-batch out, and their devices something else.
  bool byGroup = false;
  /// Shares of groups, where those of several meshes are to be equal; else
  /// empty.
  std::vector<ShareCost> replicas;
  /// Shares of what is cut into so many pieces inside of a group, and of what
  /// is cut into any other number of them.
  std::map<int64_t, ByDevice> inner;
  ByDevice otherInner;
  /// Samples of each micro-batch, if their shares differ; they repeat after
  /// `period` of them.
  std::vector<int64_t> moments;
  int64_t period = 1;

  /// Whether the devices of a group wait for one another in each micro-batch,
  /// as they split something besides. Then turns save them no time.
  bool isLockstep() const { return !inner.empty(); }
  /// Units of the mini-batch that all devices do in a second.
  double rate() const;
  /// The share of a group, its devices working together.
  ShareCost ofGroup(size_t group) const;
};

class Mesh {
public:
  /// Two axes: `groups[g]` are the devices of repetition g, ids of `cluster`.
  /// By default, the mesh is balanced for products of f32.
  Mesh(std::vector<std::vector<DeviceId>> groups, const Cluster &cluster);
  /// Axes of these sizes, outermost first, over `devices` in row-major order,
  /// which all get equal shares.
  Mesh(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<DeviceId> devices);

  /// The parts of an axis, the largest number where groups differ.
  int64_t getNumParts(unsigned axis) const { return parts[axis]; }
  /// The devices along an axis, at the first place of all others.
  std::vector<DeviceId> getDevices(unsigned axis) const;

  /// The groups of a mesh of two axes; else none.
  const std::vector<std::vector<DeviceId>> &getGroups() const { return groups; }
  const MeshBalance &getBalance() const { return balance; }
  void setBalance(MeshBalance balance);
  /// The shares of the mini-batch, or of a micro-batch, that the devices of
  /// each group take: the integers whose largest finish time is least.
  const std::vector<Extents> &
  batchShares(int64_t extent, std::optional<int64_t> moment = {}) const;
  /// The shares inside of a group of what doesn't follow the mini-batch: equal
  /// in all groups, if these have equally many devices.
  Extents innerShares(int64_t extent, size_t group) const;

  /// The placement of a tensor of this shape, given its layout along each axis.
  /// Where several axes split the same piece an inner one cuts what the outer
  /// have left; if these are groups and their devices, that piece is the
  /// mini-batch. Pieces of one dimension must be equal or disjoint, and alone
  /// where a window is wanted. Shares of a mini-batch may differ from one
  /// micro-batch to the next.
  Placement place(llvm::ArrayRef<int64_t> shape,
                  llvm::ArrayRef<AxisState> states,
                  std::optional<int64_t> moment = {}) const;

private:
  /// The sizes along one axis, at one place of the axes outside of it.
  Extents sizesOf(llvm::ArrayRef<AxisState> states, unsigned axis,
                  int64_t extent, size_t group,
                  std::optional<int64_t> moment) const;
  size_t singlePart(unsigned axis, size_t place,
                    std::optional<int64_t> moment) const;
  std::vector<Extents> makeBatchShares(int64_t extent,
                                       std::optional<int64_t> moment) const;
  Extents makeGroupShares(size_t group, int64_t size, int64_t extent,
                          std::optional<int64_t> moment) const;
  /// What outer axes have left of a dimension of the view: a number of
  /// elements, and where windows are wanted, grains and the rows for them.
  struct Rest {
    int64_t extent = 0;
    RowRange grains = {};
    RowRange rows = {};
  };
  PlacementNode makeNode(llvm::ArrayRef<AxisState> states,
                         llvm::ArrayRef<int64_t> dims, unsigned axis,
                         size_t place, llvm::SmallVectorImpl<Rest> &rests,
                         std::optional<int64_t> moment) const;

  std::vector<std::vector<DeviceId>> groups;
  /// Of a mesh of equal shares.
  std::vector<DeviceId> devices;
  std::vector<int64_t> parts;
  MeshBalance balance;
  mutable std::map<std::pair<int64_t, int64_t>, std::vector<Extents>> cache;
  mutable std::map<std::pair<int64_t, size_t>, Extents> innerCache;
  /// Of each moment, in its own samples; empty until they are asked for.
  mutable std::vector<std::vector<int64_t>> momentShares;
  /// The same for devices of groups that take what these are given.
  mutable std::map<size_t, std::vector<std::vector<int64_t>>> groupMomentShares;
  /// By shape and states: programs repeat the same few on many devices.
  mutable std::map<std::vector<int64_t>, Placement> placements;
};

} // namespace whale

#endif // WHALE_SHARDING_MESH_H
