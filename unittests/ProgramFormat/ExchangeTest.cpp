//===- ExchangeTest.cpp - Many arrays go to other layouts -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Exchange.h"
#include "../Placement/RandomPlacement.h"
#include "Elements.h"
#include "whale/Placement/Oracle.h"
#include "gtest/gtest.h"

#include <map>
#include <numeric>
#include <set>

using namespace llvm;
using namespace whale;
using whale::format::test::elementsOf;

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

/// Where an element is in a box, by its place in the shard.
Extents startOf(int64_t offset, const format::Box &box) {
  std::vector<int64_t> start(box.size.size());
  for (size_t d = box.size.size(); d-- > 0;) {
    start[d] = offset % box.size[d];
    offset /= box.size[d];
  }
  return extentsOf(start);
}

/// The table of one batch of messages, by what the runtime decides, where each
/// rank is a process.
CellTable tableOf(const Placement &from, const Placement &to, int64_t ranks,
                  const Topology &hosts) {
  format::Layout own = layoutOf(from, ranks), wanted = layoutOf(to, ranks);
  std::vector<int64_t> processOf(ranks);
  std::iota(processOf.begin(), processOf.end(), 0);
  format::Move move{4, own, wanted, processOf, processOf};
  std::vector<unsigned> hostOf;
  for (int64_t rank = 0; rank < ranks; ++rank)
    hostOf.push_back(hosts.nodeOf(rank));
  std::map<int64_t, Receiver> receivers;
  CellTable table;
  for (const Shard &shard : from.shards())
    table.senders.push_back(
        {shard.device, extentsOf(own.boxes[shard.device]->size)});
  for (const Shard &shard : to.shards())
    receivers.try_emplace(shard.device,
                          Receiver{shard.device,
                                   extentsOf(wanted.boxes[shard.device]->size),
                                   {}});
  for (const format::MovedPiece &piece :
       format::exchangeOf({&move, 1}, hostOf)) {
    auto owner = static_cast<int64_t>(piece.owner);
    receivers.at(piece.receiver)
        .cells.push_back(
            {{startOf(piece.toOffset, *wanted.boxes[piece.receiver]),
              extentsOf(piece.size)},
             {{owner, startOf(piece.fromOffset, *own.boxes[owner])}}});
  }
  for (const Shard &shard : to.shards())
    table.receivers.push_back(std::move(receivers.at(shard.device)));
  return table;
}

TEST(ExchangeTest, TablesAreThoseOfTheResolver) {
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
    // The resolver does not balance what hosts send.
    Topology hosts;
    Step step{StepKind::SendRecv, from, to};
    CellTable own = tableOf(from, to, ranks, hosts);
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
TEST(ExchangeTest, NearerOwnersGiveMore) {
  // Ranks 0 to 5 have everything; 6 and 7 want it in two parts.
  format::Layout from = format::Layout::whole({8}), to = from;
  from.boxes.assign(8, format::Box::whole({8}));
  from.boxes[6] = from.boxes[7] = std::nullopt;
  to.boxes.assign(8, std::nullopt);
  to.boxes[6] = format::Box{{0}, {4}};
  to.boxes[7] = format::Box{{4}, {4}};
  auto owners = [&](const std::vector<int64_t> &processOf,
                    const std::vector<unsigned> &hostOf) {
    format::Move move{4, from, to, processOf, processOf};
    std::vector<int64_t> result;
    for (const format::MovedPiece &piece :
         format::exchangeOf({&move, 1}, hostOf))
      result.push_back(static_cast<int64_t>(piece.owner));
    return result;
  };
  std::vector<int64_t> apart = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<int64_t> pairs = {0, 0, 1, 1, 2, 2, 2, 3};
  std::vector<unsigned> one(8, 0), two = {0, 0, 0, 1, 1, 1, 1, 1},
                                   halves = {0, 0, 1, 1};
  using Owners = std::vector<int64_t>;
  EXPECT_EQ(owners(apart, one), (Owners{0, 1}));
  EXPECT_EQ(owners(apart, two), (Owners{3, 4}));
  EXPECT_EQ(owners(pairs, one), (Owners{4, 0}));
  EXPECT_EQ(owners(pairs, halves), (Owners{4, 4}));
}

/// What ranks send is balanced over all arrays, and what hosts send before.
TEST(ExchangeTest, AllArraysAreBalanced) {
  format::Layout from = format::Layout::whole({8}), to = from;
  from.boxes.assign(4, format::Box::whole({8}));
  from.boxes[3] = std::nullopt;
  to.boxes.assign(4, std::nullopt);
  to.boxes[3] = format::Box::whole({8});
  std::vector<int64_t> apart = {0, 1, 2, 3};
  std::vector<format::Move> moves(5, {4, from, to, apart, apart});
  auto owners = [&](const std::vector<unsigned> &hostOf) {
    std::vector<size_t> result;
    for (const format::MovedPiece &piece : format::exchangeOf(moves, hostOf))
      result.push_back(piece.owner);
    return result;
  };
  using Owners = std::vector<size_t>;
  EXPECT_EQ(owners({0, 0, 0, 0}), (Owners{0, 1, 2, 0, 1}));
  EXPECT_EQ(owners({0, 0, 1, 2}), (Owners{0, 2, 1, 2, 0}));
  EXPECT_EQ(owners({0, 0, 2, 2}), (Owners{2, 2, 2, 2, 2}));
}

/// From 32 devices to 31, the example of HSPMD (OSDI 2026, 7.3): two pipelines
/// of four stages of 15 layers, four slices a layer, eight devices a node. The
/// last device is lost; the second pipeline has stages of 16, 16, 16, 8 and 4
/// layers on 4, 4, 4, 2 and 1 devices.
TEST(ExchangeTest, OneOf32DevicesIsLost) {
  std::vector<format::Layout> from, to;
  for (int64_t layer = 0; layer < 60; ++layer) {
    format::Layout before{{4}, {}}, after;
    before.boxes.resize(31);
    after = before;
    for (int64_t slice = 0; slice < 4; ++slice) {
      format::Box box{{slice}, {1}};
      for (int64_t pipeline : {0, 16})
        if (int64_t device = pipeline + layer / 15 * 4 + slice; device < 31)
          before.boxes[device] = box;
      after.boxes[layer / 15 * 4 + slice] = box;
      if (layer < 48)
        after.boxes[16 + layer / 16 * 4 + slice] = box;
    }
    if (layer >= 56)
      after.boxes[30] = format::Box{{0}, {4}};
    else if (layer >= 48)
      for (int64_t half : {0, 1})
        after.boxes[28 + half] = format::Box{{2 * half}, {2}};
    from.push_back(before);
    to.push_back(after);
  }
  std::vector<int64_t> processOf(31);
  std::iota(processOf.begin(), processOf.end(), 0);
  std::vector<unsigned> hostOf;
  for (unsigned device = 0; device < 31; ++device)
    hostOf.push_back(device / 8);
  constexpr int64_t sliceBytes = int64_t(535035904) * 12 / 4;
  std::vector<format::Move> moves;
  for (size_t layer = 0; layer < 60; ++layer)
    moves.push_back({sliceBytes, from[layer], to[layer], processOf, processOf});
  int64_t local = 0, moved = 0, betweenHosts = 0;
  std::map<int64_t, int64_t> sentBetweenHosts;
  std::set<std::pair<int64_t, int64_t>> messages;
  for (const format::MovedPiece &piece : format::exchangeOf(moves, hostOf)) {
    if (piece.isLocal()) {
      local += piece.elements();
      continue;
    }
    moved += piece.elements();
    messages.insert({piece.sender, piece.taker});
    if (hostOf[piece.sender] == hostOf[piece.taker])
      continue;
    betweenHosts += piece.elements();
    sentBetweenHosts[piece.sender] += piece.elements();
  }
  int64_t largest = 0;
  for (const auto &[sender, slices] : sentBetweenHosts)
    largest = std::max(largest, slices);
  // Of 1.605 GB each: 96.3 GB, 36.9 GB between hosts, 24.1 GB by one device,
  // which is the only one left that has them.
  EXPECT_EQ(moved, 60);
  EXPECT_EQ(local, 420);
  EXPECT_LE(betweenHosts, 23);
  EXPECT_LE(largest, 15);
  EXPECT_LE(messages.size(), 22u);
}

/// Lists of layouts of unlike views and numbers of ranks, with replicas and
/// empty boxes: each wanted element comes from a shard that has it, once, and
/// as little as can be comes from other processes.
TEST(ExchangeTest, RandomListsAreGatheredAndScattered) {
  int64_t moved = 0, unlike = 0;
  for (int i = 0; i != 10000; ++i) {
    RandomPlacement random(5000000 + i);
    int64_t processes = 1 + random.below(4);
    std::vector<unsigned> hostOf;
    for (int64_t process = 0; process < processes; ++process)
      hostOf.push_back(random.below(2));
    std::vector<format::Layout> layouts;
    std::vector<std::vector<int64_t>> processOf;
    int64_t arrays = 1 + random.below(3);
    for (int64_t array = 0; array < arrays; ++array) {
      Extents shape = random.shape();
      for (int side = 0; side < 2; ++side) {
        int64_t ranks = processes + random.below(4);
        Placement placement =
            random.placement(random.view(shape), random.devices(ranks),
                             /*mayBePartial=*/false, Reduction::Sum);
        layouts.push_back(layoutOf(placement, ranks));
        std::vector<int64_t> &owners = processOf.emplace_back();
        for (int64_t rank = 0; rank < ranks; ++rank)
          owners.push_back(rank * processes / ranks);
      }
    }
    std::vector<format::Move> moves;
    for (int64_t array = 0; array < arrays; ++array) {
      moves.push_back({4, layouts[2 * array], layouts[2 * array + 1],
                       processOf[2 * array], processOf[2 * array + 1]});
      unlike += layouts[2 * array].view != layouts[2 * array + 1].view;
    }
    // By array and rank, the element that each place gets.
    std::map<std::pair<size_t, size_t>, std::map<int64_t, int64_t>> got;
    int64_t fromOthers = 0;
    for (const format::MovedPiece &piece : format::exchangeOf(moves, hostOf)) {
      const format::Move &move = moves[piece.move];
      ASSERT_EQ(piece.sender, move.fromProcess[piece.owner]);
      ASSERT_EQ(piece.taker, move.toProcess[piece.receiver]);
      std::vector<int64_t> source =
          elementsOf(*move.from.boxes[piece.owner], move.from.view);
      std::vector<std::pair<int64_t, int64_t>> places = {
          {piece.fromOffset, piece.toOffset}};
      for (size_t d = 0; d < piece.size.size(); ++d) {
        std::vector<std::pair<int64_t, int64_t>> longer;
        for (auto [from, to] : places)
          for (int64_t k = 0; k < piece.size[d]; ++k)
            longer.push_back(
                {from + k * piece.fromStrides[d], to + k * piece.toStrides[d]});
        places = std::move(longer);
      }
      auto &placed = got[std::pair(piece.move, piece.receiver)];
      for (auto [from, to] : places)
        ASSERT_TRUE(placed.try_emplace(to, source.at(from)).second);
      fromOthers += piece.isLocal() ? 0 : piece.elements();
    }
    int64_t least = 0;
    for (size_t array = 0; array < moves.size(); ++array) {
      const format::Move &move = moves[array];
      std::map<int64_t, std::set<int64_t>> held;
      for (size_t rank = 0; rank < move.from.boxes.size(); ++rank)
        if (move.from.boxes[rank])
          for (int64_t element :
               elementsOf(*move.from.boxes[rank], move.from.view))
            held[move.fromProcess[rank]].insert(element);
      for (size_t rank = 0; rank < move.to.boxes.size(); ++rank) {
        if (!move.to.boxes[rank])
          continue;
        std::vector<int64_t> wanted =
            elementsOf(*move.to.boxes[rank], move.to.view);
        const auto &found = got[{array, rank}];
        ASSERT_EQ(found.size(), wanted.size());
        for (const auto &[place, element] : found)
          ASSERT_EQ(element, wanted.at(place));
        for (int64_t element : wanted)
          least += !held[move.toProcess[rank]].contains(element);
      }
    }
    ASSERT_EQ(fromOthers, least);
    moved += least;
  }
  EXPECT_GT(moved, 10000);
  EXPECT_GT(unlike, 1000);
}

} // namespace
