//===- SumOrderTest.cpp - The order of sums -------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/SumOrder.h"
#include "gtest/gtest.h"
#include <vector>

using namespace whale;

namespace {

SumOrder getOrder(std::vector<int64_t> sizes, std::vector<int> reduced,
                  unsigned bits = 32) {
  llvm::SmallVector<bool> flags(reduced.begin(), reduced.end());
  return getSumOrder(sizes, flags, bits);
}

/// The largest number of terms (or sums) that one partial sum adds one after
/// the other, of all levels.
int64_t getLongestRun(const SumOrder &order) {
  std::vector<int64_t> runs(order.getNumLevels(), 1);
  for (const SumOrder::Chunk &chunk : order.chunks)
    runs[chunk.level] *= chunk.count;
  return *std::max_element(runs.begin(), runs.end());
}

TEST(SumOrderTest, FewTermsHaveNoOrder) {
  EXPECT_TRUE(getOrder({16}, {1}).chunks.empty());
  EXPECT_TRUE(getOrder({4, 1000, 4}, {1, 0, 1}).chunks.empty());
  EXPECT_FALSE(getOrder({17}, {1}).chunks.empty());
}

TEST(SumOrderTest, LanesAreForWhatLiesInside) {
  EXPECT_EQ(getOrder({1000}, {1}).lanes, 64);
  EXPECT_EQ(getOrder({1000}, {1}, 64).lanes, 32);
  EXPECT_EQ(getOrder({1000}, {1}, 128).lanes, 16);
  EXPECT_EQ(getOrder({40}, {1}).lanes, 16);
  EXPECT_EQ(getOrder({20}, {1}).lanes, 8);
  EXPECT_EQ(getOrder({1000, 3}, {1, 0}).lanes, 64);
  EXPECT_EQ(getOrder({1000, 4}, {1, 0}).lanes, 1);
  EXPECT_EQ(getOrder({1000, 2, 2}, {1, 0, 0}).lanes, 1);
}

TEST(SumOrderTest, NeighboursAreOneGroup) {
  SumOrder order = getOrder({5, 6, 7, 8, 1, 9}, {1, 1, 0, 1, 0, 1});
  EXPECT_EQ(order.groups, (llvm::SmallVector<int64_t>{0, 0, -1, 1, -1, 1}));
  EXPECT_EQ(order.steps, (llvm::SmallVector<int64_t>{30, 4}));
  EXPECT_EQ(order.lanes, 16);
  EXPECT_EQ(order.tail, 8);
  // A long dimension stays alone.
  order = getOrder({5, 6, 1000}, {1, 1, 1});
  EXPECT_EQ(order.groups, (llvm::SmallVector<int64_t>{0, 0, 1}));
  EXPECT_EQ(order.steps, (llvm::SmallVector<int64_t>{30, 15}));
  EXPECT_EQ(order.tail, 40);
}

TEST(SumOrderTest, SizeOneChangesNothing) {
  SumOrder with = getOrder({1, 300, 1, 50}, {0, 1, 1, 0});
  SumOrder without = getOrder({300, 50}, {1, 0});
  EXPECT_EQ(with.steps, without.steps);
  EXPECT_EQ(with.chunks.size(), without.chunks.size());
}

TEST(SumOrderTest, RunsAreShortAndCoverAllSteps) {
  for (int64_t size : {17, 100, 4097, 1000003, 1 << 24})
    for (std::vector<int64_t> shape :
         {std::vector<int64_t>{size}, {size, 8}, {3, 8, size}, {size, 8, 7}}) {
      std::vector<int> reduced(shape.size(), 1);
      if (shape.size() > 1)
        reduced[1] = 0;
      SumOrder order = getOrder(shape, reduced);
      EXPECT_LE(getLongestRun(order), kSumBlock);
      std::vector<int64_t> covered(order.steps.size(), 1);
      for (const SumOrder::Chunk &chunk : order.chunks) {
        EXPECT_EQ(chunk.unit, covered[chunk.group]);
        covered[chunk.group] *= chunk.count;
      }
      for (size_t group = 0; group < covered.size(); ++group)
        EXPECT_GE(covered[group], order.steps[group]);
    }
}

} // namespace
