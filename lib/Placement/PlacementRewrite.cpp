//===- PlacementRewrite.cpp - Derive placements from placements -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of Placement that return a changed placement: without windows
// or partial nodes, in another view, with other dimensions or devices. Each
// walks the tree recursively and, where sizes change, tracks the box of each
// node before and after. Linear in the size of the tree.
//
//===----------------------------------------------------------------------===//

#include "whale/Placement/Placement.h"
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
  copy.starts = node.starts;
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

/// Turns windows into parts: `node` held `box` and is changed to hold `part`.
static void cutWindows(Node &node, Box &box, Box &part) {
  if (node.kind != Kind::Split) {
    for (Node &child : node.children)
      cutWindows(child, box, part);
    return;
  }
  int64_t dim = node.dim;
  Extents starts = node.partStarts(), sizes(node.sizes.size(), 0);
  int64_t first = part.start[dim], last = first + part.size[dim];
  int64_t cut = first, end = 0;
  size_t open = 0;
  for (size_t i = 0; i != starts.size(); ++i) {
    if (node.sizes[i] == 0)
      continue;
    int64_t start = box.start[dim] + starts[i];
    if (end != 0) {
      int64_t next = std::clamp((end + start) / 2, cut, last);
      sizes[open] = next - cut;
      cut = next;
    }
    open = i;
    end = start + node.sizes[i];
  }
  sizes[open] = last - cut;
  Box before = box, after = part;
  for (size_t i = 0; i != starts.size(); ++i) {
    before.start[dim] = box.start[dim] + starts[i];
    before.size[dim] = node.sizes[i];
    after.size[dim] = sizes[i];
    cutWindows(node.children[i], before, after);
    after.start[dim] += sizes[i];
  }
  node.starts.clear();
  node.sizes = sizes;
}

Placement Placement::withoutWindows() const {
  if (!hasWindows())
    return *this;
  Node node = root();
  Box box = Box::whole(view()), part = box;
  cutWindows(node, box, part);
  return get(view(), std::move(node));
}

static bool sameShape(const Node &a, const Node &b) {
  return a.kind == b.kind && a.dim == b.dim && a.sizes == b.sizes &&
         a.children.size() == b.children.size() &&
         std::equal(a.children.begin(), a.children.end(), b.children.begin(),
                    sameShape);
}

/// Moves partial nodes down to the leaves and removes them. Each leaf of the
/// result represents the devices `groups[leaf.device]`, which hold terms of one
/// box. Returns false if children of a partial node differ in shape.
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
    result.starts = node.starts;
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
  // The dimension in the new view is the one along which the boxes of the parts
  // differ from the whole; parts that are empty or equal to the whole don't
  // determine it.
  Box part = region;
  SmallVector<Box> boxes;
  std::optional<unsigned> dim;
  Extents firsts = node.partStarts();
  for (auto [first, size] : llvm::zip(firsts, node.sizes)) {
    part.start[node.dim] = region.start[node.dim] + first;
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
  }
  if (!dim) {
    // One part is the whole, or all are empty: any dimension that can hold the
    // sizes is right. Take the first of positive extent, else the first.
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
  Extents starts, sizes;
  part = region;
  for (auto [made, first, size, child] :
       llvm::zip(boxes, firsts, node.sizes, node.children)) {
    part.start[node.dim] = region.start[node.dim] + first;
    part.size[node.dim] = size;
    if (part.empty()) {
      made = box;
      made.size[*dim] = 0;
    }
    starts.push_back(made.start[*dim] - box.start[*dim]);
    sizes.push_back(made.size[*dim]);
    std::optional<Node> converted = changeView(child, part, made, from, to);
    if (!converted)
      return std::nullopt;
    children.push_back(std::move(*converted));
  }
  if (node.starts.empty())
    starts.clear();
  return Node::windows(*dim, starts, sizes, std::move(children));
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
      copy.starts = node.starts;
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

/// Merges directly nested nodes of the same kind: split in split of one
/// dimension, and so on.
static Node mergeNested(const Node &node) {
  if (node.isLeaf())
    return node;
  Node merged;
  merged.kind = node.kind;
  merged.dim = node.dim;
  merged.reduction = node.reduction;
  for (auto [i, child] : llvm::enumerate(node.children)) {
    Node made = mergeNested(child);
    bool hasWindows = !node.starts.empty() || !made.starts.empty();
    if (made.kind == merged.kind && made.dim == merged.dim && !hasWindows) {
      merged.sizes.append(made.sizes);
      llvm::append_range(merged.children, std::move(made.children));
      continue;
    }
    if (node.kind == Kind::Split) {
      merged.sizes.push_back(node.sizes[i]);
      if (!node.starts.empty())
        merged.starts.push_back(node.starts[i]);
    }
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
