//===- FitSearch.cpp - Options that let a step fit ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What options save and take is expected to add up. Expectations come with the
// options; those of one are scaled by what it has turned out to save and to
// take alone. They decide which combination is tried next, and nothing else:
// what is left out follows from outcomes.
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/FitSearch.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <tuple>

namespace whale {

namespace {

class FitSearch {
public:
  FitSearch(llvm::ArrayRef<FitOption> options, const FitOutcome &without)
      : options(options.begin(), options.end()), leftOut(options.size()) {
    trials.push_back({FitCombination(options.size(), 0), without});
  }

  std::vector<FitTrial> run(size_t mostTries, TryCombination tryOut);

private:
  std::optional<FitCombination> chooseNext() const;
  std::optional<FitCombination> chooseCulprit() const;
  std::optional<FitCombination> chooseSimpler() const;
  bool isWorthTrying(const FitCombination &levels, double fastest) const;
  FitOutcome expect(const FitCombination &levels) const;
  void learn(const FitTrial &trial);
  bool step(FitCombination &levels) const;
  bool isTried(const FitCombination &levels) const {
    return llvm::any_of(
        trials, [&](const FitTrial &trial) { return trial.levels == levels; });
  }
  const FitOutcome &getFirst() const { return *trials.front().outcome; }

  std::vector<FitOption> options;
  /// The levels that have no plan by themselves.
  std::vector<std::vector<unsigned>> leftOut;
  std::vector<FitTrial> trials;
};

/// What is faster by a smaller part of a step is not looked for.
constexpr double leastGain = 1.0 / 200;

} // namespace

/// Whether no level of `one` is higher than that of `other`.
static bool isWithin(const FitCombination &one, const FitCombination &other) {
  return llvm::all_of(llvm::zip_equal(one, other), [](auto pair) {
    return std::get<0>(pair) <= std::get<1>(pair);
  });
}

/// The option of a combination that has no other one.
static std::optional<size_t> findOnly(const FitCombination &levels) {
  std::optional<size_t> only;
  for (auto [option, level] : llvm::enumerate(levels)) {
    if (level == 0)
      continue;
    if (only)
      return std::nullopt;
    only = option;
  }
  return only;
}

/// Goes on to the next of all combinations; false behind the last.
bool FitSearch::step(FitCombination &levels) const {
  for (auto [option, level] : llvm::enumerate(levels)) {
    do
      ++level;
    while (llvm::is_contained(leftOut[option], level));
    if (level <= options[option].levels.size())
      return true;
    level = 0;
  }
  return false;
}

FitOutcome FitSearch::expect(const FitCombination &levels) const {
  FitOutcome expected = getFirst();
  for (auto [option, level] : llvm::zip_equal(options, levels)) {
    if (level == 0 || option.savesWhatLacks)
      continue;
    expected.lackBytes -= option.levels[level - 1].savedBytes;
    expected.seconds += option.levels[level - 1].seconds;
  }
  for (auto [option, level] : llvm::zip_equal(options, levels)) {
    if (level == 0 || !option.savesWhatLacks || expected.fits())
      continue;
    auto [most, seconds] = option.levels[level - 1];
    int64_t saved = std::min(most, expected.lackBytes);
    expected.lackBytes -= saved;
    if (most > 0)
      expected.seconds += seconds * double(saved) / double(most);
  }
  return expected;
}

/// Whether a combination may fit, in less time than the fastest that does.
bool FitSearch::isWorthTrying(const FitCombination &levels,
                              double fastest) const {
  for (const FitTrial &trial : trials) {
    if (!trial.outcome)
      continue;
    if (!trial.outcome->fits() && isWithin(levels, trial.levels))
      return false;
    // What saves only what lacks is no bound: it takes less time here.
    bool isBound = llvm::none_of(
        llvm::zip_equal(options, trial.levels), [](const auto &pair) {
          return std::get<0>(pair).savesWhatLacks && std::get<1>(pair) > 0;
        });
    if (isBound && isWithin(trial.levels, levels) &&
        trial.outcome->seconds >= fastest)
      return false;
  }
  return true;
}

/// A single option of the last combination, if that has turned out to have no
/// plan for a reason that is not known.
std::optional<FitCombination> FitSearch::chooseCulprit() const {
  const FitTrial &last = trials.back();
  if (last.outcome)
    return std::nullopt;
  for (const FitTrial &trial : llvm::reverse(trials)) {
    if (trial.outcome)
      break;
    for (auto [option, level] : llvm::enumerate(trial.levels)) {
      FitCombination single(options.size(), 0);
      single[option] = level;
      if (level > 0 && !isTried(single))
        return single;
    }
  }
  return std::nullopt;
}

std::optional<FitCombination> FitSearch::chooseNext() const {
  if (std::optional<FitCombination> culprit = chooseCulprit())
    return culprit;
  double fastest = std::numeric_limits<double>::infinity();
  if (const FitTrial *best = findBest(trials); best->outcome->fits())
    fastest = best->outcome->seconds - leastGain * getFirst().seconds;
  std::optional<FitCombination> next;
  std::tuple<bool, double> least;
  FitCombination levels(options.size(), 0);
  while (step(levels)) {
    if (isTried(levels) || !isWorthTrying(levels, fastest))
      continue;
    // Where none is expected to fit, whether any does is what matters.
    FitOutcome expected = expect(levels);
    std::tuple<bool, double> order = {
        !expected.fits(),
        expected.fits() ? expected.seconds : double(expected.lackBytes)};
    // Of equal ones that lack something the highest levels.
    if (!next || order < least || (order == least && !expected.fits())) {
      next = levels;
      least = order;
    }
  }
  return next ? next : chooseSimpler();
}

/// The best combination without an option that it may not need.
std::optional<FitCombination> FitSearch::chooseSimpler() const {
  const FitTrial *best = findBest(trials);
  if (!best->outcome->fits() || findOnly(best->levels))
    return std::nullopt;
  for (size_t option = options.size(); option-- > 0;) {
    FitCombination simpler = best->levels;
    simpler[option] = 0;
    if (!isTried(simpler) &&
        isWorthTrying(simpler, std::numeric_limits<double>::infinity()))
      return simpler;
  }
  return std::nullopt;
}

/// Corrects what is expected of an option by what it does alone.
void FitSearch::learn(const FitTrial &trial) {
  std::optional<size_t> only = findOnly(trial.levels);
  if (!only)
    return;
  if (!trial.outcome) {
    leftOut[*only].push_back(trial.levels[*only]);
    return;
  }
  FitOption &option = options[*only];
  FitOption::Level expected = option.levels[trial.levels[*only] - 1];
  int64_t saved = getFirst().lackBytes - trial.outcome->lackBytes;
  double seconds = trial.outcome->seconds - getFirst().seconds;
  // It may save more than it had to.
  if (option.savesWhatLacks && trial.outcome->fits()) {
    if (saved > 0)
      seconds *= double(std::max(saved, expected.savedBytes)) / double(saved);
    saved = std::max(saved, expected.savedBytes);
  }
  for (FitOption::Level &level : option.levels) {
    level.savedBytes = expected.savedBytes > 0
                           ? int64_t(double(level.savedBytes) * double(saved) /
                                     double(expected.savedBytes))
                           : saved;
    level.seconds = expected.seconds > 0
                        ? level.seconds * seconds / expected.seconds
                        : seconds;
  }
}

std::vector<FitTrial> FitSearch::run(size_t mostTries, TryCombination tryOut) {
  for (size_t tries = 0; tries < mostTries; ++tries) {
    std::optional<FitCombination> next = chooseNext();
    if (!next)
      break;
    trials.push_back({*next, tryOut(*next)});
    learn(trials.back());
  }
  return std::move(trials);
}

std::vector<FitTrial> searchFit(llvm::ArrayRef<FitOption> options,
                                const FitOutcome &without, size_t mostTries,
                                TryCombination tryOut) {
  return FitSearch(options, without).run(mostTries, tryOut);
}

const FitTrial *findBest(llvm::ArrayRef<FitTrial> trials) {
  const FitTrial *best = nullptr;
  for (const FitTrial &trial : trials) {
    if (!trial.outcome)
      continue;
    auto orderOf = [](const FitTrial &trial) {
      bool fits = trial.outcome->fits();
      return std::tuple(
          !fits,
          fits ? trial.outcome->seconds : double(trial.outcome->lackBytes),
          llvm::count_if(trial.levels, [](unsigned level) { return level; }));
    };
    if (!best || orderOf(trial) < orderOf(*best))
      best = &trial;
  }
  return best;
}

} // namespace whale
