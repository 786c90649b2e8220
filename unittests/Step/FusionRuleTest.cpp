//===- FusionRuleTest.cpp - Which loops become one kernel -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/FusionRule.h"
#include "gtest/gtest.h"

#include <limits>

using namespace whale;

static constexpr LoopWork kSum = {.arithmetic = 1, .largeInputs = 1};
static constexpr LoopWork kExponential = {.largeInputs = 1};

TEST(FusionRule, FarSmallerIsOneOfSixteen) {
  EXPECT_TRUE(isFarSmaller(4, 64));
  EXPECT_FALSE(isFarSmaller(5, 64));
  EXPECT_FALSE(isFarSmaller(4, 63));
  EXPECT_TRUE(isFarSmaller(0, 0));
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(isFarSmaller(most, most));
}

TEST(FusionRule, CheapIsLittleArithmeticOnOneLargeValue) {
  EXPECT_TRUE(isCheap({.arithmetic = 4, .largeInputs = 1}));
  EXPECT_TRUE(isCheap({.arithmetic = 0}));
  EXPECT_FALSE(isCheap({.arithmetic = 5, .largeInputs = 1}));
  EXPECT_FALSE(isCheap({.arithmetic = 1, .largeInputs = 2}));
  EXPECT_FALSE(isCheap(kExponential));
  EXPECT_TRUE(isCheap({.isSlice = true}));
}

TEST(FusionRule, OneReaderComputesWhatItReads) {
  EXPECT_EQ(willFuse(kSum, {}), Fusion::Alone);
  EXPECT_EQ(willFuse(kExponential, {}), Fusion::Alone);
}

TEST(FusionRule, EachOfSeveralReadersComputesWhatIsCheap) {
  LoopRead read;
  read.readers = 2;
  EXPECT_EQ(willFuse(kSum, read), Fusion::Again);
  EXPECT_EQ(willFuse(kExponential, read), Fusion::Kept);
  read.isPermutation = false;
  EXPECT_EQ(willFuse(kSum, read), Fusion::Again);
  EXPECT_EQ(willFuse(kExponential, read), Fusion::None);
}

TEST(FusionRule, ReadInTwoWaysItDoesNotDisappear) {
  LoopRead read;
  read.isInOneWay = false;
  EXPECT_EQ(willFuse(kSum, read), Fusion::Again);
  EXPECT_EQ(willFuse(kExponential, read), Fusion::None);
}

TEST(FusionRule, WhatTakesLongIsNotComputedForEachPoint) {
  LoopRead read;
  read.readsOnce = read.isPermutation = false;
  EXPECT_EQ(willFuse(kExponential, read), Fusion::Alone);
  read.isPrefix = false;
  EXPECT_EQ(willFuse(kExponential, read), Fusion::None);
  EXPECT_EQ(willFuse(kSum, read), Fusion::Alone);
}

TEST(FusionRule, KernelsHaveLimits) {
  LoopRead read;
  read.buffers = kMostFusedBuffers;
  read.bodySize = kMostFusedBody;
  EXPECT_EQ(willFuse(kSum, read), Fusion::Alone);
  ++read.buffers;
  EXPECT_EQ(willFuse(kSum, read), Fusion::None);
  --read.buffers;
  ++read.bodySize;
  EXPECT_EQ(willFuse(kSum, read), Fusion::None);
  EXPECT_EQ(willFuse(kSum, {.overlaps = true}), Fusion::None);
}

TEST(FusionRule, GpusComputeAgainWhatIsNoSmallerThanWhatItIsComputedFrom) {
  LoopRead read;
  read.readers = 2;
  LoopWork work = {.arithmetic = 16, .largeInputs = 3};
  EXPECT_EQ(willFuse(work, read), Fusion::Kept);
  read.gpu = {.instead = 64, .result = 64};
  EXPECT_EQ(willFuse(work, read), Fusion::Again);
  read.gpu = {.instead = 65, .result = 64};
  EXPECT_EQ(willFuse(work, read), Fusion::Kept);
  read.gpu = {.instead = 64, .result = 64};
  work.arithmetic = 17;
  EXPECT_EQ(willFuse(work, read), Fusion::Kept);
  EXPECT_EQ(willFuse(kExponential, read), Fusion::Kept);
}
