//===- DivideByNode.cpp - Gathering and scattering by node ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the value of each group a dimension that is cut becomes three: nodes,
// members of a node, and a part. Groups are side by side in a dimension in
// front of all.
//
// An all-to-all first brings together in each node, on the device of the same
// place as theirs, what the node has for the devices of a place in all nodes;
// then devices of a place exchange that.
//
//===----------------------------------------------------------------------===//

#include "whale/Placement/DivideByNode.h"
#include "whale/Placement/GroupGather.h"

#include "llvm/ADT/DenseSet.h"

#include <map>

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

/// Finds out of how many nodes members are. nullopt unless those of a node
/// follow one another, equally many of each and more than one.
static std::optional<int64_t> countNodes(llvm::ArrayRef<DeviceId> members,
                                         const Topology &topology) {
  llvm::DenseSet<unsigned> seen;
  std::vector<int64_t> counts;
  std::optional<unsigned> last;
  for (DeviceId device : members) {
    unsigned node = topology.nodeOf(device);
    if (node != last) {
      if (!seen.insert(node).second)
        return std::nullopt;
      counts.push_back(0);
    }
    ++counts.back();
    last = node;
  }
  if (counts.size() < 2 || counts.front() < 2 || !llvm::all_equal(counts))
    return std::nullopt;
  return int64_t(counts.size());
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

/// By node, of which there are so many.
static std::vector<std::vector<DeviceId>>
nodesOf(llvm::ArrayRef<DeviceId> members, int64_t count) {
  std::vector<std::vector<DeviceId>> nodes(count);
  size_t inNode = members.size() / count;
  for (size_t i = 0; i < members.size(); ++i)
    nodes[i / inNode].push_back(members[i]);
  return nodes;
}

//===----------------------------------------------------------------------===//
// Exchanging
//===----------------------------------------------------------------------===//

namespace {
/// A group's members, in the order of their parts before and after, and what
/// they are parts of.
struct ExchangeGroup {
  std::vector<DeviceId> members;
  Extents extents;
  /// The dimensions that are cut before and after.
  size_t from = 0, to = 0;
  int64_t nodes = 1;

  bool isLike(const ExchangeGroup &other) const {
    return members.size() == other.members.size() && extents == other.extents &&
           from == other.from && to == other.to && nodes == other.nodes;
  }
  int64_t inNode() const { return int64_t(members.size()) / nodes; }
  /// The dimensions of the nodes among which one is cut, in the view; that of
  /// the members in a node is the next one.
  int64_t dimOf(size_t cut) const {
    return 1 + int64_t(cut) + 2 * int64_t(cut > std::min(from, to));
  }
  /// Of `groups` such groups, or of what a device holds between the two steps.
  Extents view(int64_t groups, bool held = false) const {
    Extents result = {groups};
    auto count = int64_t(members.size());
    for (size_t dim = 0; dim < extents.size(); ++dim) {
      if (dim == from)
        llvm::append_range(
            result, Extents{held ? 1 : nodes, inNode(), extents[dim] / count});
      else if (dim == to)
        llvm::append_range(
            result, Extents{nodes, held ? 1 : inNode(), extents[dim] / count});
      else
        result.push_back(extents[dim]);
    }
    return result;
  }
};
} // namespace

/// Finds the one dimension in which boxes of equal size are side by side and
/// fill `extents`, from `start` on, and the device of each in order.
static std::optional<size_t> findCut(llvm::ArrayRef<DeviceId> devices,
                                     const Placement &placement,
                                     llvm::ArrayRef<int64_t> start,
                                     llvm::ArrayRef<int64_t> extents,
                                     std::vector<DeviceId> &members) {
  auto count = int64_t(devices.size());
  std::optional<size_t> cut;
  std::map<int64_t, DeviceId> byStart;
  for (DeviceId device : devices) {
    std::optional<Box> box = placement.box(device);
    if (!box)
      return std::nullopt;
    for (size_t dim = 0; dim < extents.size(); ++dim) {
      if (box->start[dim] == start[dim] && box->size[dim] == extents[dim])
        continue;
      if (cut.value_or(dim) != dim || box->size[dim] * count != extents[dim])
        return std::nullopt;
      cut = dim;
    }
    if (!cut)
      return std::nullopt;
    byStart[box->start[*cut]] = device;
  }
  auto ordered = llvm::make_second_range(byStart);
  members.assign(ordered.begin(), ordered.end());
  return int64_t(members.size()) == count ? cut : std::nullopt;
}

/// Reads what one group exchanges.
static std::optional<ExchangeGroup>
readExchange(llvm::ArrayRef<DeviceId> devices, const Step &step,
             const Topology &topology) {
  std::optional<Box> all = step.from.box(devices.front());
  if (!all)
    return std::nullopt;
  Extents end = all->start;
  for (size_t dim = 0; dim < end.size(); ++dim)
    end[dim] += all->size[dim];
  for (DeviceId device : devices.drop_front()) {
    std::optional<Box> box = step.from.box(device);
    if (!box)
      return std::nullopt;
    for (size_t dim = 0; dim < end.size(); ++dim) {
      end[dim] = std::max(end[dim], box->start[dim] + box->size[dim]);
      all->start[dim] = std::min(all->start[dim], box->start[dim]);
    }
  }
  ExchangeGroup group;
  for (size_t dim = 0; dim < end.size(); ++dim)
    group.extents.push_back(end[dim] - all->start[dim]);
  if (volumeOf(group.extents) == 0)
    return std::nullopt;
  std::vector<DeviceId> after;
  std::optional<size_t> from = findCut(devices, step.from, all->start,
                                       group.extents, group.members),
                        to = findCut(devices, step.to, all->start,
                                     group.extents, after);
  if (!from || !to || from == to || group.members != after)
    return std::nullopt;
  std::optional<int64_t> nodes = countNodes(group.members, topology);
  if (!nodes)
    return std::nullopt;
  group.from = *from;
  group.to = *to;
  group.nodes = *nodes;
  return group;
}

static std::optional<NodeDivision> divideExchange(const Step &step,
                                                  const Topology &topology) {
  if (step.from.view() != step.to.view())
    return std::nullopt;
  std::vector<ExchangeGroup> all;
  llvm::DenseSet<DeviceId> grouped;
  for (llvm::ArrayRef<DeviceId> devices : whale::groups(step, topology)) {
    std::optional<ExchangeGroup> group = readExchange(devices, step, topology);
    if (!group || (!all.empty() && !group->isLike(all.front())))
      return std::nullopt;
    all.push_back(std::move(*group));
    grouped.insert_range(devices);
  }
  auto isGrouped = [&](DeviceId device) { return grouped.contains(device); };
  if (all.empty() || !llvm::all_of(step.from.devices(), isGrouped) ||
      !llvm::all_of(step.to.devices(), isGrouped))
    return std::nullopt;
  const ExchangeGroup &first = all.front();
  Extents view = first.view(int64_t(all.size()));
  Extents nodeOnes(first.nodes, 1), ones(first.inNode(), 1),
      groupOnes(all.size(), 1);
  // Nodes have parts of one dimension, and their members of another.
  auto place = [&](int64_t byNode, int64_t inNode) {
    std::vector<Node> roots;
    for (const ExchangeGroup &group : all) {
      std::vector<Node> nodes;
      for (const std::vector<DeviceId> &members :
           nodesOf(group.members, group.nodes))
        nodes.push_back(Node::split(inNode, ones, members));
      roots.push_back(Node::split(byNode, nodeOnes, std::move(nodes)));
    }
    return Placement::get(view, roots.size() == 1
                                    ? std::move(roots.front())
                                    : Node::split(0, groupOnes, roots));
  };
  int64_t from = first.dimOf(first.from), to = first.dimOf(first.to);
  Placement between = place(from, to + 1);
  return NodeDivision{{StepKind::AllToAll, place(from, from + 1), between},
                      {StepKind::AllToAll, between, place(to, to + 1)},
                      first.view(1, /*held=*/true)};
}

//===----------------------------------------------------------------------===//
// Gathering and scattering parts of different sizes
//===----------------------------------------------------------------------===//

/// Finds the one dimension along which parts of any size are side by side and
/// make the whole, and the device of each in order.
static std::optional<size_t> findUnevenCut(const Placement &parts,
                                           std::vector<DeviceId> &members) {
  llvm::ArrayRef<int64_t> view = parts.view();
  std::optional<size_t> cut;
  std::map<int64_t, const Shard *> byStart;
  for (const Shard &shard : parts.shards()) {
    for (size_t dim = 0; dim < view.size(); ++dim) {
      if (shard.box.start[dim] == 0 && shard.box.size[dim] == view[dim])
        continue;
      if (cut.value_or(dim) != dim)
        return std::nullopt;
      cut = dim;
    }
    if (!cut || shard.box.empty() ||
        !byStart.try_emplace(shard.box.start[*cut], &shard).second)
      return std::nullopt;
  }
  int64_t end = 0;
  for (auto [start, shard] : byStart) {
    if (start != end)
      return std::nullopt;
    end += shard->box.size[*cut];
    members.push_back(shard->device);
  }
  return end == view[*cut] ? cut : std::nullopt;
}

/// Whether all devices have the whole value, or terms of it.
static bool isWhole(const Placement &placement) {
  Placement canonical = placement.canonical();
  const Node &root = canonical.root();
  return (root.kind == Node::Kind::Replicate ||
          root.kind == Node::Kind::Partial) &&
         llvm::all_of(root.children,
                      [](const Node &child) { return child.isLeaf(); });
}

/// Of devices in nodes that are unlike, parts that are gathered by place are in
/// no box. So each device of a node takes an equal part of the whole from
/// wherever it is, and its node puts these together; or its node adds up its
/// terms of such a part, and all take what they want of the sums.
static std::optional<NodeDivision> divideUneven(const Step &step,
                                                const Topology &topology) {
  bool gathers = step.kind == StepKind::AllGather;
  const Placement &parts = gathers ? step.from : step.to;
  const Placement &whole = gathers ? step.to : step.from;
  std::vector<DeviceId> members;
  if (parts.view() != whole.view() || parts.isPartial() || !isWhole(whole) ||
      whole.isPartial() == gathers || whole.devices().size() < 2)
    return std::nullopt;
  std::optional<size_t> cut = findUnevenCut(parts, members);
  std::optional<int64_t> nodes =
      cut ? countNodes(members, topology) : std::nullopt;
  if (!nodes || members.size() != whole.devices().size() ||
      !llvm::all_of(members,
                    [&](DeviceId device) { return whole.contains(device); }))
    return std::nullopt;
  auto inNode = int64_t(members.size()) / *nodes;
  Extents shape(parts.view());
  if (shape[*cut] % inNode != 0)
    return std::nullopt;
  shape[*cut] /= inNode;
  Extents sizes(inNode, shape[*cut]);
  std::vector<Node> byNode;
  for (const std::vector<DeviceId> &own : nodesOf(members, *nodes))
    byNode.push_back(Node::split(int64_t(*cut), sizes, own));
  Placement between =
      Placement::get(parts.view(), gathers ? Node::replicate(std::move(byNode))
                                           : Node::partial(*whole.reduction(),
                                                           std::move(byNode)));
  auto stepOf = [&](const Placement &from, const Placement &to) {
    return Step{classify(from, to, topology), from, to};
  };
  return NodeDivision{stepOf(step.from, between), stepOf(between, step.to),
                      shape};
}

//===----------------------------------------------------------------------===//
// Gathering and scattering
//===----------------------------------------------------------------------===//

std::optional<NodeDivision> whale::divideByNode(const Step &step,
                                                const Topology &topology) {
  if (step.kind == StepKind::AllToAll)
    return divideExchange(step, topology);
  bool gathers = step.kind == StepKind::AllGather;
  std::optional<GroupGather> gather = GroupGather::of(step, topology);
  if (!gather)
    return divideUneven(step, topology);
  std::vector<GatherGroup> groups;
  for (const std::vector<DeviceId> &members : gather->groups) {
    GatherGroup &group = groups.emplace_back(
        GatherGroup{members, gather->before, gather->after, gather->part});
    std::optional<int64_t> nodes = countNodes(members, topology);
    if (!nodes || (groups.size() > 1 && *nodes != groups.front().nodes))
      return std::nullopt;
    group.nodes = *nodes;
  }

  const GatherGroup &first = groups.front();
  Extents ones(first.inNode(), 1), nodeOnes(first.nodes, 1);
  Placement divided = place(groups, [&](const GatherGroup &group) {
    std::vector<Node> nodes;
    for (const std::vector<DeviceId> &members :
         nodesOf(group.members, group.nodes))
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
    for (const std::vector<DeviceId> &members :
         nodesOf(group.members, group.nodes))
      nodes.push_back(Node::split(group.placesDim(), ones, members));
    return Node::partial(gather->reduction, std::move(nodes));
  });
  return NodeDivision{{StepKind::ReduceScatter, all, between},
                      {StepKind::ReduceScatter, between, divided},
                      first.view(1, 1)};
}
