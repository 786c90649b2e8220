//===- EnumerateTest.cpp - All orders of small programs -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The enumeration of all orders (Enumerate.cpp), with which other tests judge
// whether a program is right. Most cases are programs of two ranks, a few
// copies and transfers, of which one can see by hand whether they have one
// result, two, or none.
//
// The last test draws random programs and changes them: 60, or 1,000 with
// WHALE_TEST_FULL. The search with and without its reduction must agree; a
// program that the checks accept must have one result; and no program that has
// one may show another in 64 runs on late devices. Cost: a process for each
// program.
//
//===----------------------------------------------------------------------===//

#include "Enumerate.h"

#include "Mutation.h"
#include "Oracle.h"
#include "ProgramBuilder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

using namespace whale::transfers;
using namespace whale::format;

namespace {

/// Channels: from rank 0 to rank 1, back, an all-reduce, and from each rank to
/// itself.
constexpr int64_t there = 0, back = 1, sum = 2, own = 3;
/// Buffers of 64 bytes: arena buffers from 0 on, then parts of the rank's
/// argument and of its result.
constexpr BufferIndex given = 8, result = 12;
constexpr int64_t parts = 4, elements = 16;

class Small : public ProgramBuilder {
public:
  Small() : ProgramBuilder(2) {
    Layout layout = {{2 * parts, elements}, {}};
    for (int64_t rank = 0; rank < 2; ++rank)
      layout.boxes.push_back(Box{{rank * parts, 0}, {parts, elements}});
    Parameter parameter;
    parameter.dtype = DType::F32;
    parameter.shape = layout.view;
    parameter.layout = std::make_shared<Layout>(layout);
    parameter.name = "arg0";
    program.arguments.push_back(parameter);
    parameter.name = "result0";
    program.results.push_back(parameter);
    for (RankClass &rankClass : program.classes) {
      rankClass.arenaBytes = 512;
      for (Space space : {Space::Argument, Space::Result})
        for (int64_t i = 0; i < parts; ++i)
          rankClass.buffers.push_back(
              {space, i * 64, 0, 64, DType::F32, {elements}, {}});
    }
    addChannel(there, "send_recv", {{1, 0}});
    addChannel(back, "send_recv", {{0, 1}});
    addChannel(sum, "all_reduce", {});
    addChannel(own, "local_slice", {{0, 0}, {1, 1}});
  }

  /// Without the channels that nobody uses.
  Program finish() const {
    Program finished = program;
    std::erase_if(finished.channels, [&](const auto &channel) {
      return std::ranges::none_of(
          program.classes[0].instructions, [&](const Instruction &instruction) {
            const auto *start = std::get_if<Start>(&instruction.operation);
            return start && start->channel == channel.first;
          });
    });
    return finished;
  }
  /// A transfer that both ranks wait for at once.
  void transfer(int64_t channel, BufferIndex src, BufferIndex dst) {
    for (size_t rank : {0, 1}) {
      bool sends = channel == sum || channel == static_cast<int64_t>(rank);
      bool receives = channel == sum || !sends;
      start(rank, channel, sends ? std::optional(src) : std::nullopt,
            receives ? std::optional(dst) : std::nullopt);
      wait(rank, starts[rank] - 1);
    }
  }
  Outcomes run(const Limits &limits = {}, size_t branch = 0) const {
    Names names;
    return enumerate(program, branch, names, limits);
  }

private:
  /// Whole buffers go from a rank to each receiver.
  void addChannel(int64_t number, std::string kind,
                  const std::map<int64_t, int64_t> &sources) {
    Collective channel;
    channel.kind = std::move(kind);
    channel.parts[0].dtype = DType::F32;
    channel.participants = {0, 1};
    if (number != own)
      channel.groups.insert({0, 1});
    if (channel.isAllReduce())
      channel.parts[0].reduction = Reduction::Sum;
    for (auto [receiver, sender] : sources)
      channel.parts[0].cells[receiver] = std::make_shared<std::vector<Cell>>(
          1, Cell{{0}, {elements}, {{sender, {0}}}});
    for (int64_t rank = 0; rank < 2; ++rank) {
      bool receives = channel.isAllReduce() || sources.contains(rank);
      if (receives)
        channel.parts[0].dstShapes[rank] = {elements};
      if (channel.isAllReduce() || !receives || sources.at(rank) == rank)
        channel.parts[0].srcShapes[rank] = {elements};
    }
    program.channels[number] = std::make_shared<Collective>(std::move(channel));
  }
};

TEST(Enumerate, OneResultWhereAllIsWaitedFor) {
  Small small;
  small.copy(0, given, 0);
  small.transfer(there, 0, 1);
  small.copy(1, 1, result);
  EXPECT_TRUE(small.run().isOne());
  EXPECT_TRUE(small.run({.isReduced = false}).isOne());
}

/// One part goes there and one back, at one time.
TEST(Enumerate, SeveralParts) {
  for (bool isDropped : {false, true}) {
    Small small;
    constexpr int64_t both = 4;
    Collective channel = *small.program.channels.at(there);
    channel.parts.push_back(small.program.channels.at(back)->parts.front());
    small.program.channels[both] = std::make_shared<Collective>(channel);
    for (size_t rank : {0, 1}) {
      small.copy(rank, given, 0);
      Start start = {both, small.starts[rank]++, std::vector<Start::Ends>(2)};
      start.parts[rank].src = 0;
      start.parts[1 - rank].dst = 1;
      small.list(rank).push_back({.operation = start});
      if (!isDropped || rank == 1)
        small.wait(rank, 0);
      small.copy(rank, 1, result);
    }
    EXPECT_EQ(small.run().isOne(), !isDropped);
    EXPECT_EQ(refusal(small.finish()).empty(), !isDropped);
  }
}

TEST(Enumerate, DroppedWait) {
  Small small;
  small.copy(0, given, 0);
  small.start(0, there, 0, std::nullopt);
  small.wait(0, 0);
  small.start(1, there, std::nullopt, 1);
  small.copy(1, 1, result);
  EXPECT_EQ(small.run().results.size(), 2u);
}

/// The transfer may not have come, when its rank has come to the end.
TEST(Enumerate, DroppedLastWait) {
  Small small;
  small.start(0, there, given, std::nullopt);
  small.start(1, there, std::nullopt, result);
  EXPECT_EQ(small.run().results.size(), 2u);
}

TEST(Enumerate, CrossingSendsBlock) {
  Small small;
  small.start(0, there, given, std::nullopt);
  small.wait(0, 0);
  small.start(0, back, std::nullopt, result);
  small.wait(0, 1);
  small.start(1, back, given, std::nullopt);
  small.wait(1, 0);
  small.start(1, there, std::nullopt, result);
  small.wait(1, 1);
  EXPECT_NE(small.run().fault, "");
}

/// The same starts in one order, with waits behind them.
TEST(Enumerate, OpenTransfersOfOneOrder) {
  Small small;
  small.start(0, there, given, std::nullopt);
  small.start(0, back, std::nullopt, result);
  small.start(1, there, std::nullopt, result);
  small.start(1, back, given, std::nullopt);
  for (size_t rank : {0, 1})
    for (int64_t transfer : {1, 0})
      small.wait(rank, transfer);
  EXPECT_TRUE(small.run().isOne());
}

TEST(Enumerate, WaitBeforeStart) {
  Small small;
  small.wait(0, 0);
  small.start(0, there, given, std::nullopt);
  small.start(1, there, std::nullopt, result);
  small.wait(1, 0);
  EXPECT_NE(small.run().fault, "");
}

TEST(Enumerate, SourceIsWrittenMeanwhile) {
  Small small;
  small.copy(0, given, 0);
  small.start(0, there, 0, std::nullopt);
  small.copy(0, given + 1, 0);
  small.wait(0, 0);
  small.start(1, there, std::nullopt, result);
  small.wait(1, 0);
  EXPECT_EQ(small.run().results.size(), 2u);
}

TEST(Enumerate, SourceIsWrittenBehindTheWait) {
  Small small;
  small.copy(0, given, 0);
  small.transfer(there, 0, result);
  small.copy(0, given + 1, 0);
  EXPECT_TRUE(small.run().isOne());
}

/// The next transfer begins when this one has taken its source.
TEST(Enumerate, SourceIsWrittenBehindALaterTransfer) {
  Small small;
  small.copy(0, given, 0);
  small.start(0, there, 0, std::nullopt);
  small.start(0, back, std::nullopt, result);
  small.wait(0, 1);
  small.copy(0, given + 1, 0);
  small.wait(0, 0);
  small.start(1, there, std::nullopt, result);
  small.start(1, back, given, std::nullopt);
  small.wait(1, 0);
  small.wait(1, 1);
  EXPECT_TRUE(small.run().isOne());
}

TEST(Enumerate, DestinationIsUsedMeanwhile) {
  for (bool isWritten : {false, true}) {
    Small small;
    small.start(0, there, given, std::nullopt);
    small.wait(0, 0);
    small.copy(1, given, 0);
    small.start(1, there, std::nullopt, 0);
    isWritten ? small.copy(1, given + 1, 0) : small.copy(1, 0, result);
    small.wait(1, 0);
    small.copy(1, 0, result + 1);
    EXPECT_EQ(small.run().results.size(), 2u);
  }
}

/// The first transfer has left the queue before the second one begins.
TEST(Enumerate, ReceivesWhereItSent) {
  Small small;
  small.copy(0, given, 0);
  small.start(0, there, 0, std::nullopt);
  small.start(0, back, std::nullopt, 0);
  small.wait(0, 0);
  small.wait(0, 1);
  small.copy(0, 0, result);
  small.start(1, there, std::nullopt, result);
  small.start(1, back, given, std::nullopt);
  small.wait(1, 0);
  small.wait(1, 1);
  EXPECT_TRUE(small.run().isOne());
}

/// What a rank takes from itself comes before what it starts later, but perhaps
/// before what it has started, too.
TEST(Enumerate, FromTheRankItself) {
  for (bool isFirst : {true, false}) {
    Small small;
    small.start(0, there, given, std::nullopt);
    small.wait(0, 0);
    if (isFirst)
      small.start(1, own, given, 0);
    small.start(1, there, std::nullopt, 0);
    if (!isFirst)
      small.start(1, own, given, 0);
    small.wait(1, 0);
    small.wait(1, 1);
    small.copy(1, 0, result);
    EXPECT_EQ(small.run().isOne(), isFirst);
  }
}

TEST(Enumerate, AllReduceInPlace) {
  Small small;
  for (size_t rank : {0, 1})
    small.copy(rank, given, 0);
  small.transfer(sum, 0, 0);
  for (size_t rank : {0, 1})
    small.copy(rank, 0, result);
  EXPECT_TRUE(small.run().isOne());
  EXPECT_TRUE(small.run({.isReduced = false}).isOne());
  // The copies before the waits.
  for (size_t rank : {0, 1})
    std::swap(small.list(rank)[2], small.list(rank)[3]);
  EXPECT_FALSE(small.run().isOne());
}

TEST(Enumerate, BuffersOfOtherSizes) {
  Small small;
  small.transfer(there, given, result);
  small.program.classes[1].buffers[result].bytes = 32;
  EXPECT_NE(small.run().fault, "");
}

TEST(Enumerate, LoopsAndCases) {
  Small small;
  small.transfer(there, 0, 0);
  for (size_t rank : {0, 1}) {
    While loop;
    loop.predicate = given;
    loop.body = std::move(small.list(rank));
    small.list(rank) = {{.operation = Copy{given, 0}},
                        {.operation = std::move(loop)},
                        {.operation = Copy{0, result}}};
  }
  EXPECT_TRUE(small.run().isOne());
  EXPECT_EQ(countInstructions(small.program), 10);
  Small broken = small;
  std::get<While>(broken.list(1)[1].operation).body.pop_back();
  EXPECT_FALSE(broken.run().isOne());

  Case choice;
  choice.index = given;
  choice.branches = {{{.operation = Copy{given, result + 1}}},
                     {{.operation = Copy{0, 0}}}};
  small.list(0).push_back({.operation = choice});
  EXPECT_EQ(mostBranches(small.program), 2u);
  EXPECT_TRUE(small.run({}, 0).isOne());
  EXPECT_NE(small.run({}, 0).results, small.run({}, 1).results);
}

/// Functions are looked into: locals are in the arena.
TEST(Enumerate, LocalsOfFunctions) {
  Small small;
  Function function;
  function.operands = function.results = 1;
  for (Space space : {Space::Operand, Space::Local, Space::Result})
    function.buffers.push_back({space, 0, 0, 64, DType::F32, {elements}, {}});
  function.instructions = {{.operation = Copy{0, 1}},
                           {.operation = Copy{1, 2}}};
  small.program.functions.push_back(function);
  small.program.classes[0].locals[0] = {{64}};
  small.copy(0, given, 0);
  small.start(0, there, 0, std::nullopt);
  small.list(0).push_back({.operation = whale::format::Run{
                               0, {given + 1}, {result}, std::nullopt}});
  small.wait(0, 0);
  small.start(1, there, std::nullopt, result);
  small.wait(1, 0);
  EXPECT_TRUE(small.run().isOne());
  // Over what is sent.
  small.program.classes[0].locals[0] = {{0}};
  EXPECT_EQ(small.run().results.size(), 2u);
}

TEST(Enumerate, TooManyStates) {
  Small small;
  small.transfer(there, given, result);
  EXPECT_TRUE(small.run({.states = 3}).isCut);
  EXPECT_FALSE(small.run({.states = 3}).isOne());
}

/// Copies and transfers that ranks wait for at once, and then a few changes.
Program makeRandom(std::mt19937 &random) {
  Small small;
  auto pick = [&](int64_t count) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  };
  auto source = [&] { return pick(2) ? pick(3) : given + pick(parts); };
  auto target = [&] { return pick(3) ? pick(3) : result + pick(parts); };
  for (int64_t rank = 0; rank < 2; ++rank)
    for (BufferIndex buffer = 0; buffer < 3; ++buffer)
      small.copy(static_cast<size_t>(rank), given + buffer, buffer);
  for (int64_t i = 3 + pick(5); i > 0; --i)
    if (pick(2))
      small.copy(pick(2), source(), target());
    else
      small.transfer(pick(3), source(), target());
  Program program = small.finish();
  for (int64_t i = pick(4); i > 0; --i)
    if (auto mutant =
            mutate(program, static_cast<Kind>(pick(kindCount)), random))
      program = std::move(mutant->program);
  return program;
}

/// What late devices show is among the orders, and what is accepted has one
/// result.
TEST(Enumerate, CoversLateDevices) {
  std::mt19937 random(7);
  const int programs = std::getenv("WHALE_TEST_FULL") ? 1000 : 60;
  constexpr uint64_t seeds = 64;
  int harmless = 0, accepted = 0, shown = 0;
  for (int i = 0; i < programs; ++i) {
    Program program = makeRandom(random);
    Names names;
    Outcomes some = enumerate(program, 0, names);
    Outcomes all = enumerate(program, 0, names, {.isReduced = false});
    ASSERT_FALSE(all.isCut) << i;
    EXPECT_EQ(some.isOne(), all.isOne()) << i;
    if (all.isOne())
      EXPECT_LE(some.states, all.states) << i;
    bool isAccepted = refusal(program).empty();
    EXPECT_TRUE(!isAccepted || some.isOne()) << i;
    accepted += isAccepted;
    std::vector<Result> results = Oracle(program).run(program, seeds);
    bool isShown = std::ranges::any_of(results, [&](const Result &given) {
      return !given || given != results[0];
    });
    EXPECT_FALSE(some.isOne() && isShown) << i;
    harmless += some.isOne();
    shown += isShown;
  }
  // All of these happen.
  for (int count : {harmless, accepted, shown})
    EXPECT_GT(count, programs / 10);
}

} // namespace
