//===- TrafficGroups.cpp - Collectives by their traffic -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recognizes collectives by which devices exchange elements, for values that
// stay partial or whose two sides have no common view. Devices that exchange
// elements, directly or through others, are a group; every group must be the
// same collective.
//
//===----------------------------------------------------------------------===//

#include "CoverBoxes.h"
#include "Flow.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace whale;
using Group = SmallVector<DeviceId>;

namespace {
/// The boxes that a group of devices that exchange elements holds before and
/// after, and the least and greatest number of contributions to their cells.
struct Traffic {
  Group group;
  SmallVector<const Box *> before, after;
  size_t fewestTerms = ~size_t(0), mostTerms = 0;
};
} // namespace

static bool areAlike(ArrayRef<const Box *> boxes) {
  return llvm::all_of(boxes,
                      [&](const Box *box) { return *box == *boxes.front(); });
}

/// Returns the collective that a group alone performs.
static std::optional<StepKind> kindOf(const Traffic &traffic) {
  const auto &[group, before, after, fewest, most] = traffic;
  if (fewest != most)
    return std::nullopt;
  if (most == group.size() && areAlike(before)) {
    if (areAlike(after) && *after.front() == *before.front())
      return StepKind::AllReduce;
    if (tiles(after, *before.front()))
      return StepKind::ReduceScatter;
  } else if (most == 1) {
    if (areAlike(after) && tiles(before, *after.front()))
      return StepKind::AllGather;
    if (coverAlike(before, after))
      return StepKind::AllToAll;
  }
  return std::nullopt;
}

/// Matches steps in which nothing moves between devices.
static Match matchLocal(const Flow &flow, const CellTable &table) {
  if (flow.from.isPartial() && !flow.to.isPartial())
    return {};
  for (const Receiver &receiver : table.receivers)
    for (const Cell &cell : receiver.cells)
      if (cell.contributions.size() > 1)
        return {};
  return {StepKind::LocalSlice, {}};
}

/// Returns the devices that exchange elements with `first`, directly or through
/// others; nullopt if the devices that hold the elements before are not those
/// that hold them after.
static std::optional<Traffic>
findTraffic(const Flow &flow, const CellTable &table,
            const EquivalenceClasses<DeviceId> &classes, DeviceId first) {
  Traffic traffic;
  for (const Shard &shard : flow.from.shards())
    if (classes.isEquivalent(first, shard.device)) {
      traffic.group.push_back(shard.device);
      traffic.before.push_back(&shard.box);
    }
  for (auto [shard, receiver] : llvm::zip(flow.to.shards(), table.receivers)) {
    if (!classes.isEquivalent(first, shard.device))
      continue;
    if (!llvm::is_contained(traffic.group, shard.device))
      return std::nullopt;
    traffic.after.push_back(&shard.box);
    for (const Cell &cell : receiver.cells) {
      size_t terms = cell.contributions.size();
      traffic.fewestTerms = std::min(traffic.fewestTerms, terms);
      traffic.mostTerms = std::max(traffic.mostTerms, terms);
    }
  }
  if (traffic.after.size() != traffic.group.size())
    return std::nullopt;
  return traffic;
}

Match whale::matchTraffic(const Flow &flow, const Topology &topology) {
  if (isTableLarge(flow))
    return {};
  CellTable table = buildTable(flow, topology, {}, StepKind::SendRecv);
  EquivalenceClasses<DeviceId> classes;
  for (const Receiver &receiver : table.receivers)
    for (const Cell &cell : receiver.cells)
      for (const Contribution &contribution : cell.contributions)
        if (contribution.peer != receiver.device)
          classes.unionSets(contribution.peer, receiver.device);
  if (classes.empty())
    return matchLocal(flow, table);
  if (flow.flat)
    return {};
  Match match;
  DenseSet<DeviceId> grouped;
  for (const Shard &shard : flow.from.shards()) {
    if (classes.findLeader(shard.device) == classes.member_end() ||
        grouped.contains(shard.device))
      continue;
    auto traffic = findTraffic(flow, table, classes, shard.device);
    if (!traffic)
      return {};
    std::optional<StepKind> kind = kindOf(*traffic);
    if (!kind || (!match.groups.empty() && match.kind != *kind))
      return {};
    match.kind = *kind;
    grouped.insert_range(traffic->group);
    match.groups.push_back(std::move(traffic->group));
  }
  return match;
}
