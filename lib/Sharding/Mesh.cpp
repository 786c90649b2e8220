//===- Mesh.cpp - The devices of a TaskGraph, and shards on them ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/Mesh.h"
#include "whale/Planner/LoadBalance.h"
#include <numeric>

using namespace mlir;

namespace whale {

Mesh::Mesh(std::vector<std::vector<DeviceId>> groups, const Cluster &cluster)
    : groups(std::move(groups)) {
  for (const std::vector<DeviceId> &group : this->groups) {
    double speed = 0;
    std::vector<double> &seconds = deviceSeconds.emplace_back();
    for (DeviceId device : group) {
      const DeviceKind &kind = cluster.kindOf(device);
      double flops =
          kind.peakFlops("f32") * kind.efficiency[size_t(OpClass::Matmul)];
      seconds.push_back(cluster.devices[device].slowdown / flops);
      speed += 1 / seconds.back();
    }
    groupSeconds.push_back(1 / speed);
  }
}

int64_t Mesh::getGroupSize() const {
  size_t size = 0;
  for (const std::vector<DeviceId> &group : groups)
    size = std::max(size, group.size());
  return size;
}

Extents Mesh::sharesOf(int64_t extent, ArrayRef<double> secondsPerUnit) const {
  auto [it, isNew] =
      cache.try_emplace({extent, std::vector<double>(secondsPerUnit)});
  if (isNew) {
    std::vector<ShareDevice> devices;
    for (auto [index, seconds] : llvm::enumerate(secondsPerUnit))
      devices.push_back({int64_t(index), seconds});
    // Without memory limits there is always an answer.
    std::vector<int64_t> sizes =
        llvm::cantFail(shares(extent, /*grain=*/1, devices));
    it->second.assign(sizes.begin(), sizes.end());
  }
  return it->second;
}

namespace {

/// A view in which each given piece is a dimension of its own.
struct View {
  Extents extents;
  /// The view dimension of each piece.
  SmallVector<int64_t> dims;
};

View cutView(ArrayRef<int64_t> shape, ArrayRef<DimPiece> pieces) {
  View view;
  view.dims.assign(pieces.size(), 0);
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (size <= 1) { // Nothing to cut.
      view.extents.push_back(size);
      continue;
    }
    SmallVector<int64_t> cuts{size, 1};
    for (const DimPiece &piece : pieces)
      if (piece.dim == dim) {
        cuts.push_back(piece.minor);
        cuts.push_back(piece.minor * piece.extent);
      }
    llvm::sort(cuts, std::greater<>());
    cuts.erase(llvm::unique(cuts), cuts.end());
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      for (auto [index, piece] : llvm::enumerate(pieces))
        if (piece.dim == dim && piece.minor == cuts[i + 1]) {
          assert(piece.minor * piece.extent == cuts[i] &&
                 "pieces of a dimension must be equal or disjoint");
          view.dims[index] = view.extents.size();
        }
      view.extents.push_back(cuts[i] / cuts[i + 1]);
    }
  }
  return view;
}

} // namespace

Placement Mesh::place(ArrayRef<int64_t> shape, const AxisState &outer,
                      const AxisState &inner) const {
  std::vector<int64_t> key(shape);
  for (const AxisState *state : {&outer, &inner})
    key.insert(key.end(),
               {int64_t(state->kind), state->piece.dim, state->piece.extent,
                state->piece.minor, int64_t(state->reduction)});
  auto it = placements.find(key);
  if (it == placements.end())
    it = placements.emplace(key, makePlacement(shape, outer, inner)).first;
  return it->second;
}

Placement Mesh::makePlacement(ArrayRef<int64_t> shape, const AxisState &outer,
                              const AxisState &inner) const {
  // An axis of one part says nothing.
  bool splitsOuter = outer.isSplit() && groups.size() > 1;
  bool splitsInner = inner.isSplit() && getGroupSize() > 1;
  SmallVector<DimPiece> pieces;
  if (splitsOuter)
    pieces.push_back(outer.piece);
  if (splitsInner)
    pieces.push_back(inner.piece);
  View view = cutView(shape, pieces);
  bool nested = splitsOuter && splitsInner && outer.piece == inner.piece;

  Extents outerSizes;
  if (splitsOuter)
    outerSizes = sharesOf(outer.piece.extent, groupSeconds);
  std::vector<PlacementNode> children;
  for (auto [index, group] : llvm::enumerate(groups)) {
    if (splitsInner) {
      int64_t extent = nested ? outerSizes[index] : inner.piece.extent;
      children.push_back(PlacementNode::split(
          view.dims.back(), sharesOf(extent, deviceSeconds[index]),
          ArrayRef<DeviceId>(group)));
    } else if (inner.isPartial()) {
      children.push_back(
          PlacementNode::partial(inner.reduction, ArrayRef<DeviceId>(group)));
    } else {
      children.push_back(PlacementNode::replicate(ArrayRef<DeviceId>(group)));
    }
  }
  PlacementNode root;
  if (splitsOuter)
    root = PlacementNode::split(view.dims.front(), outerSizes,
                                std::move(children));
  else if (outer.isPartial())
    root = PlacementNode::partial(outer.reduction, std::move(children));
  else
    root = PlacementNode::replicate(std::move(children));
  return Placement::get(view.extents, std::move(root));
}

} // namespace whale
