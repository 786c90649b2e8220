//===- ExchangePlanTest.cpp - What goes between processes -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exchanges of random layouts, planned for each process and carried out by
// copying messages: both ends must list the same messages, no round may be
// larger than is said, and each shard must get the elements of its box.
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"
#include "whale/ProgramFormat/Pieces.h"
#include "whale/Runtime/Job.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>

using namespace whale::runtime;
using namespace whale::runtime::test;
using whale::format::Box;
using whale::format::denseStrides;

namespace {

constexpr int64_t roundBytes = 8 << 20;

/// The ranks of a layout, among processes.
std::shared_ptr<const RankMap> mapOf(const Layout &layout, int64_t processes) {
  return std::make_shared<RankMap>(
      RankMap::inRuns(layout.boxes.size(), processes, 0));
}

/// What all processes do.
class Exchange {
public:
  Exchange(std::vector<ArrayMove> moves, int64_t processes)
      : moves(std::move(moves)) {
    for (const ArrayMove &move : this->moves) {
      given.push_back(shardsOf(*move.from));
      Shards &shards = taken.emplace_back();
      for (const std::optional<Box> &box : move.to->boxes)
        shards.emplace_back(box ? box->elements() : 0, -1);
    }
    ExchangePlaces places;
    places.processes = processes;
    places.processOf = mapOf(*this->moves[0].to, processes)->processOf;
    places.hostOf.resize(processes);
    for (; places.process < processes; ++places.process)
      plans.push_back(planExchange(this->moves, places));
  }

  /// All processes give before one takes: messages of two are in one order.
  void run() {
    for (int64_t process = 0; process < std::ssize(plans); ++process)
      for (const ExchangeRound &round : plans[process].rounds)
        give(process, round.given);
    for (int64_t process = 0; process < std::ssize(plans); ++process)
      for (const ExchangeRound &round : plans[process].rounds)
        take(process, round.taken);
    for (const auto &[pair, list] : onTheirWay)
      EXPECT_TRUE(list.empty());
    for (size_t move = 0; move < moves.size(); ++move)
      EXPECT_EQ(taken[move], shardsOf(*moves[move].to));
  }

  size_t roundsOf(int64_t process) const {
    return plans[process].rounds.size();
  }

  /// What is packed of what a process gives.
  int64_t packedBytesOf(int64_t process) const {
    int64_t bytes = 0;
    for (const ExchangeRound &round : plans[process].rounds)
      bytes += round.given.packedBytes;
    return bytes;
  }

private:
  void give(int64_t process, const RoundSide &side) {
    const auto &pieces = plans[process].pieces;
    std::vector<char> packed(side.packedBytes);
    for (const RoundSide::Packed &each : side.packed) {
      const MovedPiece &piece = pieces[each.piece];
      copyStrided(packed.data() + each.offset, denseStrides(piece.size),
                  from(piece), piece.fromStrides, piece.size, 4);
    }
    int64_t bytes = 0;
    for (const RoundSide::Message &message : side.messages) {
      auto *data =
          message.piece
              ? reinterpret_cast<const char *>(from(pieces[*message.piece]))
              : packed.data() + message.offset;
      onTheirWay[{process, message.process}].emplace_back(data,
                                                          data + message.bytes);
      bytes += message.bytes;
    }
    EXPECT_LE(bytes, roundBytes);
  }

  void take(int64_t process, const RoundSide &side) {
    const auto &pieces = plans[process].pieces;
    std::vector<char> packed(side.packedBytes);
    int64_t bytes = 0;
    for (const RoundSide::Message &message : side.messages) {
      auto &list = onTheirWay[{message.process, process}];
      ASSERT_FALSE(list.empty());
      ASSERT_EQ(std::ssize(list.front()), message.bytes);
      auto *data = message.piece
                       ? reinterpret_cast<char *>(to(pieces[*message.piece]))
                       : packed.data() + message.offset;
      std::memcpy(data, list.front().data(), message.bytes);
      list.pop_front();
      bytes += message.bytes;
    }
    EXPECT_LE(bytes, roundBytes);
    for (const RoundSide::Packed &each : side.packed) {
      const MovedPiece &piece = pieces[each.piece];
      copyStrided(to(piece), piece.toStrides, packed.data() + each.offset,
                  denseStrides(piece.size), piece.size, 4);
    }
    for (const MovedPiece &piece : pieces)
      if (piece.isLocal() && piece.taker == process)
        copyStrided(to(piece), piece.toStrides, from(piece), piece.fromStrides,
                    piece.size, 4);
  }

  int32_t *from(const MovedPiece &piece) {
    return given[piece.move][piece.owner].data() + piece.fromOffset;
  }
  int32_t *to(const MovedPiece &piece) {
    return taken[piece.move][piece.receiver].data() + piece.toOffset;
  }

  std::vector<ArrayMove> moves;
  std::vector<Shards> given, taken;
  std::vector<ExchangePlan> plans;
  /// By sender and taker.
  std::map<std::pair<int64_t, int64_t>, std::deque<std::vector<char>>>
      onTheirWay;
};

TEST(ExchangePlan, BringsEachShardItsBox) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    int64_t processes = 2 + random() % 3;
    int64_t fromRanks = processes + random() % 3,
            toRanks = processes + random() % 3;
    std::vector<ArrayMove> moves;
    // Small pieces, and such as are messages of their own.
    for (const Shape &shape : {Shape{7, 5}, Shape{300, 401}, Shape{90'000}}) {
      auto from = randomLayout(random, shape, fromRanks);
      moves.push_back({4, from, mapOf(*from, processes),
                       randomLayout(random, shape, toRanks)});
    }
    Exchange(moves, processes).run();
  }
}

/// What one process has, and then the next one, goes to all in rounds in which
/// all are at work.
TEST(ExchangePlan, AllAreAtWorkInEachRound) {
  constexpr int64_t processes = 4, arrays = 8;
  Shape shape = {512, 512};
  std::vector<ArrayMove> moves;
  for (int64_t i = 0; i < arrays; ++i) {
    auto from = std::make_shared<Layout>(Layout{shape, {}});
    auto to = std::make_shared<Layout>(Layout{shape, {}});
    for (int64_t rank = 0; rank < processes; ++rank) {
      bool isHere = rank == i * processes / arrays;
      from->boxes.push_back(isHere ? std::optional(Box::whole(shape))
                                   : std::nullopt);
      to->boxes.emplace_back(Box{{rank * 128, 0}, {128, 512}});
    }
    moves.push_back({4, from, mapOf(*from, processes), to});
  }
  Exchange exchange(moves, processes);
  // Each gives 1.5 MiB, and takes as much.
  for (int64_t process = 0; process < processes; ++process)
    EXPECT_EQ(exchange.roundsOf(process), 1u);
  exchange.run();
}

TEST(ExchangePlan, CutsWhatIsLargerThanARound) {
  Shape shape = {3, 1'500'000};
  auto from = std::make_shared<Layout>(Layout{shape, {}});
  auto to = std::make_shared<Layout>(Layout{shape, {}});
  from->boxes = {Box::whole(shape), std::nullopt};
  to->boxes = {std::nullopt, Box::whole(shape)};
  Exchange exchange({{4, from, mapOf(*from, 2), to}}, 2);
  EXPECT_GE(exchange.roundsOf(0), 3u);
  exchange.run();
}

/// What all others get of a process is packed once, and not for each of them.
TEST(ExchangePlan, PacksOnceWhatSeveralGet) {
  constexpr int64_t processes = 4, arrays = 5;
  Shape shape = {8, 8};
  std::vector<ArrayMove> moves;
  for (int64_t i = 0; i < arrays; ++i) {
    auto from = std::make_shared<Layout>(Layout{shape, {}});
    auto to = std::make_shared<Layout>(Layout{shape, {}});
    for (int64_t rank = 0; rank < processes; ++rank) {
      from->boxes.emplace_back(Box{{0, rank * 2}, {8, 2}});
      to->boxes.emplace_back(Box::whole(shape));
    }
    moves.push_back({4, from, mapOf(*from, processes), to});
  }
  Exchange exchange(moves, processes);
  for (int64_t process = 0; process < processes; ++process)
    EXPECT_EQ(exchange.packedBytesOf(process), arrays * 8 * 2 * 4);
  exchange.run();
}

TEST(ExchangePlan, AProcessWithoutARankGivesNothing) {
  auto one = std::make_shared<Layout>(Layout::whole({4}));
  auto two = std::make_shared<Layout>(Layout{{4}, {}});
  two->boxes = {Box{{0}, {2}}, Box{{2}, {2}}};
  ExchangePlaces places;
  places.processes = 2;
  places.processOf = {0};
  places.hostOf = {0, 0};
  ArrayMove move{4, two, mapOf(*two, 2), one};
  EXPECT_THROW(planExchange({&move, 1}, places), Error);
}

} // namespace
