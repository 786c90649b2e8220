//===- Schedule.cpp - Names of schedules, and the choice of one -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names of schedules, and the choice of one: makes and simulates the schedule
// of each kind and compares makespans and peak memory. Cost: one simulation for
// each kind.
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/Schedule.h"
#include "Fail.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <functional>
#include <numeric>

using namespace whale;

namespace {
struct KindName {
  ScheduleKind kind;
  llvm::StringRef usual, epl;
};
} // namespace

static constexpr KindName kNames[] = {
    {ScheduleKind::GPipe, "gpipe", "PreferForward"},
    {ScheduleKind::OneForwardOneBackward, "1f1b", "PreferBackward"},
    {ScheduleKind::BackwardOptimizer, "backward-optimizer",
     "PreferBackwardOptimizer"},
    {ScheduleKind::Interleaved, "interleaved", ""},
    {ScheduleKind::ZeroBubble, "zero-bubble", ""},
};

std::optional<ScheduleKind> whale::parseScheduleKind(llvm::StringRef name) {
  for (const KindName &entry : kNames)
    if (!name.empty() && (name.equals_insensitive(entry.usual) ||
                          name.equals_insensitive(entry.epl)))
      return entry.kind;
  return std::nullopt;
}

llvm::StringRef whale::stringifyScheduleKind(ScheduleKind kind) {
  return kNames[static_cast<size_t>(kind)].usual;
}

std::vector<llvm::StringRef> whale::scheduleKindNames() {
  std::vector<llvm::StringRef> names;
  for (const KindName &entry : kNames)
    names.push_back(entry.usual);
  return names;
}

std::vector<int64_t> ScheduleProblem::taskGraphsOf(int64_t stage) const {
  std::vector<int64_t> result;
  for (int64_t v = 0; v < getNumTaskGraphs(); ++v)
    if (stageOf(v) == stage)
      result.push_back(v);
  return result;
}

/// The memory of a device of the stage.
static int64_t memoryOf(const ScheduleProblem &problem, int64_t stage) {
  int64_t bytes = std::numeric_limits<int64_t>::max();
  for (int64_t taskGraph : problem.taskGraphsOf(stage))
    bytes = std::min(bytes, problem.costs[taskGraph].memoryBytes);
  return bytes;
}

/// Returns the stage that exceeds its memory by the most bytes, and these
/// bytes; 0 or less if everything fits.
static std::pair<int64_t, int64_t> worstLack(const ScheduleProblem &problem,
                                             const Timeline &timeline) {
  std::pair<int64_t, int64_t> worst = {0, std::numeric_limits<int64_t>::min()};
  for (int64_t stage = 0; stage < problem.stages; ++stage) {
    int64_t lack = timeline.peakBytes[stage] - memoryOf(problem, stage);
    if (lack > worst.second)
      worst = {stage, lack};
  }
  return worst;
}

static std::string seconds(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.4g s", value);
  return text;
}

llvm::Expected<ScheduleChoice>
whale::chooseSchedule(const ScheduleProblem &problem,
                      llvm::ArrayRef<ScheduleKind> among) {
  std::optional<ScheduleChoice> best;
  int64_t bestLack = 0;
  // In bytes or, if these are unknown, in micro-batches.
  std::pair<int64_t, int64_t> bestPeak;
  std::vector<std::pair<ScheduleKind, std::vector<int64_t>>> heldOf;
  std::string others, misfit;
  for (const KindName &entry : kNames) {
    if (!among.empty() && !llvm::is_contained(among, entry.kind))
      continue;
    llvm::Expected<Schedule> schedule = makeSchedule(entry.kind, problem);
    if (!schedule) {
      misfit +=
          (misfit.empty() ? "" : "; ") + llvm::toString(schedule.takeError());
      continue;
    }
    llvm::Expected<Timeline> timeline = simulate(problem, *schedule);
    if (!timeline)
      return timeline.takeError();
    others += ", " + entry.usual.str() + " " + seconds(timeline->makespan);
    int64_t lack = std::max<int64_t>(worstLack(problem, *timeline).second, 0);
    if (lack > 0)
      others += " (doesn't fit)";
    std::pair<int64_t, int64_t> peak = {
        *llvm::max_element(timeline->peakBytes),
        *llvm::max_element(timeline->peakMicroBatches)};
    heldOf.push_back({entry.kind, timeline->peakMicroBatches});
    // The same costs summed in another order count as equal.
    double slack = best ? best->timeline.makespan * 1e-9 : 0;
    if (best && lack != bestLack) {
      if (lack > bestLack)
        continue;
    } else if (best &&
               (timeline->makespan > best->timeline.makespan + slack ||
                (timeline->makespan >= best->timeline.makespan - slack &&
                 peak >= bestPeak))) {
      continue;
    }
    best = ScheduleChoice{entry.kind, std::move(*schedule),
                          std::move(*timeline), /*reason=*/""};
    bestLack = lack;
    bestPeak = peak;
  }
  if (!best)
    return fail(misfit);
  std::string kind = stringifyScheduleKind(best->kind).str();
  if (among.size() == 1)
    best->reason = kind + " takes " + seconds(best->timeline.makespan);
  else if (bestLack == 0)
    best->reason = kind +
                   " has the least makespan within memory (of equal ones the "
                   "least memory):" +
                   others.substr(1);
  else
    best->reason = kind + " comes closest to fitting:" + others.substr(1);
  if (bestLack > 0) {
    int64_t stage = worstLack(problem, best->timeline).first;
    best->reason += "; as far as is known, stage " + std::to_string(stage) +
                    " lacks " + std::to_string(bestLack) +
                    " bytes of memory with " +
                    std::to_string(best->timeline.peakMicroBatches[stage]) +
                    " micro-batches in flight";
  }
  llvm::ArrayRef<int64_t> own = best->timeline.peakMicroBatches;
  for (const auto &[kind, held] : heldOf)
    best->isReplaceable |=
        kind != best->kind && llvm::all_of_zip(held, own, std::less_equal()) &&
        (best->kind == ScheduleKind::ZeroBubble || own != llvm::ArrayRef(held));
  return std::move(*best);
}
