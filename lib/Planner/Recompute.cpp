//===- Recompute.cpp - What a backward computes again -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/Recompute.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>

namespace whale {
namespace {

/// More plans for one number of pieces are thinned out.
constexpr size_t kMostPlans = 4096;
/// Of those, so many classes of bytes kept stay, each with its fastest plan and
/// that of the lowest peak.
constexpr int64_t kThinnedClasses = 512;

/// A plan for the first pieces of a chain.
struct Partial {
  int64_t kept = 0, peak = 0;
  double seconds = 0;
  /// The last choice, and the plan before it: of how many pieces, and which.
  size_t choice = 0, before = 0;
};

auto orderOf(const Partial &plan) {
  return std::tuple(plan.kept, plan.seconds, plan.peak);
}

/// What other micro-batches in flight keep, and this one at its peak.
int64_t totalPeak(int64_t kept, int64_t peak, int64_t inFlight) {
  return (inFlight - 1) * kept + peak;
}

class Search {
public:
  Search(int64_t numPieces, std::span<const RecomputeChoice> choices,
         int64_t inFlight)
      : numPieces(numPieces), choices(choices), inFlight(inFlight),
        endingAt(numPieces + 1), plans(numPieces + 1) {
    for (size_t i = 0; i < choices.size(); ++i)
      endingAt[choices[i].end].push_back(i);
  }

  /// Finds the plans within the limit, with `ignoresTime` only those that are
  /// better in bytes. False if there is none.
  bool run(int64_t limit, bool ignoresTime);
  RecomputePlan takeBest(bool isFastest) const;

private:
  void extend(const RecomputeChoice &choice, size_t index, int64_t limit);
  void prune(std::vector<Partial> &found, bool ignoresTime) const;
  static void thin(std::vector<Partial> &found);

  int64_t numPieces;
  std::span<const RecomputeChoice> choices;
  int64_t inFlight;
  std::vector<std::vector<size_t>> endingAt;
  std::vector<std::vector<Partial>> plans;
};

void Search::extend(const RecomputeChoice &choice, size_t index,
                    int64_t limit) {
  const std::vector<Partial> &before = plans[choice.first];
  for (size_t i = 0; i < before.size(); ++i) {
    Partial next;
    next.kept = before[i].kept + choice.keptBytes;
    next.peak = std::max(before[i].peak, next.kept + choice.againBytes);
    next.seconds = before[i].seconds + choice.seconds;
    next.choice = index;
    next.before = i;
    // Neither number gets smaller with more pieces.
    if (totalPeak(next.kept, next.peak, inFlight) <= limit)
      plans[choice.end].push_back(next);
  }
}

/// Drops the plans that another one is not worse than in anything.
void Search::prune(std::vector<Partial> &found, bool ignoresTime) const {
  if (ignoresTime)
    for (Partial &plan : found)
      plan.seconds = 0;
  std::stable_sort(found.begin(), found.end(),
                   [](const Partial &a, const Partial &b) {
                     return orderOf(a) < orderOf(b);
                   });
  // Of those that keep no more: by seconds, the lowest peak of as few seconds.
  std::map<double, int64_t> lowest;
  std::vector<Partial> stay;
  for (const Partial &plan : found) {
    auto it = lowest.upper_bound(plan.seconds);
    if (it != lowest.begin() && std::prev(it)->second <= plan.peak)
      continue;
    stay.push_back(plan);
    while (it != lowest.end() && it->second >= plan.peak)
      it = lowest.erase(it);
    lowest[plan.seconds] = plan.peak;
  }
  found = std::move(stay);
  if (found.size() > kMostPlans)
    thin(found);
}

/// The plans are sorted by the bytes that they keep.
void Search::thin(std::vector<Partial> &found) {
  int64_t least = found.front().kept;
  int64_t width = (found.back().kept - least) / kThinnedClasses + 1;
  std::vector<Partial> stay;
  for (size_t first = 0, end = 0; first < found.size(); first = end) {
    size_t fastest = first, lowest = first;
    for (end = first;
         end < found.size() && (found[end].kept - least) / width ==
                                   (found[first].kept - least) / width;
         ++end) {
      if (found[end].seconds < found[fastest].seconds)
        fastest = end;
      if (found[end].peak < found[lowest].peak)
        lowest = end;
    }
    stay.push_back(found[fastest]);
    if (lowest != fastest)
      stay.push_back(found[lowest]);
  }
  found = std::move(stay);
}

bool Search::run(int64_t limit, bool ignoresTime) {
  for (std::vector<Partial> &found : plans)
    found.clear();
  plans[0].emplace_back();
  for (int64_t end = 1; end <= numPieces; ++end) {
    for (size_t index : endingAt[end])
      extend(choices[index], index, limit);
    prune(plans[end], ignoresTime);
  }
  return !plans[numPieces].empty();
}

RecomputePlan Search::takeBest(bool isFastest) const {
  auto rankOf = [&](const Partial &plan) {
    auto peak = double(totalPeak(plan.kept, plan.peak, inFlight));
    return isFastest ? std::pair(plan.seconds, peak)
                     : std::pair(peak, plan.seconds);
  };
  const std::vector<Partial> &last = plans[numPieces];
  size_t best = std::min_element(last.begin(), last.end(),
                                 [&](const Partial &a, const Partial &b) {
                                   return rankOf(a) < rankOf(b);
                                 }) -
                last.begin();
  RecomputePlan result;
  result.peakBytes = totalPeak(last[best].kept, last[best].peak, inFlight);
  for (int64_t end = numPieces; end > 0;) {
    const Partial &plan = plans[end][best];
    result.choices.push_back(plan.choice);
    result.seconds += choices[plan.choice].seconds;
    best = plan.before;
    end = choices[plan.choice].first;
  }
  std::reverse(result.choices.begin(), result.choices.end());
  return result;
}

} // namespace

int64_t findRecomputePeak(std::span<const RecomputeChoice> chain,
                          int64_t inFlight) {
  int64_t kept = 0, peak = 0;
  for (const RecomputeChoice &choice : chain) {
    kept += choice.keptBytes;
    peak = std::max(peak, kept + choice.againBytes);
  }
  return totalPeak(kept, peak, inFlight);
}

RecomputePlan chooseRecompute(int64_t numPieces,
                              std::span<const RecomputeChoice> choices,
                              int64_t inFlight, int64_t limit) {
  assert(inFlight > 0 && "a micro-batch whose backward runs is in flight");
  Search search(numPieces, choices, inFlight);
  if (search.run(limit, /*ignoresTime=*/false))
    return search.takeBest(/*isFastest=*/true);
  constexpr int64_t noLimit = INT64_MAX;
  [[maybe_unused]] bool isCovered = search.run(noLimit, /*ignoresTime=*/true);
  assert(isCovered && "every piece is in a choice of its own");
  RecomputePlan least = search.takeBest(/*isFastest=*/false);
  // Of those with the lowest peak the fastest.
  if (search.run(least.peakBytes, /*ignoresTime=*/false))
    return search.takeBest(/*isFastest=*/true);
  return least;
}

} // namespace whale
