//===- CheckValuesTest.cpp - Values that bytes lose -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The check that each instruction of a program reads what it is meant to: the
// value that was last written into the very same buffer. Programs of one class
// are built by hand, right ones and the same with one change; most faults are
// compared word for word, with the place.
//
// What is written, sent and received at once may overlap in particular ways
// only. Loops count as run twice, and each branch may be taken. A fault that is
// not found would be a wrong plan of buffers, and so wrong numbers. Loops that
// are nested 128 deep must not take exponential time: a failure of that test is
// one that does not end.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/CheckValues.h"

#include "ProgramBuilder.h"

#include "gtest/gtest.h"

using namespace whale::format;

namespace {

/// One class; buffer 8 is an argument.
class Builder : public ProgramBuilder {
public:
  Builder() : ProgramBuilder(1) {
    add(Space::Argument, 0);
    channel(0, "all_gather");
  }
  BufferIndex add(Space space, int64_t offset, Shape shape = {16}) {
    std::vector<BufferInfo> &buffers = program.classes[0].buffers;
    buffers.push_back({space, offset, 0, 64, DType::F32, std::move(shape), {}});
    return static_cast<BufferIndex>(buffers.size() - 1);
  }
  void copy(BufferIndex src, BufferIndex dst) {
    ProgramBuilder::copy(0, src, dst);
  }
  void start(BufferIndex src, BufferIndex dst) {
    ProgramBuilder::start(0, 0, src, dst);
  }
  void run(int64_t function, std::vector<BufferIndex> operands,
           std::vector<BufferIndex> results) {
    list(0).push_back(
        {.operation = whale::format::Run{
             function, std::move(operands), std::move(results), {}}});
  }
  std::string fault() const { return describe(checkValues(program)); }
};

TEST(CheckValues, WhatIsReadWasGivenOrWritten) {
  Builder builder;
  builder.copy(8, 0);
  builder.copy(0, 1);
  EXPECT_EQ(builder.fault(), "");
  builder.copy(2, 1);
  EXPECT_EQ(builder.fault(), "classes[0].instructions[2]: buffer 2 is read "
                             "where no value is");
}

TEST(CheckValues, WhatIsWrittenOverIsNotRead) {
  Builder builder;
  BufferIndex shifted = builder.add(Space::Arena, 32);
  builder.copy(8, 0);
  builder.copy(8, shifted);
  EXPECT_EQ(builder.fault(), "");
  builder.copy(0, 3);
  EXPECT_EQ(builder.fault(), "classes[0].instructions[2]: buffer 0 is read "
                             "where buffer 9 of the class was written last");
}

TEST(CheckValues, AnotherBufferHoldsAnotherValueUnlessItSaysSo) {
  using Number = std::optional<int64_t>;
  for (auto [first, second] :
       {std::pair<Number, Number>{}, {0, {}}, {{}, 0}, {0, 1}, {2, 2}}) {
    Builder builder;
    BufferIndex written = builder.add(Space::Arena, 0);
    BufferIndex view = builder.add(Space::Arena, 0, Shape{4, 4});
    std::vector<BufferInfo> &buffers = builder.program.classes[0].buffers;
    buffers[written].value = first;
    buffers[view].value = second;
    builder.copy(8, written);
    builder.copy(view, 1);
    EXPECT_EQ(builder.fault().empty(), first && first == second);
  }
}

TEST(CheckValues, WhatIsWrittenLiesApartOrAtTheSameBytes) {
  Builder builder;
  BufferIndex shifted = builder.add(Space::Arena, 32);
  BufferIndex same = builder.add(Space::Arena, 0);
  builder.copy(8, 0);
  builder.copy(0, same);
  EXPECT_EQ(builder.fault(), "");
  builder.copy(same, shifted);
  EXPECT_EQ(builder.fault(), "classes[0].instructions[2]: buffer 9 is written "
                             "where buffer 10 is read by the same instruction");
}

TEST(CheckValues, ResultsAreReadAfterTheyAreWritten) {
  Builder builder;
  builder.program.results.resize(1);
  BufferIndex result = builder.add(Space::Result, 0);
  builder.copy(result, 0);
  EXPECT_NE(builder.fault(), "");
  // The old value of the argument, before it is written over.
  builder.program.results[0].alias = 0;
  EXPECT_EQ(builder.fault(), "");
}

TEST(CheckValues, TransfersFollowOneAnother) {
  Builder builder;
  BufferIndex shifted = builder.add(Space::Arena, 96);
  builder.copy(8, 0);
  builder.copy(8, 1);
  builder.start(1, 3);
  builder.start(0, shifted);
  EXPECT_EQ(builder.fault(), "");
  // What the second one receives is there when the third one sends.
  builder.start(1, 4);
  EXPECT_EQ(builder.fault(), "classes[0].instructions[4]: buffer 1 is read "
                             "where buffer 9 of the class was written last");
}

// What is sent and received in one place may be several values side by side.
TEST(CheckValues, TransfersOfValuesSideBySide) {
  Builder builder;
  std::vector<BufferInfo> &buffers = builder.program.classes[0].buffers;
  auto whole = static_cast<BufferIndex>(buffers.size());
  buffers.push_back({Space::Arena, 64, 0, 128, DType::F32, {32}, {}});
  builder.copy(8, 1);
  builder.copy(8, 2);
  builder.start(whole, whole);
  builder.copy(2, 3);
  EXPECT_EQ(builder.fault(), "");
  // Neither one alone, nor two with a gap, nor what is only beside.
  builder.list(0).erase(builder.list(0).begin());
  EXPECT_EQ(builder.fault(), "classes[0].instructions[1]: buffer 9 is read "
                             "where buffer 2 of the class was written last");
  buffers.push_back({Space::Arena, 64, 0, 32, DType::F32, {8}, {}});
  builder.list(0).insert(builder.list(0).begin(), makeCopy(8, whole + 1));
  EXPECT_NE(builder.fault(), "");
  builder.list(0).insert(builder.list(0).begin(), makeCopy(8, 3));
  EXPECT_NE(builder.fault(), "");
}

TEST(CheckValues, ReceivedElsewhereIsOneValue) {
  Builder builder;
  std::vector<BufferInfo> &buffers = builder.program.classes[0].buffers;
  auto sent = static_cast<BufferIndex>(buffers.size());
  buffers.push_back({Space::Arena, 64, 0, 128, DType::F32, {32}, {}});
  buffers.push_back({Space::Arena, 192, 0, 128, DType::F32, {32}, {}});
  builder.copy(8, 1);
  builder.copy(8, 2);
  builder.start(sent, sent + 1);
  builder.channel(0, "send_recv");
  EXPECT_EQ(builder.fault(), "");
  builder.copy(3, 6);
  EXPECT_EQ(builder.fault(), "classes[0].instructions[3]: buffer 3 is read "
                             "where buffer 10 of the class was written last");
  // A gather gives back the values side by side that were reduced in parts;
  // those that are not written over stay.
  builder.channel(0, "all_gather");
  EXPECT_EQ(builder.fault(), "");
  builder.copy(8, 3);
  builder.copy(3, 6);
  EXPECT_EQ(builder.fault(), "");
}

// A function copies its operand to its result, by way of its local.
TEST(CheckValues, RunsAreLookedInto) {
  Builder builder;
  Function function;
  function.operands = function.results = 1;
  function.buffers = {{Space::Operand, 0, 0, 64, DType::F32, {16}, {}},
                      {Space::Result, 0, 0, 64, DType::F32, {16}, {}},
                      {Space::Local, 0, 0, 64, DType::F32, {16}, {}}};
  function.instructions = {makeCopy(0, 2), makeCopy(2, 1)};
  builder.program.functions = {function};
  builder.program.classes[0].locals[0] = {{64}};
  builder.copy(8, 0);
  builder.run(0, {0}, {2});
  builder.copy(2, 3);
  EXPECT_EQ(builder.fault(), "");
  // The local is where the operand does.
  builder.program.classes[0].locals[0] = {{0}};
  EXPECT_EQ(builder.fault(),
            "classes[0].instructions[1]: functions[0].instructions[0]: buffer "
            "2 is written where buffer 0 is read by the same instruction");
  // It is read before it is written, where another run has written it.
  builder.program.functions.push_back(function);
  builder.program.functions[1].instructions = {makeCopy(2, 1)};
  builder.program.classes[0].locals = {{0, {{64}}}, {1, {{64}}}};
  builder.run(1, {0}, {2});
  EXPECT_EQ(builder.fault(),
            "classes[0].instructions[3]: functions[1].instructions[0]: buffer "
            "2 is read where a local of a function was written last");
}

TEST(CheckValues, LoopsRunTwice) {
  Builder builder;
  BufferIndex same = builder.add(Space::Arena, 0);
  builder.copy(8, 0);
  builder.copy(8, 5);
  While loop;
  loop.predicate = 5;
  loop.body = {makeCopy(0, 1)};
  builder.list(0).push_back({.operation = loop});
  EXPECT_EQ(builder.fault(), "");
  // The next turn reads it again.
  While &inner = std::get<While>(builder.list(0)[2].operation);
  inner.body.push_back(makeCopy(8, same));
  EXPECT_EQ(builder.fault(),
            "classes[0].instructions[2].body[0]: buffer 0 is read where buffer "
            "9 of the class was written last");
  // The turn of a loop outside does, too.
  While outer;
  outer.predicate = 5;
  inner.body.erase(inner.body.begin());
  outer.body = {makeCopy(0, 1), {.operation = inner}};
  builder.list(0)[2].operation = outer;
  EXPECT_EQ(builder.fault(),
            "classes[0].instructions[2].body[0]: buffer 0 is read where buffer "
            "9 of the class was written last");
}

TEST(CheckValues, DeepLoopsAreCheckedInTime) {
  Builder builder;
  builder.copy(8, 5);
  builder.list(0).push_back(makeDeepLoops(makeCopy(8, 0), 5));
  EXPECT_EQ(builder.fault(), "");
}

TEST(CheckValues, EachBranchMayBeTaken) {
  auto faultOf = [](std::vector<Instruction> first,
                    std::vector<Instruction> second,
                    std::optional<int64_t> value = std::nullopt) {
    Builder builder;
    BufferIndex same = builder.add(Space::Arena, 0);
    EXPECT_EQ(same, 9u);
    for (BufferIndex buffer : {BufferIndex(0), same})
      builder.program.classes[0].buffers[buffer].value = value;
    builder.copy(8, 0);
    builder.copy(8, 5);
    Case choice;
    choice.index = 5;
    choice.branches = {std::move(first), std::move(second)};
    builder.list(0).push_back({.operation = choice});
    builder.copy(0, 1);
    return builder.fault();
  };
  EXPECT_EQ(faultOf({makeCopy(0, 1)}, {makeCopy(0, 2)}), "");
  EXPECT_EQ(faultOf({makeCopy(8, 9), makeCopy(8, 0)}, {makeCopy(0, 2)}), "");
  const std::string lost =
      "classes[0].instructions[3]: buffer 0 is read where no value is";
  EXPECT_EQ(faultOf({makeCopy(8, 9)}, {makeCopy(0, 2)}), lost);
  EXPECT_EQ(faultOf({makeCopy(0, 2)}, {makeCopy(8, 9)}).empty(), false);
  // A branch updates, as another type, what the other one leaves.
  EXPECT_EQ(faultOf({makeCopy(8, 9)}, {makeCopy(0, 2)}, 3), "");
  EXPECT_EQ(faultOf({makeCopy(0, 2)}, {makeCopy(8, 9)}, 3), "");
}

} // namespace
