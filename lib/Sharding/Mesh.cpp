//===- Mesh.cpp - The devices of a TaskGraph, and shards on them ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/Mesh.h"
#include "whale/Planner/LoadBalance.h"

using namespace mlir;

namespace whale {

static double secondsOf(const Cluster &cluster, DeviceId device) {
  const DeviceKind &kind = cluster.kindOf(device);
  return cluster.devices[device].slowdown /
         (kind.peakFlops("f32") * kind.efficiency[size_t(OpClass::Matmul)]);
}

Mesh::Node Mesh::join(std::vector<Node> children) {
  Node node;
  double speed = 0;
  for (const Node &child : children)
    speed += 1 / child.seconds;
  node.seconds = 1 / speed;
  node.children = std::move(children);
  return node;
}

Mesh::Mesh(const std::vector<std::vector<DeviceId>> &groups,
           const Cluster &cluster) {
  std::vector<Node> nodes;
  for (const std::vector<DeviceId> &group : groups) {
    std::vector<Node> leaves;
    for (DeviceId device : group)
      leaves.push_back({secondsOf(cluster, device), device, {}});
    nodes.push_back(join(std::move(leaves)));
  }
  root = join(std::move(nodes));
  countParts(root, 0);
}

Mesh::Node Mesh::nest(ArrayRef<int64_t> sizes, ArrayRef<DeviceId> devices,
                      double seconds) {
  if (sizes.empty())
    return {seconds, devices.front(), {}};
  size_t below = devices.size() / sizes.front();
  std::vector<Node> children;
  for (int64_t i = 0; i < sizes.front(); ++i)
    children.push_back(
        nest(sizes.drop_front(), devices.slice(i * below, below), seconds));
  return join(std::move(children));
}

Mesh::Mesh(ArrayRef<int64_t> sizes, ArrayRef<DeviceId> devices,
           const Cluster &cluster) {
  // All wait for the slowest.
  double seconds = 0;
  for (DeviceId device : devices)
    seconds = std::max(seconds, secondsOf(cluster, device));
  root = nest(sizes, devices, seconds);
  countParts(root, 0);
}

void Mesh::countParts(const Node &node, unsigned axis) {
  if (node.children.empty())
    return;
  parts.resize(std::max<size_t>(parts.size(), axis + 1));
  parts[axis] = std::max<int64_t>(parts[axis], node.children.size());
  for (const Node &child : node.children)
    countParts(child, axis + 1);
}

std::vector<DeviceId> Mesh::getDevices(unsigned axis) const {
  const Node *node = &root;
  for (unsigned i = 0; i < axis; ++i)
    node = &node->children.front();
  std::vector<DeviceId> devices;
  for (const Node &child : node->children) {
    const Node *first = &child;
    while (!first->children.empty())
      first = &first->children.front();
    devices.push_back(first->device);
  }
  return devices;
}

Extents Mesh::sharesOf(int64_t extent, const Node &node) const {
  std::vector<double> seconds;
  for (const Node &child : node.children)
    seconds.push_back(child.seconds);
  auto [it, isNew] = cache.try_emplace({extent, seconds});
  if (isNew) {
    std::vector<ShareDevice> devices;
    for (auto [index, time] : llvm::enumerate(seconds))
      devices.push_back({int64_t(index), time});
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

Placement Mesh::place(ArrayRef<int64_t> shape,
                      ArrayRef<AxisState> states) const {
  std::vector<int64_t> key(shape);
  for (const AxisState &state : states)
    key.insert(key.end(),
               {int64_t(state.kind), state.piece.dim, state.piece.extent,
                state.piece.minor, int64_t(state.reduction)});
  auto it = placements.find(key);
  if (it != placements.end())
    return it->second;

  // An axis of one part says nothing.
  SmallVector<DimPiece> pieces;
  for (auto [axis, state] : llvm::enumerate(states))
    if (state.isSplit() && getNumParts(axis) > 1)
      pieces.push_back(state.piece);
  View view = cutView(shape, pieces);
  SmallVector<int64_t> dims(states.size(), -1);
  unsigned next = 0;
  for (auto [axis, state] : llvm::enumerate(states))
    if (state.isSplit() && getNumParts(axis) > 1)
      dims[axis] = view.dims[next++];
  Extents left = view.extents;
  PlacementNode node = makeNode(root, states, dims, left);
  return placements.emplace(key, Placement::get(view.extents, std::move(node)))
      .first->second;
}

/// The part of a placement below `node`, of what is left of each extent.
PlacementNode Mesh::makeNode(const Node &node, ArrayRef<AxisState> states,
                             ArrayRef<int64_t> dims, Extents &extents) const {
  if (states.empty())
    return PlacementNode::leaf(node.device);
  Extents sizes;
  int64_t whole = 0;
  if (dims.front() >= 0) {
    whole = extents[dims.front()];
    sizes = sharesOf(whole, node);
  }
  std::vector<PlacementNode> children;
  for (auto [index, child] : llvm::enumerate(node.children)) {
    if (dims.front() >= 0)
      extents[dims.front()] = sizes[index];
    children.push_back(
        makeNode(child, states.drop_front(), dims.drop_front(), extents));
  }
  if (dims.front() >= 0) {
    extents[dims.front()] = whole;
    return PlacementNode::split(dims.front(), sizes, std::move(children));
  }
  if (states.front().isPartial())
    return PlacementNode::partial(states.front().reduction,
                                  std::move(children));
  return PlacementNode::replicate(std::move(children));
}

} // namespace whale
