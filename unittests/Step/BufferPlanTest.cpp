//===- BufferPlanTest.cpp - Tests of the buffer planner ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The buffer planner for functions without calls: which values share a buffer,
// what is computed in place, which arguments give their buffers to results, and
// how many copies are left. Sizes of arenas and numbers of copies are worked
// out by hand for small functions.
//
// 3,000 random functions must have a valid plan, and the verifier itself must
// refuse plans with one fault. On 50 functions like training steps, arenas may
// exceed what is alive at most by 0.2% in sum. Loops that are nested 60 deep
// must not take exponential time: a failure of that test is one that does not
// end.
//
//===----------------------------------------------------------------------===//

#include "BufferBuilder.h"
#include "whale/Step/BufferPeak.h"

#include <functional>

using namespace whale;

namespace {

TEST(BufferPlan, ChainReusesTwoBuffers) {
  BufferBuilder b;
  unsigned x = b.argument(1024);
  for (int i = 0; i < 10; ++i)
    x = b.op({x}, 1024);
  b.results({x});
  BufferPlan plan = b.plan();
  EXPECT_EQ(plan.arenaBytes, 2048);
  EXPECT_EQ(copyCount(plan), 0u);
  EXPECT_EQ(plan.buffers[plan.bufferOf[x]].space, BufferSpace::Result);
}

// Placed by size, the third value lands where the fourth has no room: 640.
TEST(BufferPlan, ArenaIsNoLargerThanWhatIsAlive) {
  BufferBuilder b;
  unsigned a0 = b.op({}, 256), a1 = b.op({}, 192);
  b.op({a0}, 0);
  unsigned a2 = b.op({}, 192), a3 = b.op({}, 192);
  for (unsigned last : {a2, a1, a3})
    b.op({last}, 0);
  b.results({});
  EXPECT_EQ(b.plan().arenaBytes, 576);
}

// Layers of a few sizes whose values are read again from the last to the first,
// as a training step does.
TEST(BufferPlan, ArenaOfATrainingStepWastesLittle) {
  int64_t arenas = 0, alive = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 engine(seed);
    auto size = [&] { return 64 * int64_t(1 + engine() % 40); };
    BufferBuilder b;
    std::vector<unsigned> kept;
    unsigned x = b.op({}, size());
    for (int layer = 0; layer < 30; ++layer) {
      kept.push_back(x);
      x = b.op({b.op({x}, size()), x}, size());
    }
    while (!kept.empty()) {
      unsigned y = b.op({x, kept.back()}, size());
      x = b.op({x, y, kept.back()}, b.function.values[kept.back()].bytes);
      kept.pop_back();
    }
    b.results({});
    BufferPlan plan = b.plan();
    arenas += plan.arenaBytes;
    for (const HeldValue &held : findPeak(b.function, plan))
      alive += held.bytes;
  }
  EXPECT_GE(arenas, alive);
  EXPECT_LE(arenas, 1.002 * alive);
}

TEST(BufferPlan, InPlaceChainNeedsOne) {
  BufferBuilder b;
  unsigned x = b.argument(1000);
  x = b.op({x}, 1000);
  for (int i = 0; i < 10; ++i)
    x = b.op({x}, 1000, {{0, 0}});
  b.results({b.op({x}, 4)});
  EXPECT_EQ(b.plan().arenaBytes, 1024);
}

TEST(BufferPlan, NotInPlaceWhereOperandIsReadLater) {
  BufferBuilder b;
  unsigned x = b.op({b.argument(64)}, 64);
  unsigned y = b.op({x}, 64, {{0, 0}});
  b.results({b.op({x, y}, 4)});
  BufferPlan plan = b.plan();
  EXPECT_NE(plan.bufferOf[x], plan.bufferOf[y]);
}

TEST(BufferPlan, NotInPlaceForDeadResultOfLiveOperand) {
  BufferBuilder b;
  unsigned x = b.op({b.argument(64)}, 64);
  b.op({x}, 64, {{0, 0}});
  b.results({b.op({x}, 4)});
  b.plan();
}

TEST(BufferPlan, NotInPlaceWhereAnotherPositionForbidsIt) {
  BufferBuilder b;
  unsigned x = b.op({b.argument(64)}, 64);
  unsigned y = b.op({x, b.view(b.function.body, x)}, 64, {{0, 0}});
  b.results({y});
  BufferPlan plan = b.plan();
  EXPECT_NE(plan.bufferOf[x], plan.bufferOf[y]);
}

TEST(BufferPlan, ViewSharesItsOperand) {
  BufferBuilder b;
  unsigned x = b.op({b.argument(64)}, 64);
  unsigned v = b.view(b.function.body, x);
  b.results({b.op({v}, 4)});
  BufferPlan plan = b.plan();
  EXPECT_EQ(plan.bufferOf[x], plan.bufferOf[v]);
}

TEST(BufferPlan, DonatedArgumentTakesItsResultAfterItsLastRead) {
  for (bool late : {false, true}) {
    BufferBuilder b;
    unsigned w = b.argument(64), g = b.argument(64);
    unsigned next = b.op({w, g}, 64, {{0, 0}});
    unsigned other = b.op({late ? w : g, next}, 64);
    b.results({next, other});
    std::pair<unsigned, unsigned> alias{0, 0};
    BufferPlan plan = b.plan(alias);
    // Read after the update: the result needs a place of its own.
    EXPECT_EQ(plan.alias[0].has_value(), !late);
    EXPECT_EQ(copyCount(plan), 0u);
  }
}

TEST(BufferPlan, DonatedArgumentReturnedUnchanged) {
  BufferBuilder b;
  unsigned w = b.argument(64);
  b.results({w, w});
  std::pair<unsigned, unsigned> alias{0, 0};
  BufferPlan plan = b.plan(alias);
  EXPECT_EQ(plan.alias[0], 0u);
  EXPECT_EQ(plan.alias[1], std::nullopt);
  EXPECT_EQ(copyCount(plan), 1u);
}

// A device of another stage: what it returns may be made of anything, as of a
// constant.
TEST(BufferPlan, DonatedEmptyShareTakesItsResult) {
  BufferBuilder b;
  b.argument(0);
  b.results({b.constant(0)});
  std::pair<unsigned, unsigned> alias{0, 0};
  BufferPlan plan = b.plan(alias);
  EXPECT_EQ(plan.alias[0], 0u);
  EXPECT_EQ(plan.resultBuffer[0], plan.bufferOf[b.function.body.args[0]]);
  EXPECT_EQ(copyCount(plan), 0u);
}

TEST(BufferPlan, ArgumentsConstantsAndDuplicatesAreCopied) {
  BufferBuilder b;
  unsigned w = b.argument(64), c = b.constant(64);
  unsigned x = b.op({w, c}, 64, {{0, 0}, {0, 1}});
  b.results({w, c, x, x});
  BufferPlan plan = b.plan();
  EXPECT_EQ(plan.atEnd[0].size(), 3u);
}

TEST(BufferPlan, CarryUpdatedInPlaceIsNotCopied) {
  BufferBuilder b;
  unsigned n = b.op({}, 4), ys = b.op({}, 4096);
  BufferInstr loop = b.loop({n, ys});
  BufferRegion &body = loop.regions[1];
  unsigned y = b.op(body, {body.args[0]}, 64);
  unsigned next = b.op(body, {body.args[1], y, body.args[0]}, 4096,
                       {{0, 0, /*required=*/true}});
  unsigned count = b.op(body, {body.args[0]}, 4, {{0, 0}});
  body.yields = {count, next};
  b.function.body.instrs.push_back(loop);
  b.results({b.op({loop.results[1]}, 8)});
  BufferPlan plan = b.plan();
  EXPECT_EQ(copyCount(plan), 0u);
  EXPECT_LT(plan.arenaBytes, 4096 + 512);
}

TEST(BufferPlan, CarryThatIsReadAfterItsUpdateIsCopied) {
  BufferBuilder b;
  unsigned n = b.op({}, 4), ys = b.op({}, 4096);
  BufferInstr loop = b.loop({n, ys});
  BufferRegion &body = loop.regions[1];
  unsigned next = b.op(body, {body.args[1], body.args[0]}, 4096,
                       {{0, 0, /*required=*/true}});
  unsigned count = b.op(body, {body.args[0], body.args[1]}, 4);
  body.yields = {count, next};
  b.function.body.instrs.push_back(loop);
  b.results({loop.results[1]});
  BufferPlan plan = b.plan();
  EXPECT_GT(copyCount(plan), 0u);
}

TEST(BufferPlan, UnchangedCarrySharesTheOuterBuffer) {
  BufferBuilder b;
  unsigned n = b.argument(4), xs = b.argument(4096);
  BufferInstr loop = b.loop({n, xs});
  BufferRegion &body = loop.regions[1];
  unsigned count = b.op(body, {body.args[0], body.args[1]}, 4, {{0, 0}});
  body.yields = {count, b.view(body, body.args[1])};
  b.function.body.instrs.push_back(loop);
  b.results({loop.results[0]});
  BufferPlan plan = b.plan();
  EXPECT_EQ(plan.bufferOf[loop.results[1]], plan.bufferOf[xs]);
  // The counter alone is copied: its argument must survive.
  EXPECT_EQ(copyCount(plan), 1u);
}

TEST(BufferPlan, SwappedCarriesGoThroughASpareBuffer) {
  BufferBuilder b;
  unsigned n = b.op({}, 4), x = b.op({}, 64), y = b.op({}, 64);
  BufferInstr loop = b.loop({n, x, y});
  BufferRegion &body = loop.regions[1];
  unsigned count = b.op(body, {body.args[0]}, 4, {{0, 0}});
  body.yields = {count, body.args[2], body.args[1]};
  b.function.body.instrs.push_back(loop);
  b.results({loop.results[1], loop.results[2]});
  BufferPlan plan = b.plan();
  EXPECT_EQ(copyCount(plan), 3u);
}

TEST(BufferPlan, ValueOfOutsideSurvivesTheLoop) {
  BufferBuilder b;
  unsigned n = b.op({}, 4), x = b.op({}, 64);
  BufferInstr loop = b.loop({n});
  BufferRegion &body = loop.regions[1];
  // Read first, then a temporary of the same size is written.
  unsigned a = b.op(body, {x, body.args[0]}, 64, {{0, 0}});
  unsigned t = b.op(body, {a}, 64);
  body.yields = {b.op(body, {t}, 4)};
  b.function.body.instrs.push_back(loop);
  b.results({loop.results[0]});
  BufferPlan plan = b.plan();
  EXPECT_NE(plan.bufferOf[x], plan.bufferOf[a]);
}

TEST(BufferPlan, NestedLoopsTakeNoLongerThanOthers) {
  BufferBuilder b;
  unsigned x = b.argument(64);
  std::function<unsigned(BufferRegion &, unsigned, int)> nest =
      [&](BufferRegion &region, unsigned init, int depth) {
        if (depth == 0)
          return b.op(region, {init}, 64);
        BufferInstr instr = b.loop({init});
        unsigned arg = instr.regions[1].args[0];
        instr.regions[1].yields = {nest(instr.regions[1], arg, depth - 1)};
        region.instrs.push_back(instr);
        return instr.results[0];
      };
  b.results({nest(b.function.body, x, 60)});
  b.plan();
}

TEST(BufferPlan, VerifierFindsWhatALoopOverwrites) {
  BufferBuilder b;
  unsigned x = b.argument(64);
  unsigned outside = b.op({x}, 64);
  BufferInstr loop = b.loop({x});
  BufferRegion &body = loop.regions[1];
  unsigned read = b.op(body, {outside, body.args[0]}, 64);
  unsigned late = b.op(body, {read}, 64);
  body.yields = {b.op(body, {read, late}, 64)};
  b.function.body.instrs.push_back(loop);
  b.results({loop.results[0]});
  BufferPlan plan = b.plan();
  // Written after the first iteration has read it.
  plan.bufferOf[late] = plan.bufferOf[outside];
  EXPECT_TRUE(verifyBufferPlan(b.function, plan));
}

TEST(BufferPlan, BranchThatPassesAValueOnTakesItsBuffer) {
  BufferBuilder b;
  unsigned index = b.argument(4), x = b.op({}, 4096);
  BufferInstr instr;
  instr.kind = BufferInstr::Case;
  instr.operands = {index};
  instr.regions.resize(2);
  instr.regions[0].yields = {x};
  instr.regions[1].yields = {b.op(instr.regions[1], {x}, 4096, {{0, 0}})};
  instr.results = {b.value(4096)};
  b.function.body.instrs.push_back(instr);
  b.results({b.op({instr.results[0]}, 4)});
  BufferPlan plan = b.plan();
  EXPECT_EQ(copyCount(plan), 0u);
  EXPECT_EQ(plan.arenaBytes, 4096);
}

TEST(BufferPlan, NotInPlaceAcrossElementTypes) {
  BufferBuilder b;
  unsigned x = b.op({b.argument(64)}, 64);
  unsigned y = b.op({x}, 64, {{0, 0}});
  b.function.values[y].type = 1;
  b.results({y});
  BufferPlan plan = b.plan();
  EXPECT_NE(plan.bufferOf[x], plan.bufferOf[y]);
}

TEST(BufferPlan, EmptyValues) {
  BufferBuilder b;
  unsigned x = b.argument(0);
  unsigned y = b.op({x}, 0, {{0, 0}});
  b.results({x, y, y});
  BufferPlan plan = b.plan();
  EXPECT_EQ(plan.arenaBytes, 0);
  EXPECT_EQ(copyCount(plan), 0u);
}

TEST(BufferPlan, VerifierFindsOverlap) {
  BufferBuilder b;
  unsigned x = b.op({b.argument(64)}, 64), y = b.op({x}, 64);
  b.results({b.op({x, y}, 4)});
  BufferPlan plan = b.plan();
  plan.buffers[plan.bufferOf[y]].offset = plan.buffers[plan.bufferOf[x]].offset;
  EXPECT_TRUE(verifyBufferPlan(b.function, plan));
}

TEST(BufferPlan, VerifierFindsMissingCopy) {
  BufferBuilder b;
  unsigned x = b.argument(64);
  b.results({x});
  BufferPlan plan = b.plan();
  plan.atEnd[0].clear();
  EXPECT_TRUE(verifyBufferPlan(b.function, plan));
}

TEST(BufferPlan, RandomPrograms) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    RandomBuffers random;
    random.engine.seed(seed);
    random.planFunction();
    if (HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
}

} // namespace
