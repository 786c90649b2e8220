//===- RelayoutTest.cpp - The runtime's tables are the resolver's ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Relayout.h"
#include "../Placement/RandomPlacement.h"
#include "whale/Placement/Oracle.h"
#include "gtest/gtest.h"

#include <map>
#include <numeric>

using namespace llvm;
using namespace whale;

namespace {

std::vector<int64_t> listOf(ArrayRef<int64_t> list) {
  return std::vector<int64_t>(list.begin(), list.end());
}

Extents extentsOf(const std::vector<int64_t> &list) {
  return Extents(ArrayRef(list));
}

/// Which part each of so many ranks holds.
format::Layout layoutOf(const Placement &placement, int64_t ranks) {
  format::Layout layout{listOf(placement.view()), {}};
  layout.boxes.resize(ranks);
  for (const Shard &shard : placement.shards())
    layout.boxes[shard.device] =
        format::Box{listOf(shard.box.start), listOf(shard.box.size)};
  return layout;
}

/// The table of one batch of messages, by what the runtime decides.
CellTable tableOf(const Placement &from, const Placement &to, int64_t ranks,
                  const std::vector<int64_t> &processOf,
                  const Topology &hosts) {
  format::Collective relayout =
      format::relayoutOf(format::DType::F32, layoutOf(from, ranks),
                         layoutOf(to, ranks), processOf, hosts);
  CellTable table;
  for (const Shard &shard : from.shards())
    table.senders.push_back(
        {shard.device, extentsOf(relayout.srcShapes.at(shard.device))});
  for (const Shard &shard : to.shards()) {
    Receiver receiver{
        shard.device, extentsOf(relayout.dstShapes.at(shard.device)), {}};
    for (const format::Cell &cell : *relayout.cells.at(shard.device)) {
      Cell same{{extentsOf(cell.dstStart), extentsOf(cell.size)}, {}};
      for (const format::Cell::Contribution &part : cell.from)
        same.contributions.push_back({part.peer, extentsOf(part.start)});
      receiver.cells.push_back(std::move(same));
    }
    table.receivers.push_back(std::move(receiver));
  }
  return table;
}

TEST(Relayout, TablesAreThoseOfTheResolver) {
  int moved = 0;
  for (int i = 0; i != 10000; ++i) {
    RandomPlacement random(3000000 + i);
    int64_t ranks = 1 + random.below(8);
    Extents shape = random.shape(), view = random.view(shape);
    auto draw = [&] {
      SmallVector<DeviceId> devices = random.devices(ranks);
      // The runtime goes through the receivers by rank, a table by leaf.
      llvm::sort(devices);
      return random.placement(view, devices, /*mayBePartial=*/false,
                              Reduction::Sum);
    };
    Placement from = draw(), to = draw();
    if (random.chance(15))
      to = random.windows(to);
    Topology hosts;
    for (int64_t rank = 0; rank != ranks; ++rank)
      hosts.node.push_back(rank * 2 / ranks);
    // Each rank is a process: a batch of messages has no groups.
    std::vector<int64_t> processOf(ranks);
    std::iota(processOf.begin(), processOf.end(), 0);
    Step step{StepKind::SendRecv, from, to};
    CellTable own = tableOf(from, to, ranks, processOf, hosts);
    std::string names = from.str() + " -> " + to.str();
    ASSERT_EQ(own, cells(step, hosts)) << "case " << i << ": " << names;
    ASSERT_EQ(verifyTable(step, own), std::nullopt) << names;

    // As many elements as what is resolved moves, perhaps by collectives.
    std::map<DeviceId, int64_t> received;
    for (const Step &each : resolve(shape, from, to, hosts)) {
      CellTable table = cells(each, hosts);
      for (DeviceId device : to.devices())
        received[device] += table.elementsReceived(device);
    }
    for (DeviceId device : to.devices()) {
      ASSERT_EQ(own.elementsReceived(device), received[device]) << names;
      moved += received[device] != 0;
    }
  }
  EXPECT_GE(moved, 10000);
}

/// What several hold comes from the same process, else from the same host, and
/// as much from each of those.
TEST(Relayout, NearerOwnersGiveMore) {
  // Ranks 0 to 5 have everything; 6 and 7 want it in two parts.
  format::Layout from = format::Layout::whole({8}), to = from;
  from.boxes.assign(8, format::Box::whole({8}));
  from.boxes[6] = from.boxes[7] = std::nullopt;
  to.boxes.assign(8, std::nullopt);
  to.boxes[6] = format::Box{{0}, {4}};
  to.boxes[7] = format::Box{{4}, {4}};
  auto owners = [&](const std::vector<int64_t> &processOf,
                    std::vector<unsigned> hostOf) {
    Topology hosts;
    hosts.node = std::move(hostOf);
    format::Collective relayout =
        format::relayoutOf(format::DType::F32, from, to, processOf, hosts);
    std::vector<int64_t> result;
    for (int64_t rank : {6, 7})
      for (const format::Cell &cell : *relayout.cells.at(rank))
        result.push_back(cell.from.front().peer);
    return result;
  };
  std::vector<int64_t> apart = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<int64_t> pairs = {0, 0, 1, 1, 2, 2, 2, 3};
  std::vector<unsigned> one(8, 0), two = {0, 0, 0, 1, 1, 1, 1, 1};
  using Owners = std::vector<int64_t>;
  EXPECT_EQ(owners(apart, one), (Owners{0, 1}));
  EXPECT_EQ(owners(apart, two), (Owners{3, 4}));
  EXPECT_EQ(owners(pairs, one), (Owners{4, 0}));
  EXPECT_EQ(owners(pairs, two), (Owners{4, 3}));
}

} // namespace
