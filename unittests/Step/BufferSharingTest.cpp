//===- BufferSharingTest.cpp - Tests of values side by side -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values that are side by side in one buffer, as the parts of a joined
// all-reduce are: which parts are made in their place, and which have to be
// copied there or back. Offsets, sizes of arenas and numbers of copies are
// worked out by hand; the verifier must refuse plans with one part elsewhere.
//
// 3,000 random functions with packs and unpacks must have a valid plan. A copy
// too many here is memory traffic for each gradient; a part in the wrong place
// is a wrong gradient.
//
//===----------------------------------------------------------------------===//

#include "BufferBuilder.h"

using namespace whale;

namespace {

/// Where a value is, from the start of the arena.
int64_t offsetOf(const BufferPlan &plan, unsigned value) {
  const PlannedBuffer &buffer = plan.buffers[plan.bufferOf[value]];
  EXPECT_EQ(buffer.space, BufferSpace::Arena);
  return buffer.offset;
}

TEST(BufferSharing, PartsAreWrittenAndReadSideBySide) {
  BufferBuilder b;
  unsigned x = b.argument(64);
  unsigned parts[] = {b.op({x}, 192), b.op({x}, 64), b.op({x}, 16)};
  auto sums = b.together(b.function.body, parts);
  unsigned last = b.op(sums, 4);
  b.results({last});
  BufferPlan plan = b.plan();
  EXPECT_EQ(copyCount(plan), 0u);
  EXPECT_EQ(plan.arenaBytes, 320);
  EXPECT_EQ(offsetOf(plan, parts[1]), offsetOf(plan, parts[0]) + 192);
  EXPECT_EQ(offsetOf(plan, parts[2]), offsetOf(plan, parts[1]) + 64);
  for (auto [part, sum] : llvm::zip_equal(parts, sums))
    EXPECT_EQ(plan.bufferOf[part], plan.bufferOf[sum]);
}

// An accumulator is a part from its first term on.
TEST(BufferSharing, AccumulatorsArePartsFromTheirFirstTermOn) {
  BufferBuilder b;
  unsigned x = b.argument(64);
  unsigned sums[] = {b.op({x}, 256), b.op({x}, 64)};
  for (int i = 0; i < 4; ++i)
    for (unsigned &sum : sums)
      sum = b.op({sum, x}, b.function.values[sum].bytes, {{0, 0, i % 2 == 0}});
  b.results({b.op(b.together(b.function.body, sums), 4)});
  BufferPlan plan = b.plan();
  EXPECT_EQ(copyCount(plan), 0u);
  EXPECT_EQ(plan.arenaBytes, 320);
}

// Each of the copied parts has a place already, or is needed later as it is.
TEST(BufferSharing, OthersAreCopied) {
  BufferBuilder b;
  unsigned x = b.argument(64);
  unsigned fixed = b.constant(64), twice = b.op({x}, 64), kept = b.op({x}, 64);
  unsigned misaligned = b.op({x}, 8), behind = b.op({x}, 64);
  auto sums = b.together(b.function.body,
                         {x, fixed, twice, twice, kept, misaligned, behind});
  sums.push_back(kept);
  unsigned last = b.op(sums, 64);
  b.results({last, sums[2]});
  BufferPlan plan = b.plan();
  // In: the argument, the constant, the second and the one needed later, and
  // the one that is not aligned. Out: the one that is a result, and the one
  // that is not aligned. That of 8 bytes is aligned, that behind it is not.
  size_t in = 0, out = 0;
  for (auto [instr, copies] :
       llvm::zip_equal(b.function.body.instrs, plan.before)) {
    if (instr.kind == BufferInstr::Pack)
      in = copies.size();
    else if (instr.kind == BufferInstr::Unpack)
      out = copies.size();
    else
      EXPECT_TRUE(copies.empty());
  }
  EXPECT_EQ(in, 5u);
  EXPECT_EQ(out, 2u);
  EXPECT_EQ(plan.buffers[plan.bufferOf[sums[2]]].space, BufferSpace::Result);
}

// The update is computed in the result's buffer, not in the part.
TEST(BufferSharing, ResultsAreNotInParts) {
  BufferBuilder b;
  unsigned x = b.argument(64);
  unsigned parts[] = {b.op({x}, 64), b.op({x}, 64)};
  auto sums = b.together(b.function.body, parts);
  b.results({b.op({sums[0]}, 64, {{0, 0}}), b.op({sums[1]}, 64, {{0, 0}})});
  EXPECT_EQ(copyCount(b.plan()), 0u);
}

TEST(BufferSharing, NothingElseIsInThePartsWhileTheyAreNeeded) {
  BufferBuilder b;
  unsigned x = b.argument(64);
  unsigned early = b.op({x}, 64);
  unsigned between = b.op({x}, 64);
  b.op({between}, 0);
  unsigned late = b.op({x}, 64);
  auto sums = b.together(b.function.body, {early, late});
  b.op({sums[0]}, 0);
  unsigned behind = b.op({x}, 64);
  b.op({behind}, 0);
  b.results({b.op({sums[1]}, 4)});
  BufferPlan plan = b.plan();
  EXPECT_EQ(copyCount(plan), 0u);
  EXPECT_EQ(plan.arenaBytes, 128);
  // The second part is free before it is made, the first behind its use.
  EXPECT_EQ(offsetOf(plan, between), offsetOf(plan, late));
  EXPECT_EQ(offsetOf(plan, behind), offsetOf(plan, early));
}

TEST(BufferSharing, VerifierFindsPartsElsewhere) {
  BufferBuilder b;
  unsigned x = b.argument(64);
  unsigned parts[] = {b.op({x}, 64), b.op({x}, 64)};
  auto sums = b.together(b.function.body, parts);
  b.results({b.op(sums, 4)});
  BufferPlan plan = b.plan();
  BufferPlan swapped = plan;
  std::swap(swapped.bufferOf[parts[0]], swapped.bufferOf[parts[1]]);
  std::optional<std::string> error = verifyBufferPlan(b.function, swapped);
  ASSERT_TRUE(error);
  EXPECT_NE(error->find("is not in its range of value"), std::string::npos);
  swapped = plan;
  std::swap(swapped.bufferOf[sums[0]], swapped.bufferOf[sums[1]]);
  error = verifyBufferPlan(b.function, swapped);
  ASSERT_TRUE(error);
  EXPECT_NE(error->find("an unpack does not leave"), std::string::npos);
  BufferPlan outside = plan;
  outside.buffers[plan.bufferOf[parts[1]]].offset += 64;
  error = verifyBufferPlan(b.function, outside);
  ASSERT_TRUE(error);
  EXPECT_NE(error->find("is outside the arena"), std::string::npos);
  BufferPlan early = plan;
  early.buffers[plan.bufferOf[parts[0]]].offset += 8;
  error = verifyBufferPlan(b.function, early);
  ASSERT_TRUE(error);
  EXPECT_NE(error->find("is not aligned"), std::string::npos);
}

TEST(BufferSharing, RandomPrograms) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    RandomBuffers random;
    random.engine.seed(seed);
    random.packs = true;
    random.planFunction();
    if (HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
}

} // namespace
