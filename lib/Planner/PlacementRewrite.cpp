//===- PlacementRewrite.cpp - Placements made from placements -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/Placement.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace whale;
using Node = PlacementNode;
using Kind = PlacementNode::Kind;

/// A copy of the tree with every leaf replaced by `make(leaf)`, the leaves
/// taken in order.
template <typename Fn>
static Node mapLeaves(const Node &node, Fn &&make) {
  if (node.isLeaf())
    return make(node);
  Node copy;
  copy.kind = node.kind;
  copy.dim = node.dim;
  copy.sizes = node.sizes;
  copy.reduction = node.reduction;
  copy.children.reserve(node.children.size());
  for (const Node &child : node.children)
    copy.children.push_back(mapLeaves(child, make));
  return copy;
}

static void replacePartial(Node &node) {
  if (node.kind == Kind::Partial)
    node.kind = Kind::Replicate;
  for (Node &child : node.children)
    replacePartial(child);
}

Placement Placement::withoutPartial() const {
  if (!isPartial())
    return *this;
  Node node = root();
  replacePartial(node);
  return get(view(), std::move(node));
}

static bool sameShape(const Node &a, const Node &b) {
  return a.kind == b.kind && a.dim == b.dim && a.sizes == b.sizes &&
         a.children.size() == b.children.size() &&
         std::equal(a.children.begin(), a.children.end(), b.children.begin(),
                    sameShape);
}

/// Sinks partial nodes to the leaves and takes them off. Each leaf of the
/// result stands for the devices `groups[leaf.device]` that hold terms of one
/// box. False if children of a partial node differ in shape.
static bool sinkPartial(const Node &node, Node &result,
                        std::vector<SmallVector<DeviceId>> &groups) {
  if (node.isLeaf()) {
    result = Node::leaf(groups.size());
    groups.push_back({node.device});
    return true;
  }
  if (node.kind != Kind::Partial) {
    result.kind = node.kind;
    result.dim = node.dim;
    result.sizes = node.sizes;
    result.children.resize(node.children.size());
    for (auto [child, made] : llvm::zip(node.children, result.children))
      if (!sinkPartial(child, made, groups))
        return false;
    return true;
  }
  size_t begin = groups.size();
  if (!sinkPartial(node.children.front(), result, groups))
    return false;
  size_t count = groups.size() - begin;
  for (const Node &child : ArrayRef<Node>(node.children).drop_front()) {
    Node own;
    std::vector<SmallVector<DeviceId>> ownGroups;
    if (!sameShape(child, node.children.front()) ||
        !sinkPartial(child, own, ownGroups))
      return false;
    for (size_t i = 0; i != count; ++i)
      groups[begin + i].append(ownGroups[i].begin(), ownGroups[i].end());
  }
  return true;
}

std::optional<Placement> Placement::withPartialsReplaced(
    function_ref<Node(ArrayRef<DeviceId>, const Box &)> make) const {
  Node sunk;
  std::vector<SmallVector<DeviceId>> groups;
  if (!sinkPartial(root(), sunk, groups))
    return std::nullopt;
  Placement outer = get(view(), std::move(sunk));
  return cantFail(outer.expand([&](DeviceId group, const Box &box) {
    const SmallVector<DeviceId> &devices = groups[group];
    return devices.size() == 1 ? Node::leaf(devices.front())
                               : make(devices, box);
  }));
}

std::optional<Placement> Placement::withPartialSplit(int64_t dim) const {
  assert(dim >= 0 && dim < rank() && "dimension outside the view");
  return withPartialsReplaced([&](ArrayRef<DeviceId> devices, const Box &box) {
    return Node::split(dim, evenSizes(box.size[dim], devices.size()), devices);
  });
}

/// Rewrites a tree into another view. `region` is the node's box in the old
/// view, `box` the same elements in the new one.
static std::optional<Node> changeView(const Node &node, const Box &region,
                                      const Box &box, ArrayRef<int64_t> from,
                                      ArrayRef<int64_t> to) {
  if (node.isLeaf())
    return node;
  std::vector<Node> children;
  if (node.kind != Kind::Split) {
    for (const Node &child : node.children) {
      std::optional<Node> made = changeView(child, region, box, from, to);
      if (!made)
        return std::nullopt;
      children.push_back(std::move(*made));
    }
    Node copy;
    copy.kind = node.kind;
    copy.reduction = node.reduction;
    copy.children = std::move(children);
    return copy;
  }
  // The dimension there is the one along which the boxes of the parts differ
  // from the whole; parts that are empty or everything say nothing about it.
  Box part = region;
  SmallVector<Box> boxes;
  std::optional<unsigned> dim;
  for (int64_t size : node.sizes) {
    part.size[node.dim] = size;
    boxes.push_back(box);
    if (!part.empty() && part != region) {
      std::optional<Box> made = convertBox(part, from, to);
      if (!made)
        return std::nullopt;
      for (unsigned d = 0; d != to.size(); ++d)
        if (made->start[d] != box.start[d] || made->size[d] != box.size[d]) {
          if (dim.value_or(d) != d)
            return std::nullopt;
          dim = d;
        }
      boxes.back() = std::move(*made);
    }
    part.start[node.dim] += size;
  }
  if (!dim) {
    // One part has everything, or there is nothing: any dimension will do that
    // can hold the sizes. The first of positive extent, else the first.
    if (to.empty())
      return std::nullopt;
    dim = 0;
    if (region.empty()) {
      auto zero = llvm::find(box.size, 0);
      if (zero == box.size.end())
        return std::nullopt;
      dim = zero - box.size.begin();
    }
  }
  Extents sizes;
  part = region;
  for (auto [made, size, child] : llvm::zip(boxes, node.sizes, node.children)) {
    part.size[node.dim] = size;
    if (part.empty()) {
      made = box;
      made.size[*dim] = 0;
    }
    sizes.push_back(made.size[*dim]);
    std::optional<Node> converted = changeView(child, part, made, from, to);
    if (!converted)
      return std::nullopt;
    children.push_back(std::move(*converted));
    part.start[node.dim] += size;
  }
  return Node::split(*dim, sizes, std::move(children));
}

std::optional<Placement> Placement::withView(ArrayRef<int64_t> target) const {
  if (target == view())
    return *this;
  if (volumeOf(target) != volumeOf(view()))
    return std::nullopt;
  std::optional<Node> node = changeView(root(), Box::whole(view()),
                                        Box::whole(target), view(), target);
  if (!node)
    return std::nullopt;
  Expected<Placement> placement = create(target, std::move(*node));
  if (placement)
    return *placement;
  consumeError(placement.takeError());
  return std::nullopt;
}

static Node mapDims(const Node &node, ArrayRef<std::optional<int64_t>> dims) {
  if (node.isLeaf())
    return node;
  Node copy;
  copy.kind = node.kind;
  copy.reduction = node.reduction;
  if (node.kind == Kind::Split) {
    if (std::optional<int64_t> dim = dims[node.dim]) {
      copy.dim = *dim;
      copy.sizes = node.sizes;
    } else {
      copy.kind = Kind::Replicate;
    }
  }
  for (const Node &child : node.children)
    copy.children.push_back(mapDims(child, dims));
  return copy;
}

std::optional<Placement>
Placement::withDims(ArrayRef<int64_t> target,
                    ArrayRef<std::optional<int64_t>> dims) const {
  assert(int64_t(dims.size()) == rank() && "one entry for every dimension");
  for (int64_t dim : splitDims())
    if (dims[dim] && target[*dims[dim]] != view()[dim])
      return std::nullopt;
  return get(target, mapDims(root(), dims));
}

Expected<Placement>
Placement::expand(function_ref<Node(DeviceId, const Box &)> make) const {
  size_t next = 0;
  return create(view(), mapLeaves(root(), [&](const Node &leaf) {
                  return make(leaf.device, shards()[next++].box);
                }));
}

Expected<Placement>
Placement::mapDevices(function_ref<DeviceId(DeviceId)> rename) const {
  return create(view(), mapLeaves(root(), [&](const Node &leaf) {
                  return Node::leaf(rename(leaf.device));
                }));
}

/// Merges nodes nested in their like: split in split of one dimension, and so
/// on.
static Node mergeNested(const Node &node) {
  if (node.isLeaf())
    return node;
  Node merged;
  merged.kind = node.kind;
  merged.dim = node.dim;
  merged.reduction = node.reduction;
  for (auto [i, child] : llvm::enumerate(node.children)) {
    Node made = mergeNested(child);
    if (made.kind == merged.kind && made.dim == merged.dim) {
      merged.sizes.append(made.sizes);
      llvm::append_range(merged.children, std::move(made.children));
      continue;
    }
    if (node.kind == Kind::Split)
      merged.sizes.push_back(node.sizes[i]);
    merged.children.push_back(std::move(made));
  }
  return merged;
}

Placement Placement::canonical() const {
  return get(view(), mergeNested(root()));
}

bool Placement::isEquivalent(const Placement &other) const {
  if (*this == other)
    return true;
  if (!*this || !other || devices().size() != other.devices().size() ||
      reduction() != other.reduction())
    return false;
  if (isPartial()) {
    std::optional<Placement> same = other.withView(view());
    return same && canonical() == same->canonical();
  }
  for (const Shard &shard : shards()) {
    std::optional<Box> box = other.box(shard.device);
    if (!box || box->empty() != shard.box.empty())
      return false;
    if (box->empty())
      continue;
    std::optional<Box> same = convertBox(*box, other.view(), view());
    if (!same || *same != shard.box)
      return false;
  }
  return true;
}
