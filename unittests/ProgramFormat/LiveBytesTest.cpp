//===- LiveBytesTest.cpp ----------------------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/LiveBytes.h"

#include "ProgramBuilder.h"

#include "gtest/gtest.h"

using namespace whale::format;

namespace {

/// One class; buffer 8 is an argument, those before have 64 bytes each.
class Builder : public ProgramBuilder {
public:
  Builder() : ProgramBuilder(1) {
    add(Space::Argument, 0, 64);
    channel(0, "all_gather");
  }
  BufferIndex add(Space space, int64_t offset, int64_t bytes) {
    std::vector<BufferInfo> &buffers = program.classes[0].buffers;
    buffers.push_back({space, offset, 0, bytes, DType::F32, {bytes / 4}, {}});
    return static_cast<BufferIndex>(buffers.size() - 1);
  }
  void copy(BufferIndex src, BufferIndex dst) {
    ProgramBuilder::copy(0, src, dst);
  }
  int64_t live() const { return findLiveBytes(program, program.classes[0]); }
};

TEST(LiveBytes, FromTheWriteToTheLastRead) {
  Builder builder;
  EXPECT_EQ(builder.live(), 0);
  builder.copy(8, 0);
  EXPECT_EQ(builder.live(), 64);
  // What is written while another one is read.
  builder.copy(0, 1);
  EXPECT_EQ(builder.live(), 128);
  // Nothing reads 0 again, wherever the next ones are.
  builder.copy(1, 2);
  builder.copy(2, 3);
  EXPECT_EQ(builder.live(), 128);
  builder.copy(0, 8);
  EXPECT_EQ(builder.live(), 192);
}

TEST(LiveBytes, OfEachInstruction) {
  Builder builder;
  auto each = [&] {
    return findLiveBytesOfEach(builder.program, builder.program.classes[0]);
  };
  EXPECT_TRUE(each().empty());
  builder.copy(8, 0);
  builder.copy(0, 1);
  builder.copy(1, 8);
  builder.copy(8, 2);
  EXPECT_EQ(each(), (std::vector<int64_t>{64, 128, 64, 64}));
}

TEST(LiveBytes, EachByteByItself) {
  Builder builder;
  BufferIndex whole = builder.add(Space::Arena, 0, 128);
  BufferIndex inner = builder.add(Space::Arena, 32, 32);
  builder.copy(8, whole);
  EXPECT_EQ(builder.live(), 128);
  // Of the first half some bytes are written again before they are read.
  builder.copy(8, 4);
  builder.copy(8, inner);
  builder.copy(0, 8);
  EXPECT_EQ(builder.live(), 128);
  builder.copy(1, 8);
  EXPECT_EQ(builder.live(), 160);
}

TEST(LiveBytes, InPlaceTakesNoMore) {
  Builder builder;
  BufferIndex same = builder.add(Space::Arena, 0, 64);
  builder.copy(8, 0);
  builder.copy(0, same);
  builder.copy(same, 8);
  EXPECT_EQ(builder.live(), 64);
}

TEST(LiveBytes, TransfersUseBothBuffersUntilTheWait) {
  for (bool isWaitLate : {false, true}) {
    Builder builder;
    builder.copy(8, 0);
    builder.start(0, 0, 0, 1);
    if (!isWaitLate)
      builder.wait(0, 0);
    builder.copy(8, 2);
    if (isWaitLate)
      builder.wait(0, 0);
    EXPECT_EQ(builder.live(), isWaitLate ? 192 : 128);
  }
}

TEST(LiveBytes, WhatTheNextIterationReadsIsKept) {
  Builder builder;
  builder.copy(8, 0);
  builder.copy(8, 5);
  While loop;
  loop.predicate = 5;
  loop.body = {makeCopy(0, 1), makeCopy(8, 2)};
  builder.list(0).push_back({.operation = loop});
  // The predicate, what is read again, and what is written.
  EXPECT_EQ(builder.live(), 192);
}

TEST(LiveBytes, DeepLoopsTakeNoLonger) {
  Builder builder;
  builder.copy(8, 5);
  builder.list(0).push_back(makeDeepLoops(makeCopy(8, 0), 5));
  EXPECT_EQ(builder.live(), 128);
}

TEST(LiveBytes, FunctionsUseTheirLocalsAndTheBuffersOfTheirCaller) {
  Builder builder;
  Function function;
  for (auto [space, index] :
       {std::pair(Space::Operand, 0), {Space::Result, 0}, {Space::Local, 0}})
    function.buffers.push_back({space, 0, index, 64, DType::F32, {16}, {}});
  function.instructions = {makeCopy(0, 2), makeCopy(2, 1)};
  builder.program.functions.push_back(function);
  builder.program.classes[0].locals[0] = {{512}};
  builder.copy(8, 0);
  builder.list(0).push_back({.operation = whale::format::Run{0, {0}, {1}, {}}});
  EXPECT_EQ(builder.live(), 128);
  // The operand is kept for what follows.
  builder.copy(0, 8);
  EXPECT_EQ(builder.live(), 192);
}

} // namespace
