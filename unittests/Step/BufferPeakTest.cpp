//===- BufferPeakTest.cpp - Tests of what is held at the peak ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/BufferPeak.h"

#include "BufferBuilder.h"

using namespace whale;

namespace {

TEST(BufferPeak, ListsWhatIsAliveWhenMostIs) {
  BufferBuilder b;
  unsigned x = b.argument(1 << 20);
  unsigned small = b.op({x}, 64);
  unsigned large = b.op({small}, 4096);
  unsigned kept = b.op({large}, 256);
  unsigned last = b.op({kept, small}, 128);
  b.results({b.op({last}, 4)});
  std::vector<HeldValue> expected = {{std::nullopt, small, 64},
                                     {std::nullopt, large, 4096},
                                     {std::nullopt, kept, 256}};
  std::vector<HeldValue> held =
      findPeak(b.function, planBuffers(b.function, {}));
  llvm::sort(held, [](const HeldValue &p, const HeldValue &q) {
    return p.value < q.value;
  });
  EXPECT_EQ(held, expected);
}

TEST(BufferPeak, CountsABufferThatPassesOnOnce) {
  BufferBuilder b;
  unsigned x = b.op({}, 4096);
  unsigned y = b.op({x}, 4096, {{0, 0}});
  b.results({b.op({y}, 4)});
  std::vector<HeldValue> held =
      findPeak(b.function, planBuffers(b.function, {}));
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held.front().bytes, 4096);
}

TEST(BufferPeak, NamesTheSegmentThatRuns) {
  BufferBuilder inner, outer;
  unsigned small = inner.op({inner.argument(4096)}, 64);
  inner.results({inner.op({small}, 128)});
  SegmentPlan segment = planSegment(inner.function, {});
  outer.function.segments = {&segment};
  unsigned x = outer.op({}, 4096);
  unsigned first = outer.call(0, x).front();
  unsigned second = outer.call(0, x).front();
  outer.results({outer.op({first, second}, 4)});
  BufferPlan plan = planBuffers(outer.function, {});
  int64_t bytes = 0;
  bool isInside = false;
  for (const HeldValue &held : findPeak(outer.function, plan)) {
    bytes += held.bytes;
    isInside |= held == HeldValue{0, small, 64, 0};
  }
  EXPECT_TRUE(isInside);
  // First in the first call, beside its result; in the second one, beside that
  // of the first, it is as much.
  EXPECT_EQ(bytes, 4096 + 128 + 64);
  EXPECT_EQ(plan.arenaBytes, bytes);
}

TEST(BufferPeak, EmptyWhereNothingIsInTheArena) {
  BufferBuilder b;
  b.results({b.op({b.argument(64)}, 64)});
  EXPECT_TRUE(findPeak(b.function, planBuffers(b.function, {})).empty());
}

} // namespace
