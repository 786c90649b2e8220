//===- GroupGather.cpp - An all-gather without its shapes -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Placement/GroupGather.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace whale;
using Node = PlacementNode;

/// Reads what one group gathers or scatters, as the only one of the result:
/// `parts` has a part of it in each member, `whole` all of it.
static std::optional<GroupGather> readGroup(llvm::ArrayRef<DeviceId> devices,
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
  GroupGather gather;
  auto members = llvm::make_second_range(byStart);
  gather.groups.emplace_back(members.begin(), members.end());
  if (gather.members() != count)
    return std::nullopt;
  llvm::ArrayRef<int64_t> extents = all->size;
  llvm::append_range(gather.before, extents.take_front(*cut));
  llvm::append_range(gather.after, extents.drop_front(*cut + 1));
  gather.part = extents[*cut] / count;
  return gather;
}

std::optional<GroupGather> GroupGather::of(const Step &step,
                                           const Topology &topology) {
  bool gathers = step.kind == StepKind::AllGather;
  assert((gathers || step.kind == StepKind::ReduceScatter) &&
         "another collective");
  const Placement &parts = gathers ? step.from : step.to,
                  &whole = gathers ? step.to : step.from;
  if (parts.view() != whole.view())
    return std::nullopt;
  std::optional<GroupGather> result;
  llvm::DenseSet<DeviceId> grouped;
  for (llvm::ArrayRef<DeviceId> devices : whale::groups(step, topology)) {
    std::optional<GroupGather> group = readGroup(devices, parts, whole);
    if (!group)
      return std::nullopt;
    grouped.insert_range(devices);
    if (!result) {
      result = std::move(group);
      continue;
    }
    if (group->members() != result->members() ||
        group->before != result->before || group->after != result->after ||
        group->part != result->part)
      return std::nullopt;
    result->groups.push_back(std::move(group->groups.front()));
  }
  auto isGrouped = [&](DeviceId device) { return grouped.contains(device); };
  if (!result || !llvm::all_of(parts.devices(), isGrouped) ||
      !llvm::all_of(whole.devices(), isGrouped))
    return std::nullopt;
  result->kind = step.kind;
  result->reduction = step.from.reduction().value_or(Reduction::Sum);
  return result;
}

Step GroupGather::asStep(int64_t elements) const {
  Extents parts(members(), elements),
      wholes(groups.size(), elements * members());
  int64_t all = elements * members() * int64_t(groups.size());
  auto place = [&](llvm::function_ref<Node(llvm::ArrayRef<DeviceId>)> make) {
    std::vector<Node> nodes;
    for (llvm::ArrayRef<DeviceId> group : groups)
      nodes.push_back(make(group));
    return Placement::get({all}, nodes.size() == 1
                                     ? std::move(nodes.front())
                                     : Node::split(0, wholes, nodes));
  };
  Placement divided = place([&](llvm::ArrayRef<DeviceId> group) {
    return Node::split(0, parts, group);
  });
  Placement whole = place([&](llvm::ArrayRef<DeviceId> group) {
    return kind == StepKind::AllGather ? Node::replicate(group)
                                       : Node::partial(reduction, group);
  });
  if (kind == StepKind::AllGather)
    return {kind, std::move(divided), std::move(whole)};
  return {kind, std::move(whole), std::move(divided)};
}
