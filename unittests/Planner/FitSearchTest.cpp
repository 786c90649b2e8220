//===- FitSearchTest.cpp - Options that let a step fit --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Under test: searchFit on small sets of options whose savings and seconds are
// random. What it finds must be, up to the gain that it does not look for, the
// fastest that all combinations have, however wrong what is expected of them
// is; with right expectations it must need few tries.
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/FitSearch.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace whale;

namespace {

/// What options do to a step of 1 s that lacks some bytes.
struct Step {
  /// By option, as they really are.
  std::vector<FitOption> options;
  int64_t lackBytes = 0;
  /// The option that has no plan at all.
  size_t broken = ~size_t(0);

  FitOutcome without() const { return {lackBytes, 1}; }
  std::optional<FitOutcome> plan(const FitCombination &levels) const;
  std::optional<FitOutcome> findFastest() const;
};

std::optional<FitOutcome> Step::plan(const FitCombination &levels) const {
  FitOutcome outcome = without();
  for (bool adaptive : {false, true})
    for (auto [number, option] : llvm::enumerate(options)) {
      unsigned level = levels[number];
      if (level == 0 || option.savesWhatLacks != adaptive)
        continue;
      if (number == broken)
        return std::nullopt;
      auto [saved, seconds] = option.levels[level - 1];
      if (adaptive && outcome.fits())
        continue;
      int64_t own = adaptive ? std::min(saved, outcome.lackBytes) : saved;
      outcome.lackBytes -= own;
      outcome.seconds += saved > 0 ? seconds * double(own) / double(saved) : 0;
    }
  return outcome;
}

std::optional<FitOutcome> Step::findFastest() const {
  std::optional<FitOutcome> fastest;
  FitCombination levels(options.size(), 0);
  for (bool more = true; more;) {
    if (std::optional<FitOutcome> outcome = plan(levels);
        outcome && outcome->fits() &&
        (!fastest || outcome->seconds < fastest->seconds))
      fastest = outcome;
    more = false;
    for (size_t i = 0; i < levels.size() && !more; ++i) {
      more = ++levels[i] <= options[i].levels.size();
      if (!more)
        levels[i] = 0;
    }
  }
  return fastest;
}

Step makeStep(std::mt19937 &random) {
  auto below = [&](int64_t end) { return int64_t(random() % uint64_t(end)); };
  Step step;
  for (int64_t i = 0, count = 1 + below(4); i < count; ++i) {
    FitOption &option = step.options.emplace_back();
    option.savesWhatLacks = below(3) == 0;
    int64_t bytes = 0, seconds = 0;
    // What saves what lacks has one level.
    for (int64_t j = 0, n = option.savesWhatLacks ? 1 : 1 + below(4); j < n;
         ++j)
      option.levels.push_back(
          {bytes += below(400), double(seconds += below(300)) / 1000});
  }
  step.lackBytes = below(1500);
  if (below(4) == 0)
    step.broken = size_t(below(4));
  return step;
}

/// Expectations that are wrong by up to a factor of ten.
std::vector<FitOption> misjudge(std::vector<FitOption> options,
                                std::mt19937 &random) {
  std::uniform_real_distribution<double> power(-1, 1);
  for (FitOption &option : options) {
    double bytes = std::pow(10, power(random));
    double seconds = std::pow(10, power(random));
    for (FitOption::Level &level : option.levels) {
      level.savedBytes = int64_t(double(level.savedBytes) * bytes);
      level.seconds *= seconds;
    }
  }
  return options;
}

TEST(FitSearch, FindsTheFastestThatFits) {
  std::mt19937 random(7);
  int fitting = 0;
  for (int round = 0; round < 2000; ++round) {
    Step step = makeStep(random);
    std::vector<FitTrial> trials = searchFit(
        misjudge(step.options, random), step.without(), 1000,
        [&](const FitCombination &levels) { return step.plan(levels); });
    const FitTrial *best = findBest(trials);
    ASSERT_TRUE(best);
    std::optional<FitOutcome> fastest = step.findFastest();
    ASSERT_EQ(best->outcome->fits(), fastest.has_value()) << round;
    if (!fastest)
      continue;
    ++fitting;
    EXPECT_LE(best->outcome->seconds, fastest->seconds + 1.0 / 200 + 1e-9)
        << round;
    // No combination twice.
    for (size_t i = 0; i < trials.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        EXPECT_NE(trials[i].levels, trials[j].levels);
  }
  EXPECT_GT(fitting, 500);
}

TEST(FitSearch, FollowsRightExpectations) {
  std::mt19937 random(8);
  size_t tries = 0, rounds = 0;
  for (int round = 0; round < 2000; ++round) {
    Step step = makeStep(random);
    step.broken = ~size_t(0);
    std::optional<FitOutcome> fastest = step.findFastest();
    if (!fastest || step.lackBytes == 0)
      continue;
    std::vector<FitTrial> trials = searchFit(
        step.options, step.without(), 1,
        [&](const FitCombination &levels) { return step.plan(levels); });
    // The first one is the one.
    EXPECT_LE(findBest(trials)->outcome->seconds, fastest->seconds + 1e-9);
    ASSERT_TRUE(findBest(trials)->outcome->fits());
    tries += searchFit(step.options, step.without(), 1000,
                       [&](const FitCombination &levels) {
                         return step.plan(levels);
                       })
                 .size() -
             1;
    ++rounds;
  }
  // Up to 624 combinations.
  EXPECT_LT(tries, 12 * rounds);
}

TEST(FitSearch, SaysWhatLacksLeast) {
  Step step;
  step.options = {{{{100, 0.1}, {200, 0.2}}, false}, {{{300, 0.1}}, true}};
  step.lackBytes = 1000;
  std::vector<FitTrial> trials = searchFit(
      step.options, step.without(), 1000,
      [&](const FitCombination &levels) { return step.plan(levels); });
  const FitTrial *best = findBest(trials);
  EXPECT_EQ(best->levels, FitCombination({2, 1}));
  EXPECT_EQ(best->outcome->lackBytes, 500);
  // Below one that does not fit nothing does.
  EXPECT_EQ(trials.size(), 2u);
}

TEST(FitSearch, TriesNothingWhereAllFits) {
  std::vector<FitOption> options = {{{{100, 0.1}}, false}};
  std::vector<FitTrial> trials =
      searchFit(options, {-5, 1}, 10,
                [](const FitCombination &) -> std::optional<FitOutcome> {
                  ADD_FAILURE();
                  return std::nullopt;
                });
  EXPECT_EQ(trials.size(), 1u);
}

TEST(FitSearch, LeavesOutWhatHasNoPlan) {
  Step step;
  step.options = {{{{900, 0.1}, {900, 0.2}}, false}, {{{500, 0.5}}, false}};
  step.lackBytes = 400;
  step.broken = 0;
  std::vector<FitTrial> trials = searchFit(
      step.options, step.without(), 1000,
      [&](const FitCombination &levels) { return step.plan(levels); });
  EXPECT_EQ(findBest(trials)->levels, FitCombination({0, 1}));
  // Of each of its levels one is enough.
  EXPECT_EQ(trials.size(), 4u);
}

} // namespace
