//===- DivideByNode.cpp - Gathering and scattering by node ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the value of each group the dimension that is cut becomes three: nodes,
// members of a node, and a part. Groups are side by side in a dimension in
// front of all.
//
//===----------------------------------------------------------------------===//

#include "whale/Placement/DivideByNode.h"

#include "llvm/ADT/DenseSet.h"

#include <map>
#include <numeric>

using namespace whale;

namespace {
using Node = PlacementNode;

/// A group's members in the order of their parts, and what they are parts of.
struct GatherGroup {
  std::vector<DeviceId> members;
  /// The extents in front of the dimension that is cut, and behind it.
  Extents before, after;
  int64_t part = 1, nodes = 1;

  int64_t inNode() const { return int64_t(members.size()) / nodes; }
  bool isLike(const GatherGroup &other) const {
    return members.size() == other.members.size() && before == other.before &&
           after == other.after && part == other.part && nodes == other.nodes;
  }
  /// Of `groups` such groups, with so many members of a node.
  Extents view(int64_t groups, int64_t places) const {
    Extents result = {groups};
    llvm::append_range(result, before);
    llvm::append_range(result, Extents{nodes, places, part});
    llvm::append_range(result, after);
    return result;
  }
  int64_t nodesDim() const { return 1 + int64_t(before.size()); }
  int64_t placesDim() const { return 2 + int64_t(before.size()); }
};
} // namespace

/// Reads what one group gathers or scatters: `parts` has a part of it in each
/// member, `whole` all of it.
static std::optional<GatherGroup> readGroup(llvm::ArrayRef<DeviceId> devices,
                                            const Placement &parts,
                                            const Placement &whole) {
  std::optional<Box> all = whole.box(devices.front());
  if (!all || all->empty())
    return std::nullopt;
  auto count = int64_t(devices.size());
  std::optional<size_t> cut;
  std::map<int64_t, DeviceId> byStart;
  for (DeviceId device : devices) {
    std::optional<Box> box = parts.box(device);
    if (!box || whole.box(device) != all)
      return std::nullopt;
    for (size_t dim = 0; dim < box->size.size(); ++dim)
      if (box->size[dim] != all->size[dim]) {
        if (cut.value_or(dim) != dim ||
            box->size[dim] * count != all->size[dim])
          return std::nullopt;
        cut = dim;
      } else if (box->start[dim] != all->start[dim]) {
        return std::nullopt;
      }
    if (!cut)
      return std::nullopt;
    byStart[box->start[*cut]] = device;
  }
  GatherGroup group;
  for (auto [start, device] : byStart)
    group.members.push_back(device);
  if (int64_t(group.members.size()) != count)
    return std::nullopt;
  llvm::ArrayRef<int64_t> extents = all->size;
  llvm::append_range(group.before, extents.take_front(*cut));
  llvm::append_range(group.after, extents.drop_front(*cut + 1));
  group.part = extents[*cut] / count;
  return group;
}

/// Finds out of how many nodes the members are. False unless those of a node
/// follow one another, equally many of each and more than one.
static bool findNodes(GatherGroup &group, const Topology &topology) {
  llvm::DenseSet<unsigned> seen;
  std::vector<int64_t> counts;
  std::optional<unsigned> last;
  for (DeviceId device : group.members) {
    unsigned node = topology.nodeOf(device);
    if (node != last) {
      if (!seen.insert(node).second)
        return false;
      counts.push_back(0);
    }
    ++counts.back();
    last = node;
  }
  group.nodes = int64_t(counts.size());
  return group.nodes > 1 && counts.front() > 1 && llvm::all_equal(counts);
}

/// Places what each group has, which `make` says of its members.
static Placement place(llvm::ArrayRef<GatherGroup> groups,
                       llvm::function_ref<Node(const GatherGroup &)> make) {
  const GatherGroup &first = groups.front();
  std::vector<Node> nodes;
  for (const GatherGroup &group : groups)
    nodes.push_back(make(group));
  Extents view = first.view(int64_t(groups.size()), first.inNode());
  if (nodes.size() == 1)
    return Placement::get(view, std::move(nodes.front()));
  Extents sizes(nodes.size(), 1);
  return Placement::get(view, Node::split(0, sizes, std::move(nodes)));
}

/// Those with the same place in their nodes, by place.
static std::vector<std::vector<DeviceId>> matesOf(const GatherGroup &group) {
  std::vector<std::vector<DeviceId>> mates(group.inNode());
  for (size_t i = 0; i < group.members.size(); ++i)
    mates[i % mates.size()].push_back(group.members[i]);
  return mates;
}

/// By node.
static std::vector<std::vector<DeviceId>> nodesOf(const GatherGroup &group) {
  std::vector<std::vector<DeviceId>> nodes(group.nodes);
  for (size_t i = 0; i < group.members.size(); ++i)
    nodes[i / group.inNode()].push_back(group.members[i]);
  return nodes;
}

std::optional<NodeDivision> whale::divideByNode(const Step &step,
                                                const Topology &topology) {
  bool gathers = step.kind == StepKind::AllGather;
  assert((gathers || step.kind == StepKind::ReduceScatter) &&
         "another collective");
  const Placement &parts = gathers ? step.from : step.to,
                  &whole = gathers ? step.to : step.from;
  if (parts.view() != whole.view())
    return std::nullopt;
  std::vector<GatherGroup> groups;
  llvm::DenseSet<DeviceId> grouped;
  for (llvm::ArrayRef<DeviceId> devices : whale::groups(step, topology)) {
    std::optional<GatherGroup> group = readGroup(devices, parts, whole);
    if (!group || !findNodes(*group, topology) ||
        (!groups.empty() && !group->isLike(groups.front())))
      return std::nullopt;
    groups.push_back(std::move(*group));
    grouped.insert_range(devices);
  }
  auto isGrouped = [&](DeviceId device) { return grouped.contains(device); };
  if (groups.empty() || !llvm::all_of(parts.devices(), isGrouped) ||
      !llvm::all_of(whole.devices(), isGrouped))
    return std::nullopt;

  const GatherGroup &first = groups.front();
  Extents ones(first.inNode(), 1), nodeOnes(first.nodes, 1);
  Placement divided = place(groups, [&](const GatherGroup &group) {
    std::vector<Node> nodes;
    for (const std::vector<DeviceId> &members : nodesOf(group))
      nodes.push_back(Node::split(group.placesDim(), ones, members));
    return Node::split(group.nodesDim(), nodeOnes, std::move(nodes));
  });
  if (gathers) {
    Placement between = place(groups, [&](const GatherGroup &group) {
      std::vector<Node> places;
      for (const std::vector<DeviceId> &mates : matesOf(group))
        places.push_back(Node::replicate(mates));
      return Node::split(group.placesDim(), ones, std::move(places));
    });
    Placement all = place(groups, [](const GatherGroup &group) {
      return Node::replicate(group.members);
    });
    return NodeDivision{{StepKind::AllGather, divided, between},
                        {StepKind::AllGather, between, all},
                        first.view(1, 1)};
  }
  Reduction reduction = step.from.reduction().value_or(Reduction::Sum);
  Placement all = place(groups, [&](const GatherGroup &group) {
    return Node::partial(reduction, group.members);
  });
  Placement between = place(groups, [&](const GatherGroup &group) {
    std::vector<Node> nodes;
    for (const std::vector<DeviceId> &members : nodesOf(group))
      nodes.push_back(Node::split(group.placesDim(), ones, members));
    return Node::partial(reduction, std::move(nodes));
  });
  return NodeDivision{{StepKind::ReduceScatter, all, between},
                      {StepKind::ReduceScatter, between, divided},
                      first.view(1, 1)};
}
