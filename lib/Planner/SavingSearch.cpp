//===- SavingSearch.cpp - How much a device asks to be saved --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a device needs falls with what it asks for, in steps, now and then by
// more than was asked for, and now and then not at all: what is computed again
// is there itself, and may be all that there is at a new peak. So more is asked
// for until something fits, then less, between what fits and what does not.
// Where nothing fits when all has been asked for, the search looks beside what
// came nearest.
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/SavingSearch.h"

#include <algorithm>
#include <cmath>

namespace whale {

/// Steps that are smaller than this share of what the device needs at first
/// would not be worth the time to plan with them.
static constexpr double kLeastStep = 0.01;
/// More than what the device needs at first may be asked for: what is kept is
/// expected to be more than what is there at a time.
static constexpr double kMostAsked = 1.5;

SavingSearch::SavingSearch(int64_t memoryBytes, int64_t neededBytes)
    : memory(memoryBytes), first(neededBytes), tries{{0, neededBytes}} {}

int64_t SavingSearch::mostAsked(int64_t neededBytes) {
  return int64_t(kMostAsked * double(neededBytes));
}

void SavingSearch::tell(int64_t neededBytes) {
  auto it = std::ranges::lower_bound(tries, asked, {}, &Try::asked);
  if (it != tries.end() && it->asked == asked)
    it->needed = neededBytes;
  else
    tries.insert(it, {asked, neededBytes});
}

bool SavingSearch::ask(int64_t bytes) {
  asked = bytes;
  return true;
}

bool SavingSearch::next() {
  auto fits = std::ranges::find_if(
      tries, [&](const Try &each) { return each.needed <= memory; });
  bool isFitting = fits != tries.end();
  if (isFitting ? refine(fits - tries.begin()) : askForMore() || lookBetween())
    return true;
  // What was asked for last need not be what is best.
  asked = isFitting ? fits->asked
                    : std::ranges::min_element(tries, {}, &Try::needed)->asked;
  return false;
}

/// Between what fits and the most below it that does not, asks for about what
/// is lacking there.
bool SavingSearch::refine(size_t fitting) {
  if (fitting == 0)
    return false;
  const Try &fits = tries[fitting], &lacks = tries[fitting - 1];
  double least = kLeastStep * double(first);
  double width = double(fits.asked - lacks.asked);
  if (double(memory - fits.needed) < least || width < 2 * least ||
      refinements == kMostRefinements)
    return false;
  ++refinements;
  double share = double(lacks.needed - memory) /
                 double(std::max<int64_t>(1, lacks.needed - fits.needed));
  // Needs fall in steps, so that where they do is not known better.
  constexpr double margin = 0.2;
  share = std::clamp(share, margin, 1 - margin);
  return ask(lacks.asked + int64_t(share * width));
}

/// Asks for what is lacking, in the ratio in which the last bytes that were
/// asked for have been saved; where that is none, for more and more.
bool SavingSearch::askForMore() {
  int64_t most = mostAsked(first);
  const Try &last = tries.back();
  if (last.asked >= most)
    return false;
  double step = double(last.needed - memory);
  if (tries.size() > 1) {
    const Try &before = tries[tries.size() - 2];
    double asked = double(last.asked - before.asked);
    double saved = double(before.needed - last.needed);
    constexpr double leastTimes = 1.25, mostTimes = 4;
    if (saved > 0)
      step *= std::clamp(asked / saved, leastTimes, mostTimes);
    else
      step = std::max(2 * asked, 2 * kLeastStep * double(first));
  }
  return ask(std::min(most, last.asked + int64_t(std::ceil(step))));
}

/// Halves the wider of the gaps beside what came nearest.
bool SavingSearch::lookBetween() {
  size_t nearest =
      std::ranges::min_element(tries, {}, &Try::needed) - tries.begin();
  if (tries[nearest].needed >= first)
    return false;
  int64_t width = 0, middle = 0;
  for (size_t i = std::max<size_t>(nearest, 1);
       i < std::min(nearest + 2, tries.size()); ++i)
    if (int64_t gap = tries[i].asked - tries[i - 1].asked; gap > width) {
      width = gap;
      middle = tries[i - 1].asked + gap / 2;
    }
  return double(width) >= 2 * kLeastStep * double(first) && ask(middle);
}

} // namespace whale
