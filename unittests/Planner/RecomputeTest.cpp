//===- RecomputeTest.cpp - What a backward computes again -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/Recompute.h"
#include "gtest/gtest.h"

#include <functional>
#include <optional>
#include <random>

using namespace whale;

namespace {

using Choices = std::vector<RecomputeChoice>;

Choices select(const Choices &choices, const std::vector<size_t> &numbers) {
  Choices chain;
  for (size_t number : numbers)
    chain.push_back(choices[number]);
  return chain;
}

void forEachChain(int64_t numPieces, const Choices &choices, Choices &chain,
                  int64_t first, const std::function<void()> &visit) {
  if (first == numPieces)
    return visit();
  for (const RecomputeChoice &choice : choices)
    if (choice.first == first) {
      chain.push_back(choice);
      forEachChain(numPieces, choices, chain, choice.end, visit);
      chain.pop_back();
    }
}

double secondsOf(const Choices &chain) {
  double seconds = 0;
  for (const RecomputeChoice &choice : chain)
    seconds += choice.seconds;
  return seconds;
}

/// A piece keeps 100 bytes; computed again, it keeps the 10 between pieces and
/// needs the others while its backward runs. So do several pieces.
Choices makeEqualPieces(int64_t count) {
  Choices choices;
  for (int64_t first = 0; first < count; ++first) {
    choices.push_back({first, first + 1, 100, 0, 0});
    for (int64_t end = first + 1; end <= count; ++end)
      choices.push_back(
          {first, end, 10, 100 * (end - first), double(end - first)});
  }
  return choices;
}

TEST(Recompute, KeepsAllWhereItFits) {
  Choices choices = makeEqualPieces(4);
  RecomputePlan plan = chooseRecompute(4, choices, 1, 400);
  EXPECT_EQ(plan.seconds, 0);
  EXPECT_EQ(plan.peakBytes, 400);
  EXPECT_EQ(plan.choices.size(), 4u);
}

TEST(Recompute, ComputesNoMoreAgainThanNeeded) {
  Choices choices = makeEqualPieces(4);
  // One piece is enough, but not the last, whose backward comes first.
  RecomputePlan plan = chooseRecompute(4, choices, 1, 399);
  EXPECT_EQ(plan.seconds, 1);
  EXPECT_EQ(plan.peakBytes, 310);
  EXPECT_EQ(select(choices, plan.choices).back().seconds, 0);
}

TEST(Recompute, CountsWhatOtherMicroBatchesKeep) {
  Choices choices = makeEqualPieces(4);
  RecomputePlan plan = chooseRecompute(4, choices, 3, 800);
  EXPECT_LE(plan.peakBytes, 800);
  EXPECT_EQ(plan.seconds, 2);
  EXPECT_EQ(findRecomputePeak(select(choices, plan.choices), 3),
            plan.peakBytes);
}

TEST(Recompute, GivesTheLowestPeakWhereNothingFits) {
  Choices choices = makeEqualPieces(9);
  RecomputePlan plan = chooseRecompute(9, choices, 1, 50);
  // Nine pieces by themselves: eight inputs, and one piece with its own.
  EXPECT_EQ(plan.peakBytes, 180);
  EXPECT_GT(plan.peakBytes, 50);
}

TEST(Recompute, JoinsPiecesWhereInputsAreLarge) {
  Choices choices;
  for (int64_t first = 0; first < 4; ++first) {
    choices.push_back({first, first + 1, 100, 0, 0});
    choices.push_back({first, first + 1, 90, 10, 1});
    if (first + 2 <= 4)
      choices.push_back({first, first + 2, 90, 110, 2});
  }
  RecomputePlan plan = chooseRecompute(4, choices, 1, 300);
  EXPECT_EQ(plan.seconds, 2);
  EXPECT_LE(plan.peakBytes, 300);
}

TEST(Recompute, AgreesWithAllChainsOnRandomOnes) {
  std::mt19937 random(7);
  auto pick = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int round = 0; round < 500; ++round) {
    int64_t numPieces = pick(1, 5), inFlight = pick(1, 3);
    Choices choices;
    for (int64_t first = 0; first < numPieces; ++first) {
      choices.push_back({first, first + 1, pick(0, 30), 0, 0});
      for (int64_t more = pick(0, 3); more > 0; --more)
        choices.push_back({first, pick(first + 1, numPieces), pick(0, 20),
                           pick(0, 30), double(pick(0, 6))});
    }
    int64_t limit = pick(0, 60);
    std::optional<std::pair<double, int64_t>> fastest;
    int64_t lowest = INT64_MAX;
    Choices chain;
    forEachChain(numPieces, choices, chain, 0, [&] {
      int64_t peak = findRecomputePeak(chain, inFlight);
      std::pair<double, int64_t> rank(secondsOf(chain), peak);
      lowest = std::min(lowest, peak);
      if (peak <= limit && (!fastest || rank < *fastest))
        fastest = rank;
    });
    RecomputePlan plan = chooseRecompute(numPieces, choices, inFlight, limit);
    chain = select(choices, plan.choices);
    ASSERT_EQ(chain.front().first, 0);
    ASSERT_EQ(chain.back().end, numPieces);
    for (size_t i = 1; i < chain.size(); ++i)
      ASSERT_EQ(chain[i - 1].end, chain[i].first);
    EXPECT_EQ(findRecomputePeak(chain, inFlight), plan.peakBytes);
    EXPECT_EQ(secondsOf(chain), plan.seconds);
    if (fastest)
      EXPECT_EQ(std::pair(plan.seconds, plan.peakBytes), *fastest);
    else
      EXPECT_EQ(plan.peakBytes, lowest);
  }
}

TEST(Recompute, StaysWithinTheLimitOnLongChains) {
  std::mt19937 random(11);
  std::uniform_int_distribution<int64_t> bytes(1, 1 << 20);
  Choices choices;
  int64_t numPieces = 48, all = 0;
  for (int64_t first = 0; first < numPieces; ++first) {
    int64_t own = bytes(random);
    all += own;
    choices.push_back({first, first + 1, own, 0, 0});
    for (int level = 1; level < 8; ++level)
      choices.push_back({first, first + 1, own / (level + 1),
                         own - own / (level + 1),
                         level * 1e-6 * double(bytes(random))});
  }
  RecomputePlan plan = chooseRecompute(numPieces, choices, 2, all);
  EXPECT_LE(plan.peakBytes, all);
  EXPECT_GT(plan.seconds, 0);
}

} // namespace
