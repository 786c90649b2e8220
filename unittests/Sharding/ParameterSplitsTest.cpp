//===- ParameterSplitsTest.cpp - The search for the cheapest splits -------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search for the cheapest way to split groups of parameters, with costs
// that the test makes up in the place of a program's. Small cases have a known
// best choice, among them those that only pay together.
//
// The search is not exact. In 200 problems of 6 groups, whose neighbours have
// random costs, no change of one or two groups may be better, and the reported
// alternatives must be true. In 300 others the result must not depend on how
// many choices are estimated at a time. A search must end for costs that are no
// numbers, and at its limit of trials.
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/ParameterSplits.h"
#include "llvm/ADT/Hashing.h"
#include "gtest/gtest.h"
#include <cmath>
#include <map>
#include <random>

using namespace llvm;
using namespace whale;

namespace {

/// Groups with so many pieces each.
SmallVector<ParameterGroup> groupsOf(ArrayRef<unsigned> counts) {
  SmallVector<ParameterGroup> groups;
  for (unsigned count : counts) {
    ParameterGroup &group = groups.emplace_back();
    for (unsigned dim = 0; dim < count; ++dim)
      group.pieces.push_back({dim, 8, 1});
  }
  return groups;
}

/// Chooses by the seconds of one choice at a time.
SplitChoice choose(ArrayRef<ParameterGroup> groups,
                   function_ref<double(ArrayRef<unsigned>)> seconds,
                   size_t mostTrials = std::numeric_limits<size_t>::max(),
                   size_t atOnce = 1) {
  auto estimate = [&](ArrayRef<SmallVector<unsigned>> choices,
                      MutableArrayRef<double> results) {
    EXPECT_LE(choices.size(), atOnce);
    for (auto [pieces, result] : zip_equal(choices, results))
      result = seconds(pieces);
  };
  return chooseSplits(groups, estimate, mostTrials, atOnce);
}

TEST(ChooseSplits, NothingToChoose) {
  SplitChoice choice = choose({}, [](ArrayRef<unsigned>) { return 1.0; });
  EXPECT_TRUE(choice.pieces.empty());
}

TEST(ChooseSplits, StartsFromTheLastPieces) {
  SplitChoice choice =
      choose(groupsOf({2, 3}), [](ArrayRef<unsigned>) { return 1.0; });
  EXPECT_EQ(choice.pieces, (SmallVector<unsigned>{1, 2}));
}

TEST(ChooseSplits, TellsWhatWasWeighed) {
  auto seconds = [](ArrayRef<unsigned> pieces) {
    return 10.0 * pieces[0] + pieces[1] + 1;
  };
  SplitChoice choice = choose(groupsOf({2, 3}), seconds);
  EXPECT_EQ(choice.pieces, (SmallVector<unsigned>{0, 0}));
  EXPECT_EQ(choice.seconds, 1);
  EXPECT_EQ(choice.alternatives[0], (SmallVector<double>{1, 11}));
  EXPECT_EQ(choice.alternatives[1], (SmallVector<double>{1, 2, 3}));
}

TEST(ChooseSplits, EndsEarly) {
  size_t trials = 0;
  auto seconds = [&](ArrayRef<unsigned> pieces) {
    ++trials;
    return 1.0 + double(llvm::count(pieces, 1u));
  };
  SmallVector<unsigned> counts(100, 2);
  SplitChoice choice = choose(groupsOf(counts), seconds, 10);
  EXPECT_EQ(trials, 11u);
  EXPECT_FALSE(choice.isComplete);
  EXPECT_EQ(choice.seconds, 91);
  EXPECT_EQ(llvm::count(choice.pieces, 0u), 10);
  EXPECT_TRUE(choose(groupsOf(counts), seconds).isComplete);
}

TEST(JoinManyGroups, JoinsEqualOnes) {
  mlir::MLIRContext context;
  mlir::Location loc = mlir::UnknownLoc::get(&context);
  mlir::Type f32 = mlir::Float32Type::get(&context);
  mlir::Block block;
  SmallVector<ParameterGroup> groups = groupsOf({2, 2, 1, 2, 2});
  for (auto [index, group] : llvm::enumerate(groups)) {
    int64_t rows = index == 3 ? 4 : 8;
    auto type = mlir::RankedTensorType::get({rows, 8}, f32);
    group.parameters = {block.addArgument(type, loc)};
  }
  joinManyGroups(groups, 9);
  ASSERT_EQ(groups.size(), 5u);
  joinManyGroups(groups, 8);
  // Those left alone have one piece, and another type.
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].parameters.size(), 3u);
  EXPECT_EQ(groups[0].parameters.back(), block.getArgument(4));
  EXPECT_EQ(groups[1].parameters.front(), block.getArgument(2));
  EXPECT_EQ(groups[2].parameters.front(), block.getArgument(3));
}

// Any answer will do, but there must be one.
TEST(ChooseSplits, EndsWithoutNumbers) {
  for (double odd : {std::nan(""), HUGE_VAL, -HUGE_VAL, 5e-324, 0.0}) {
    auto seconds = [&](ArrayRef<unsigned> pieces) {
      return pieces[0] == pieces[1] ? odd : 1.0;
    };
    SplitChoice choice = choose(groupsOf({3, 3}), seconds);
    EXPECT_EQ(choice.pieces.size(), 2u);
  }
}

// Changing one alone is worse: both must change together.
TEST(ChooseSplits, TwoThatOnlyPayTogether) {
  auto seconds = [](ArrayRef<unsigned> pieces) {
    if (pieces[0] != pieces[2])
      return 3.0;
    return pieces[0] == 1 ? 2.0 : 1.0;
  };
  SplitChoice choice = choose(groupsOf({2, 1, 2}), seconds);
  EXPECT_EQ(choice.pieces, (SmallVector<unsigned>{0, 0, 0}));
  EXPECT_EQ(choice.seconds, 1);
}

// One or two convolutions split along their images are worse than none, all
// three are better.
TEST(ChooseSplits, ImagesThatOnlyPayAllTogether) {
  SmallVector<ParameterGroup> groups = groupsOf({3, 3, 3});
  for (ParameterGroup &group : groups) {
    group.pieces.back() = group.pieces[1];
    group.mayBeSpatial = true;
  }
  EXPECT_TRUE(groups[0].isSpatial(2));
  EXPECT_FALSE(groups[0].isSpatial(1));
  auto seconds = [](ArrayRef<unsigned> pieces) {
    unsigned spatial = llvm::count(pieces, 2u);
    return spatial == 3 ? 1.0 : 2.0 + spatial;
  };
  SplitChoice choice = choose(groups, seconds);
  EXPECT_EQ(choice.pieces, (SmallVector<unsigned>{2, 2, 2}));
  EXPECT_EQ(choice.seconds, 1);
  // Where they don't pay, the search starts before them.
  choice = choose(groups, [](ArrayRef<unsigned>) { return 1.0; });
  EXPECT_EQ(choice.pieces, (SmallVector<unsigned>{1, 1, 1}));
}

// What is estimated ahead has no say.
TEST(ChooseSplits, TheSameHoweverManyAtOnce) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    SmallVector<unsigned> counts;
    for (unsigned group = 0; group < 2 + random() % 5; ++group)
      counts.push_back(1 + random() % 4);
    SmallVector<ParameterGroup> groups = groupsOf(counts);
    for (ParameterGroup &group : groups)
      group.mayBeSpatial = group.pieces.size() > 1 && random() % 4 == 0;
    std::map<std::vector<unsigned>, double> costs;
    auto seconds = [&](ArrayRef<unsigned> pieces) {
      // Of the pieces alone, in whatever order they are asked for.
      auto seed = unsigned(size_t(hash_combine_range(pieces)) % 1000003);
      return costs.try_emplace(pieces.vec(), 1.0 + std::minstd_rand(seed)() % 9)
          .first->second;
    };
    size_t most = random() % 2 ? 5 + random() % 20 : size_t(-1);
    SplitChoice alone = choose(groups, seconds, most);
    for (size_t atOnce : {2, 3, 16}) {
      SplitChoice together = choose(groups, seconds, most, atOnce);
      EXPECT_EQ(together.pieces, alone.pieces);
      EXPECT_EQ(together.seconds, alone.seconds);
      EXPECT_EQ(together.isComplete, alone.isComplete);
      EXPECT_EQ(together.alternatives, alone.alternatives);
    }
  }
}

// Where each pair of neighbours has a cost of its own, no change of one or two
// groups makes the result better, and what is reported of alternatives is true.
TEST(ChooseSplits, NoSmallChangeIsBetter) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> cost(1, 2);
  for (int round = 0; round < 200; ++round) {
    SmallVector<unsigned> counts;
    for (unsigned i = 0; i < 6; ++i)
      counts.push_back(1 + random() % 3);
    double costs[6][3][3];
    for (auto &table : costs)
      for (auto &row : table)
        for (double &entry : row)
          entry = cost(random);
    auto seconds = [&](ArrayRef<unsigned> pieces) {
      double sum = 0;
      for (size_t i = 0; i + 1 < pieces.size(); ++i)
        sum += costs[i][pieces[i]][pieces[i + 1]];
      return sum;
    };
    SplitChoice choice = choose(groupsOf(counts), seconds);
    EXPECT_EQ(choice.seconds, seconds(choice.pieces));
    for (size_t i = 0; i < counts.size(); ++i)
      for (unsigned one = 0; one < counts[i]; ++one) {
        SmallVector<unsigned> other = choice.pieces;
        other[i] = one;
        EXPECT_EQ(choice.alternatives[i][one], seconds(other));
        for (size_t j = i; j < counts.size(); ++j)
          for (unsigned two = 0; two < counts[j]; ++two) {
            SmallVector<unsigned> pair = other;
            pair[j] = two;
            EXPECT_GE(seconds(pair), choice.seconds * (1 - 1e-9));
          }
      }
  }
}

} // namespace
