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
#include "whale/Placement/GroupGather.h"

#include "llvm/ADT/DenseSet.h"

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
  std::optional<GroupGather> gather = GroupGather::of(step, topology);
  if (!gather)
    return std::nullopt;
  std::vector<GatherGroup> groups;
  for (const std::vector<DeviceId> &members : gather->groups) {
    GatherGroup &group = groups.emplace_back(
        GatherGroup{members, gather->before, gather->after, gather->part});
    if (!findNodes(group, topology) || group.nodes != groups.front().nodes)
      return std::nullopt;
  }

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
  Placement all = place(groups, [&](const GatherGroup &group) {
    return Node::partial(gather->reduction, group.members);
  });
  Placement between = place(groups, [&](const GatherGroup &group) {
    std::vector<Node> nodes;
    for (const std::vector<DeviceId> &members : nodesOf(group))
      nodes.push_back(Node::split(group.placesDim(), ones, members));
    return Node::partial(gather->reduction, std::move(nodes));
  });
  return NodeDivision{{StepKind::ReduceScatter, all, between},
                      {StepKind::ReduceScatter, between, divided},
                      first.view(1, 1)};
}
