//===- Flow.cpp - Two placements in one system of coordinates -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Flow.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace whale;
using Kind = PlacementNode::Kind;

FlowTree::FlowTree(const Placement &placement) : placement(placement) {
  for (auto [i, shard] : llvm::enumerate(placement.shards()))
    leaves[shard.device] = i;
  Box box = Box::whole(placement.view());
  unsigned leaf = 0;
  top = build(placement.root(), box, leaf);
}

FlowTree::Node FlowTree::build(const PlacementNode &node, Box &box,
                               unsigned &leaf) {
  Node made{&node, leaf, leaf, {}, {}, {}};
  made.hasPartial = node.kind == Kind::Partial;
  made.hasSplit = node.kind == Kind::Split;
  if (node.isLeaf())
    ++leaf;
  made.children.reserve(node.children.size());
  if (node.kind == Kind::Split) {
    int64_t start = box.start[node.dim], extent = box.size[node.dim];
    for (auto [first, size, child] :
         llvm::zip(node.partStarts(), node.sizes, node.children)) {
      box.start[node.dim] = start + first;
      box.size[node.dim] = size;
      made.begins.push_back(start + first);
      made.ends.push_back(start + first + size);
      made.children.push_back(build(child, box, leaf));
    }
    box.start[node.dim] = start;
    box.size[node.dim] = extent;
  } else {
    for (const PlacementNode &child : node.children)
      made.children.push_back(build(child, box, leaf));
  }
  for (const Node &child : made.children) {
    made.hasPartial |= child.hasPartial;
    made.hasSplit |= child.hasSplit;
  }
  made.endLeaf = leaf;
  return made;
}

const FlowTree::Node &FlowTree::Node::childAt(ArrayRef<int64_t> point) const {
  return children[llvm::upper_bound(ends, point[node->dim]) - ends.begin()];
}

unsigned FlowTree::Node::childOf(unsigned leaf) const {
  auto after =
      llvm::upper_bound(children, leaf, [](unsigned leaf, const Node &child) {
        return leaf < child.firstLeaf;
      });
  return after - children.begin() - 1;
}

int FlowTree::leafOf(DeviceId device) const {
  auto it = leaves.find(device);
  return it == leaves.end() ? -1 : it->second;
}

bool FlowTree::holds(unsigned leaf, ArrayRef<int64_t> point) const {
  const Box &box = shards()[leaf].box;
  for (unsigned d = 0, e = point.size(); d != e; ++d)
    if (point[d] < box.start[d] || point[d] >= box.start[d] + box.size[d])
      return false;
  return true;
}

Flow::Flow(const Placement &from, const Placement &to) : from(from), to(to) {
  if (from.view() == to.view())
    return;
  if (std::optional<CommonView> common =
          commonRefinement(from.view(), to.view())) {
    std::optional<Placement> fine = from.withView(common->extents);
    std::optional<Placement> other = to.withView(common->extents);
    if (fine && other) {
      this->from = *fine;
      this->to = *other;
      return;
    }
  }
  if (std::optional<Placement> same = to.withView(from.view())) {
    this->to = *same;
    return;
  }
  if (std::optional<Placement> same = from.withView(to.view())) {
    this->from = *same;
    return;
  }
  flat = true;
}

std::vector<std::pair<int64_t, int64_t>> whale::runsOf(const Box &box,
                                                       ArrayRef<int64_t> view) {
  std::vector<std::pair<int64_t, int64_t>> runs;
  if (box.empty())
    return runs;
  // Dimensions from `inner` on form one interval for each point of the earlier
  // dimensions.
  unsigned inner = view.size();
  int64_t length = 1;
  while (inner != 0) {
    --inner;
    length *= box.size[inner];
    if (box.size[inner] != view[inner])
      break;
  }
  Extents point(box.start);
  while (true) {
    int64_t offset = 0;
    for (unsigned d = 0; d != view.size(); ++d)
      offset = offset * view[d] + point[d];
    runs.push_back({offset, offset + length});
    unsigned d = inner;
    while (d != 0 && ++point[d - 1] == box.start[d - 1] + box.size[d - 1]) {
      --d;
      point[d] = box.start[d];
    }
    if (d == 0)
      return runs;
  }
}
