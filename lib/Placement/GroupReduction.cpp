//===- GroupReduction.cpp - An all-reduce without its shapes --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Placement/GroupReduction.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include <map>
#include <numeric>

using namespace whale;

std::optional<GroupReduction> GroupReduction::of(const Step &step,
                                                 const Topology &topology) {
  assert(step.kind == StepKind::AllReduce && "no all-reduce");
  GroupReduction result;
  result.reduction = step.from.reduction().value_or(Reduction::Sum);
  result.groups = whale::groups(step, topology);
  llvm::DenseSet<DeviceId> grouped;
  for (llvm::ArrayRef<DeviceId> group : result.groups) {
    grouped.insert_range(group);
    result.elements.push_back(step.from.box(group.front())->volume());
    if (result.elements.back() == 0)
      return std::nullopt;
  }
  for (const Placement *side : {&step.from, &step.to})
    if (!llvm::all_of(side->devices(), [&](DeviceId device) {
          return grouped.contains(device);
        }))
      return std::nullopt;
  return result;
}

/// The placement whose part for each group is `make(group, elements)`.
Placement GroupReduction::place(
    llvm::function_ref<Node(llvm::ArrayRef<DeviceId>, int64_t)> make) const {
  std::vector<Node> parts;
  for (auto [group, count] : llvm::zip_equal(groups, elements))
    parts.push_back(make(group, count));
  int64_t all = std::accumulate(elements.begin(), elements.end(), int64_t(0));
  return Placement::get({all}, parts.size() == 1
                                   ? std::move(parts.front())
                                   : Node::split(0, elements, parts));
}

Step GroupReduction::asStep() const {
  return {StepKind::AllReduce,
          place([&](llvm::ArrayRef<DeviceId> group, int64_t) {
            return Node::partial(reduction, group);
          }),
          place([](llvm::ArrayRef<DeviceId> group, int64_t) {
            return Node::replicate(group);
          })};
}

/// The members of a group in each node, in the order of the nodes.
static std::vector<llvm::SmallVector<DeviceId>>
splitByNode(llvm::ArrayRef<DeviceId> group, const Topology &topology) {
  std::map<unsigned, llvm::SmallVector<DeviceId>> nodes;
  for (DeviceId device : group)
    nodes[topology.nodeOf(device)].push_back(device);
  auto range = llvm::make_second_range(nodes);
  return {range.begin(), range.end()};
}

std::optional<int64_t>
GroupReduction::membersByNode(const Topology &topology) const {
  std::optional<int64_t> count;
  for (llvm::ArrayRef<DeviceId> group : groups) {
    auto nodes = splitByNode(group, topology);
    if (nodes.size() < 2)
      return std::nullopt;
    for (llvm::ArrayRef<DeviceId> members : nodes)
      if (int64_t(members.size()) != count.value_or(members.size()))
        return std::nullopt;
      else
        count = members.size();
  }
  return count && *count > 1 ? count : std::nullopt;
}

std::vector<Step> GroupReduction::divideByNode(const Topology &topology) const {
  int64_t count = *membersByNode(topology);
  auto partsOf = [&](int64_t all) {
    assert(all % count == 0 && "parts must be equal");
    return Extents(count, all / count);
  };
  Placement scattered = place([&](llvm::ArrayRef<DeviceId> group, int64_t all) {
    std::vector<Node> nodes;
    for (llvm::ArrayRef<DeviceId> members : splitByNode(group, topology))
      nodes.push_back(Node::split(0, partsOf(all), members));
    return Node::partial(reduction, std::move(nodes));
  });
  Placement reduced = place([&](llvm::ArrayRef<DeviceId> group, int64_t all) {
    auto nodes = splitByNode(group, topology);
    std::vector<Node> parts;
    for (int64_t i = 0; i < count; ++i) {
      llvm::SmallVector<DeviceId> owners;
      for (llvm::ArrayRef<DeviceId> members : nodes)
        owners.push_back(members[i]);
      parts.push_back(Node::replicate(owners));
    }
    return Node::split(0, partsOf(all), std::move(parts));
  });
  Step whole = asStep();
  return {{StepKind::ReduceScatter, whole.from, scattered},
          {StepKind::AllReduce, scattered, reduced},
          {StepKind::AllGather, reduced, whole.to}};
}
