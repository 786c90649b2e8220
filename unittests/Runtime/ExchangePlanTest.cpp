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
// larger than is said, and each shard must get the elements of its box. The
// processes go on in any order, each as far as it is not kept by a message that
// has not come: what others read in its memory must stay there long enough.
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

/// The ranks of a layout, among processes.
std::shared_ptr<const RankMap> mapOf(const Layout &layout, int64_t processes) {
  return std::make_shared<RankMap>(
      RankMap::inRuns(layout.boxes.size(), processes, 0));
}

/// What all processes do.
class Exchange {
public:
  /// Of so many processes in a row, each reads what the others pack for it.
  Exchange(std::vector<ArrayMove> moves, int64_t processes,
           int64_t readTogether = 1)
      : moves(std::move(moves)) {
    for (const ArrayMove &move : this->moves) {
      given.push_back(shardsOf(*move.from));
      Shards &shards = taken.emplace_back();
      for (const std::optional<Box> &box : move.to->boxes)
        shards.emplace_back(box ? box->elements() : 0, -1);
    }
    ExchangePlaces places;
    roundBytes = places.roundBytes;
    places.processes = processes;
    places.processOf = mapOf(*this->moves[0].to, processes)->processOf;
    places.hostOf.resize(processes);
    for (; places.process < processes; ++places.process) {
      places.areRead.clear();
      for (int64_t other = 0; readTogether > 1 && other < processes; ++other)
        places.areRead.push_back(other != places.process &&
                                 other / readTogether ==
                                     places.process / readTogether);
      plans.push_back(planExchange(this->moves, places));
    }
    at.resize(processes);
    for (Process &process : at)
      process.packed.resize(readTogether > 1 ? ExchangePlaces::readBytes
                                             : roundBytes);
  }

  void run(unsigned seed = 0) {
    std::mt19937 random(seed);
    for (const ExchangePlan &plan : plans)
      for (const MovedPiece &piece : plan.pieces)
        if (&plan - plans.data() == piece.taker && piece.isLocal())
          copyStrided(to(piece), piece.toStrides, from(piece),
                      piece.fromStrides, piece.size, 4);
    std::vector<int64_t> order(plans.size());
    std::iota(order.begin(), order.end(), 0);
    do
      std::ranges::shuffle(order, random);
    while (std::ranges::any_of(order,
                               [&](int64_t process) { return goOn(process); }));
    for (size_t process = 0; process < plans.size(); ++process)
      EXPECT_EQ(at[process].round, plans[process].rounds.size());
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

  /// What messages carry of what a process gives.
  int64_t sentBytesOf(int64_t process) const {
    int64_t bytes = 0;
    for (const ExchangeRound &round : plans[process].rounds)
      for (const RoundSide::Message &message : round.given.messages)
        bytes += message.bytes;
    return bytes;
  }

private:
  using Content = RoundSide::Message::Content;
  struct Process {
    size_t round = 0;
    bool hasGiven = false;
    std::vector<char> packed;
  };

  /// Begins a round of a process, or ends it; false if it cannot yet, or has
  /// none any more.
  bool goOn(int64_t process) {
    Process &self = at[process];
    if (self.round == plans[process].rounds.size())
      return false;
    const ExchangeRound &round = plans[process].rounds[self.round];
    if (!self.hasGiven) {
      give(process, round.given);
      self.hasGiven = true;
      return true;
    }
    std::map<int64_t, int64_t> awaited;
    for (const RoundSide::Message &message : round.taken.messages)
      ++awaited[message.process];
    for (const auto &[peer, count] : awaited)
      if (std::ssize(onTheirWay[{peer, process}]) < count)
        return false;
    take(process, round.taken);
    self.hasGiven = false;
    ++self.round;
    return true;
  }

  void give(int64_t process, const RoundSide &side) {
    const auto &pieces = plans[process].pieces;
    std::vector<char> &packed = at[process].packed;
    ASSERT_LE(side.packedBytes, std::ssize(packed));
    for (const RoundSide::Packed &each : side.packed) {
      const MovedPiece &piece = pieces[each.piece];
      copyStrided(packed.data() + each.offset, denseStrides(piece.size),
                  from(piece), piece.fromStrides, piece.size, 4);
    }
    int64_t bytes = 0;
    for (const RoundSide::Message &message : side.messages) {
      auto *data = packed.data() + message.offset;
      if (message.content == Content::Piece)
        data = reinterpret_cast<char *>(from(pieces[message.piece]));
      else if (message.content != Content::Packed)
        data =
            const_cast<char *>(reinterpret_cast<const char *>(&message.offset));
      onTheirWay[{process, message.process}].emplace_back(data,
                                                          data + message.bytes);
      bytes += message.bytes;
    }
    EXPECT_LE(bytes, roundBytes);
  }

  void take(int64_t process, const RoundSide &side) {
    const auto &pieces = plans[process].pieces;
    std::vector<char> packed(side.packedBytes);
    std::vector<int64_t> numbers;
    int64_t bytes = 0;
    for (const RoundSide::Message &message : side.messages) {
      auto &list = onTheirWay[{message.process, process}];
      ASSERT_FALSE(list.empty());
      ASSERT_EQ(std::ssize(list.front()), message.bytes);
      int64_t &number = numbers.emplace_back(0);
      auto *data = packed.data() + message.offset;
      if (message.content == Content::Piece)
        data = reinterpret_cast<char *>(to(pieces[message.piece]));
      else if (message.content != Content::Packed)
        data = reinterpret_cast<char *>(&number);
      std::memcpy(data, list.front().data(), message.bytes);
      list.pop_front();
      bytes += message.bytes;
    }
    EXPECT_LE(bytes, roundBytes);
    for (const RoundSide::Packed &each : side.packed) {
      const MovedPiece &piece = pieces[each.piece];
      const char *data = packed.data();
      if (each.told)
        data = at[side.messages[*each.told].process].packed.data() +
               numbers[*each.told];
      copyStrided(to(piece), piece.toStrides, data + each.offset,
                  denseStrides(piece.size), piece.size, 4);
    }
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
  std::vector<Process> at;
  int64_t roundBytes = 0;
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
    for (int64_t readTogether = 1; readTogether <= processes; ++readTogether)
      Exchange(moves, processes, readTogether).run(seed);
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

/// Columns of what each process has go to the next ones, in more rounds than
/// there is memory for.
TEST(ExchangePlan, KeepsWhatIsReadUntilItIsCopied) {
  constexpr int64_t processes = 3, arrays = 6;
  Shape shape = {1024, 1536};
  std::vector<ArrayMove> moves;
  for (int64_t i = 0; i < arrays; ++i) {
    auto from = std::make_shared<Layout>(Layout{shape, {}});
    auto to = std::make_shared<Layout>(Layout{shape, {}});
    for (int64_t rank = 0; rank < processes; ++rank) {
      bool isHere = rank == i % processes;
      from->boxes.push_back(isHere ? std::optional(Box::whole(shape))
                                   : std::nullopt);
      to->boxes.emplace_back(Box{{0, rank * 512}, {1024, 512}});
    }
    moves.push_back({4, from, mapOf(*from, processes), to});
  }
  for (unsigned seed = 0; seed < 10; ++seed) {
    Exchange exchange(moves, processes, /*readTogether=*/processes);
    // Only numbers go as messages: for half a piece one there, and one back.
    for (int64_t process = 0; process < processes; ++process) {
      EXPECT_GT(exchange.roundsOf(process), 3u);
      EXPECT_EQ(exchange.sentBytesOf(process), 4 * 2 * 2 * 8);
    }
    exchange.run(seed);
  }
}

/// What is dense where it comes from is not packed.
TEST(ExchangePlan, SendsWhatIsDense) {
  Shape shape = {512, 1024};
  auto from = std::make_shared<Layout>(Layout{shape, {}});
  auto to = std::make_shared<Layout>(Layout{shape, {}});
  from->boxes = {Box{{0, 0}, {512, 512}}, Box{{0, 512}, {512, 512}}};
  to->boxes = {std::nullopt, Box::whole(shape)};
  Exchange exchange({{4, from, mapOf(*from, 2), to}}, 2, /*readTogether=*/2);
  EXPECT_EQ(exchange.packedBytesOf(0), 0);
  EXPECT_EQ(exchange.sentBytesOf(0), 512 * 512 * 4);
  EXPECT_EQ(exchange.roundsOf(0), 1u);
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
