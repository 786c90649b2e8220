//===- ScheduleOrder.h - Parts of the schedules -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PLANNER_SCHEDULEORDER_H
#define WHALE_LIB_PLANNER_SCHEDULEORDER_H

#include "whale/Planner/Schedule.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace whale {

/// Fails where a count or cost is out of range.
llvm::Error checkProblem(const ScheduleProblem &problem);

/// What a step waits for besides the step before it on its stage: the step of
/// a TaskGraph, and the seconds from its end until what it sent is there.
struct ScheduleNeed {
  ScheduleStep::Kind kind;
  int64_t taskGraph, microBatch;
  double delay;
};

/// What the TaskGraph's step of this kind waits for; none for the first
/// forward.
std::optional<ScheduleNeed> needOf(const ScheduleProblem &problem,
                                   ScheduleStep::Kind kind, int64_t taskGraph,
                                   int64_t microBatch);

/// A backward as soon as there is one, else a forward; of several TaskGraphs
/// the last in the pipeline. Each keeps at most `limitOf(it)` micro-batches in
/// flight. For any sequence of TaskGraphs.
Schedule
backwardsAsReady(const ScheduleProblem &problem,
                 llvm::function_ref<int64_t(int64_t taskGraph)> limitOf);

/// Adds the gradients of the weights to a schedule of forwards and backwards:
/// where a stage would wait, and where there would be more micro-batches in
/// flight than there are stages or than memory allows. Never later than with
/// each right after its backward.
llvm::Expected<Schedule> fillBubbles(const ScheduleProblem &problem,
                                     const Schedule &schedule);

} // namespace whale

#endif // WHALE_LIB_PLANNER_SCHEDULEORDER_H
