//===- CopyBoxTest.cpp - Copies past the caches copy the same -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyBox.h"

#include <gtest/gtest.h>
#include <random>

namespace whale::runtime {
namespace {

/// Both ways to copy write the same bytes, and no others, wherever runs begin
/// and end in a line.
TEST(CopyBox, IsTheSamePastTheCaches) {
  std::mt19937 random(1);
  auto upTo = [&](int64_t most) {
    return static_cast<int64_t>(random() % (most + 1));
  };
  int streamed = 0;
  for (int round = 0; round < 30; ++round) {
    int64_t run = 1 + upTo(1500), rows = 1 + upTo(40), planes = 1 + upTo(12);
    int64_t toRow = run + upTo(100), fromRow = run + upTo(100);
    std::vector<CopyLoop> loops = {
        {rows, toRow, fromRow},
        {planes, toRow * rows + upTo(64), fromRow * rows + upTo(64)}};
    if (round % 10 == 0) {
      run *= rows * planes;
      loops.clear();
    }
    int64_t begin = upTo(130);
    std::vector<uint8_t> from(1 << 20), to(from), expected(from);
    for (uint8_t &byte : from)
      byte = static_cast<uint8_t>(random());
    copyLoops(expected.data() + begin, from.data() + 3, run, loops);
    bool isStreamed =
        streamLoops(to.data() + begin, from.data() + 3, run, loops);
    ASSERT_EQ(to, expected);
    int64_t bytes = loops.empty() ? run : run * rows * planes;
    EXPECT_EQ(isStreamed, run >= 256 && bytes >= 256 << 10);
    streamed += isStreamed;
  }
  EXPECT_GT(streamed, 2);
  EXPECT_LT(streamed, 25);
  streamLoops(nullptr, nullptr, 0, {});
}

} // namespace
} // namespace whale::runtime
