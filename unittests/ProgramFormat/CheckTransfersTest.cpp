//===- CheckTransfersTest.cpp - Broken orders of transfers ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The check of a program's transfers: no instruction touches memory that one in
// progress uses, and all ranks start theirs in orders that can meet. Programs
// are built by hand, of one to three classes with buffers of 64 bytes; many
// faults are compared word for word, with the place.
//
// Each test has a right program beside the wrong one, mostly a change of one
// instruction or offset. A fault that is not found would be a race or a
// deadlock at run time; the mutation tests (unittests/Mutation) look for these
// at random.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "gtest/gtest.h"

using namespace whale::format;

namespace {

class Builder : public ProgramBuilder {
public:
  using ProgramBuilder::ProgramBuilder;
  std::string fault() const { return describe(checkTransfers(program)); }
};

TEST(CheckTransfers, OtherMemoryMayBeUsed) {
  Builder builder(1);
  builder.channel(0, "all_gather");
  builder.start(0, 0, 0, 1);
  builder.copy(0, 0, 2); // Reading what is sent is fine.
  builder.copy(0, 2, 3);
  builder.wait(0, 0);
  builder.copy(0, 1, 0);
  EXPECT_EQ(builder.fault(), "");
}

TEST(CheckTransfers, WritesOfWhatIsSentAreFound) {
  Builder builder(1);
  builder.channel(0, "all_gather");
  builder.start(0, 0, 0, 1);
  builder.copy(0, 2, 0);
  builder.wait(0, 0);
  EXPECT_EQ(builder.fault(),
            "classes[0].instructions[1]: buffer 0: transfer 0 may still go on, "
            "and this instruction writes what it sends");
}

TEST(CheckTransfers, UsesOfWhatIsReceivedAreFound) {
  for (bool writes : {false, true}) {
    Builder builder(1);
    builder.channel(0, "all_gather");
    builder.start(0, 0, 0, 1);
    builder.copy(0, writes ? 2 : 1, writes ? 1 : 2);
    builder.wait(0, 0);
    EXPECT_NE(builder.fault().find(writes ? "writes what it receives into"
                                          : "reads what it receives into"),
              std::string::npos);
  }
}

TEST(CheckTransfers, PartsOfBuffersCount) {
  Builder builder(1);
  builder.channel(0, "all_gather");
  // The last four bytes of what is received.
  builder.program.classes[0].buffers.push_back(
      {Space::Arena, 124, 0, 8, DType::F32, {2}, {}});
  builder.start(0, 0, 0, 1);
  builder.copy(0, 8, 5);
  builder.wait(0, 0);
  EXPECT_NE(builder.fault(), "");
  builder.program.classes[0].buffers[8].offset = 128;
  EXPECT_EQ(builder.fault(), "");
}

// Ranges of other transfers begin between the wide one and the buffer.
TEST(CheckTransfers, WideTransfersCountForAllThatTheyOverlap) {
  Builder builder(1);
  builder.channel(0, "all_gather");
  std::vector<BufferInfo> &buffers = builder.program.classes[0].buffers;
  buffers.push_back({Space::Arena, 0, 0, 320, DType::F32, {80}, {}});
  builder.start(0, 0, 6, 8);
  builder.start(0, 0, 1, 2);
  builder.start(0, 0, 2, 3);
  builder.wait(0, 1);
  builder.wait(0, 2);
  builder.copy(0, 6, 5);
  builder.copy(0, 6, 4);
  builder.wait(0, 0);
  EXPECT_EQ(builder.fault(),
            "classes[0].instructions[6]: buffer 4: transfer 0 may still go on, "
            "and this instruction writes what it receives into");
  std::swap(builder.list(0)[6], builder.list(0)[7]);
  EXPECT_EQ(builder.fault(), "");
}

// Of two transfers of one buffer one is over.
TEST(CheckTransfers, BuffersAreBusyUntilTheLastTransferIsOver) {
  Builder builder(1);
  builder.channel(0, "all_gather");
  builder.start(0, 0, 0, 1);
  builder.start(0, 0, 0, 2);
  builder.wait(0, 0);
  builder.copy(0, 3, 0);
  builder.wait(0, 1);
  EXPECT_EQ(builder.fault(),
            "classes[0].instructions[3]: buffer 0: transfer 1 may still go on, "
            "and this instruction writes what it sends");
}

TEST(CheckTransfers, ResultsShareTheMemoryOfArguments) {
  Builder builder(1);
  builder.channel(0, "all_gather");
  builder.program.results.resize(2);
  builder.program.results[1].alias = 3;
  auto &buffers = builder.program.classes[0].buffers;
  buffers[0] = {Space::Argument, 0, 3, 64, DType::F32, {16}, {}};
  buffers[2] = {Space::Result, 0, 1, 64, DType::F32, {16}, {}};
  builder.start(0, 0, 0, 1);
  builder.copy(0, 4, 2);
  builder.wait(0, 0);
  EXPECT_NE(builder.fault(), "");
  builder.program.results[1].alias = 2;
  EXPECT_EQ(builder.fault(), "");
}

TEST(CheckTransfers, LoopsAreLookedInto) {
  Builder builder(1);
  builder.channel(0, "all_gather");
  builder.start(0, 0, 0, 1);
  While loop;
  loop.predicate = 5;
  loop.body.push_back({.operation = Copy{1, 2}});
  builder.list(0).push_back({.operation = loop});
  builder.wait(0, 0);
  EXPECT_NE(builder.fault().find("instructions[1].body[0]"), std::string::npos);
}

// A function copies operand 0 to operand 1 or its result, by way of a local.
TEST(CheckTransfers, RunsReadOperandsAndWriteResultsAndLocals) {
  Builder builder(1);
  builder.channel(0, "all_gather");
  Function function;
  function.operands = 2;
  function.results = 1;
  function.buffers = {{Space::Operand, 0, 0, 64, DType::F32, {16}, {}},
                      {Space::Operand, 0, 1, 64, DType::F32, {16}, {}},
                      {Space::Result, 0, 0, 64, DType::F32, {16}, {}},
                      {Space::Local, 0, 0, 64, DType::F32, {16}, {}}};
  function.instructions = {{.operation = Copy{0, 3}},
                           {.operation = Copy{3, 2}}};
  builder.program.functions = {function};
  RankClass &rankClass = builder.program.classes[0];
  builder.start(0, 0, 0, 1);
  builder.list(0).push_back(
      {.operation = whale::format::Run{0, {2, 3}, {4}, {}}});
  builder.wait(0, 0);
  auto faultOf = [&](std::vector<BufferIndex> operands, BufferIndex result,
                     int64_t local) {
    std::get<whale::format::Run>(builder.list(0)[1].operation) = {
        0, std::move(operands), {result}, {}};
    rankClass.locals[0] = {{local}};
    return builder.fault();
  };
  const std::string goesOn =
      ": transfer 0 may still go on, and this instruction ";
  const std::string list = "classes[0].instructions[1]: ";
  EXPECT_EQ(faultOf({2, 3}, 4, 320), "");
  EXPECT_EQ(faultOf({0, 3}, 4, 320), "");
  EXPECT_EQ(faultOf({2, 0}, 4, 320), "");
  EXPECT_EQ(faultOf({2, 1}, 4, 320),
            list + "buffer 1" + goesOn + "reads what it receives into");
  EXPECT_EQ(faultOf({2, 3}, 0, 320),
            list + "buffer 0" + goesOn + "writes what it sends");
  EXPECT_EQ(faultOf({2, 3}, 1, 320),
            list + "buffer 1" + goesOn + "writes what it receives into");
  EXPECT_EQ(faultOf({2, 3}, 4, 0),
            list + "local 0" + goesOn + "writes what it sends");
  // What it writes, in a loop too, it does not only read.
  builder.program.functions[0].instructions[1].operation =
      While{{{.operation = Copy{3, 1}}}, 2, {}};
  EXPECT_EQ(faultOf({0, 3}, 4, 320), "");
  EXPECT_EQ(faultOf({2, 0}, 4, 320),
            list + "buffer 0" + goesOn + "writes what it sends");
}

TEST(CheckTransfers, SlicesOfOnesOwnAreAtOnce) {
  Builder builder(1);
  builder.channel(0, "all_gather").channel(1, "local_slice");
  builder.start(0, 0, 0, 1);
  builder.start(0, 1, 2, 3);
  builder.wait(0, 1);
  builder.wait(0, 0);
  EXPECT_EQ(builder.fault(), "");
  std::get<Start>(builder.list(0)[1].operation).parts[0].src = 1;
  EXPECT_NE(builder.fault().find("reads what it receives"), std::string::npos);
}

// A copy between host and device is in another queue than exchanges, so none
// of either orders the other, whichever starts first.
TEST(CheckTransfers, CopiesOfHostsAreBesideExchanges) {
  struct Case {
    const char *copy;
    BufferIndex src, dst;
    const char *fault;
  };
  for (const Case &each : {
           Case{"host_to_device", 4, 0, "reads what it receives into"},
           Case{"host_to_device", 4, 1, "writes what it receives into"},
           Case{"device_to_host", 1, 4, "writes what it sends"},
           Case{"device_to_host", 0, 4, ""},
           Case{"host_to_device", 4, 5, ""},
       }) {
    Builder builder(1);
    builder.channel(0, "all_gather").channel(1, each.copy);
    builder.start(0, 1, each.src, each.dst);
    builder.start(0, 0, 0, 1);
    builder.wait(0, 1);
    builder.wait(0, 0);
    EXPECT_EQ(builder.fault(),
              *each.fault ? std::string("classes[0].instructions[1]: buffer ") +
                                (each.fault[0] == 'r' ? "0" : "1") +
                                ": transfer 0 may still go on, and this "
                                "instruction " +
                                each.fault
                          : "");
    // Once it is over, all may be used.
    std::swap(builder.list(0)[1], builder.list(0)[2]);
    std::get<Wait>(builder.list(0)[1].operation).transfer = 0;
    std::get<Wait>(builder.list(0)[3].operation).transfer = 1;
    EXPECT_EQ(builder.fault(), "");
  }
}

TEST(CheckTransfers, StartsInOtherOrdersAreFound) {
  Builder builder(2);
  builder.channel(4, "all_reduce").channel(7, "all_reduce");
  builder.start(0, 4, 0, 0);
  builder.start(0, 7, 1, 1);
  builder.wait(0, 0);
  builder.wait(0, 1);
  builder.start(1, 7, 1, 1);
  builder.start(1, 4, 0, 0);
  builder.wait(1, 0);
  builder.wait(1, 1);
  EXPECT_EQ(builder.fault(),
            "classes[0].instructions[2]: waits for transfer 0, and channel 4 "
            "is next in its queue: not all participants ever have it next; "
            "classes[1].instructions[2] waits too, where channel 7 is next");
  std::swap(builder.list(1)[0].operation, builder.list(1)[1].operation);
  EXPECT_EQ(builder.fault(), "");
}

TEST(CheckTransfers, SendsBlockUntilTheyAreReceived) {
  // Stage 0 sends two activations before it takes a gradient back; stage 1
  // gives the gradient back before it takes the second activation.
  auto make = [](bool receivesEarly) {
    Builder builder(2);
    builder.channel(0, "send_recv").channel(1, "send_recv");
    builder.start(0, 0, 0, {});
    builder.start(0, 0, 1, {});
    builder.start(0, 1, {}, 2);
    builder.wait(0, 2);
    builder.wait(0, 0);
    builder.wait(0, 1);
    builder.start(1, 0, {}, 0);
    builder.wait(1, 0);
    if (receivesEarly)
      builder.start(1, 0, {}, 1);
    builder.start(1, 1, 2, {});
    if (!receivesEarly) {
      builder.wait(1, 1);
      builder.start(1, 0, {}, 1);
      builder.wait(1, 2);
    } else {
      builder.wait(1, 2);
      builder.wait(1, 1);
    }
    return builder;
  };
  EXPECT_NE(make(false).fault(), "");
  EXPECT_EQ(make(true).fault(), "");
}

// Class 2 exchanges data with both others in its loop, and class 0 with class 1
// behind its loop, but before that of class 1: only one iteration is possible.
TEST(CheckTransfers, LoopsMayRunSeveralTimes) {
  Builder builder(2);
  builder.program.classes.push_back(builder.program.classes[1]);
  builder.starts.push_back(0);
  builder.channel(0, "all_reduce").channel(1, "all_reduce");
  builder.channel(2, "all_reduce");
  auto enclose = [&](size_t number, size_t begin) {
    auto &list = builder.list(number);
    While loop;
    loop.predicate = 5;
    loop.body.assign(list.begin() + begin, list.end());
    list.resize(begin);
    list.push_back({.operation = loop});
  };
  auto transfer = [&](size_t number, int64_t channel) {
    builder.start(number, channel, 1, 1);
    builder.wait(number, builder.starts[number] - 1);
  };
  transfer(0, 0);
  enclose(0, 0);
  transfer(0, 2);
  builder.start(1, 2, 2, 2);
  transfer(1, 1);
  enclose(1, 1);
  builder.wait(1, 0);
  transfer(2, 0);
  transfer(2, 1);
  EXPECT_NE(builder.fault(), "");
  enclose(2, 0);
  EXPECT_NE(builder.fault().find("waits for transfer"), std::string::npos);
  // Behind the loops of both there is an order.
  std::swap(builder.list(1)[0], builder.list(1)[1]);
  std::get<Start>(builder.list(1)[1].operation).transfer = 1;
  std::get<Wait>(builder.list(1)[2].operation).transfer = 1;
  auto &loop = std::get<While>(builder.list(1)[0].operation);
  std::get<Start>(loop.body[0].operation).transfer = 0;
  std::get<Wait>(loop.body[1].operation).transfer = 0;
  EXPECT_EQ(builder.fault(), "");
}

// A transfer is in one loop of all its participants, which run it equally
// often, or in one branch.
TEST(CheckTransfers, LoopsThatExchangeDataAreTheSame) {
  using List = std::vector<Instruction>;
  auto transfer = [](int64_t number) {
    return List{{.operation = Start{0, number, {{1, 1}}}},
                {.operation = Wait{number}}};
  };
  auto loop = [](List body, std::optional<int64_t> trips = {}) {
    return List{{.operation = While{{}, 5, std::move(body), trips}}};
  };
  auto choice = [](List first, List second) {
    return List{{.operation = Case{5, {std::move(first), std::move(second)}}}};
  };
  auto join = [](List first, const List &second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  auto faultOf = [](List first, List second) {
    Builder builder(2);
    builder.channel(0, "all_reduce");
    builder.list(0) = std::move(first);
    builder.list(1) = std::move(second);
    return builder.fault();
  };
  const std::string other =
      ": channel 0 is used in another loop or branch than by other ranks";
  EXPECT_EQ(faultOf(loop(transfer(0), 2), loop(transfer(0), 2)), "");
  EXPECT_EQ(faultOf(loop(transfer(0), 2), loop(transfer(0))), "");
  EXPECT_EQ(faultOf(loop(transfer(0), 2), loop(transfer(0), 3)),
            "classes[1].instructions[0].body[0]" + other);
  EXPECT_EQ(faultOf(loop(transfer(0)), transfer(0)),
            "classes[1].instructions[0]" + other);
  EXPECT_EQ(faultOf(loop(loop(transfer(0)), 2), loop(loop(transfer(0)), 3)),
            "classes[1].instructions[0].body[0].body[0]" + other);
  EXPECT_EQ(faultOf(loop(join(transfer(0), transfer(1))),
                    join(loop(transfer(0)), loop(transfer(1)))),
            "classes[1].instructions[1].body[0]" + other);
  EXPECT_EQ(faultOf(choice({}, transfer(0)), choice({}, transfer(0))), "");
  EXPECT_EQ(faultOf(choice({}, transfer(0)), choice(transfer(0), {})),
            "classes[1].instructions[0].branches[0][0]" + other);
}

} // namespace
