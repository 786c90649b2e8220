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
#include "whale/Step/StepEngine.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace whale {

/// Fails if a count or cost is out of range.
llvm::Error checkProblem(const ScheduleProblem &problem);

/// The step that another step waits for, besides the previous step of its
/// stage: a TaskGraph's step, and the seconds from its end until its results
/// arrive.
struct ScheduleNeed {
  ScheduleStep::Kind kind;
  int64_t taskGraph, microBatch;
  double delay;
};

/// Returns the step that the TaskGraph's step of this kind waits for; nullopt
/// for the first forward.
std::optional<ScheduleNeed> needOf(const ScheduleProblem &problem,
                                   ScheduleStep::Kind kind, int64_t taskGraph,
                                   int64_t microBatch);

/// Returns what the end of a TaskGraph's step is known by, where steps are
/// simulated.
size_t signalOf(const ScheduleProblem &problem, ScheduleStep::Kind kind,
                int64_t taskGraph, int64_t microBatch);

/// Returns when the results of a step have arrived; infinite if it has not
/// begun.
double arrivalOf(const ScheduleProblem &problem, const ScheduleNeed &need,
                 const StepEngine &engine);

/// Returns the item of a stage that waits for the results of a step.
QueueItem awaitOf(const ScheduleProblem &problem, const ScheduleNeed &need);

/// Lets the stages take what `source` says.
void runStages(const ScheduleProblem &problem, QueueSource &source);

/// Returns a schedule that prefers backwards to forwards and, among several
/// TaskGraphs, the last in the pipeline. Each keeps at most `limitOf(it)`
/// micro-batches in flight. Works for any sequence of TaskGraphs.
Schedule
backwardsAsReady(const ScheduleProblem &problem,
                 llvm::function_ref<int64_t(int64_t taskGraph)> limitOf);

/// Inserts the gradients of the weights into a schedule of forwards and
/// backwards: where a stage would wait, and where otherwise more micro-batches
/// would be in flight than there are stages or than memory allows. The result
/// never takes longer than with each gradient right after its backward.
llvm::Expected<Schedule> fillBubbles(const ScheduleProblem &problem,
                                     const Schedule &schedule);

} // namespace whale

#endif // WHALE_LIB_PLANNER_SCHEDULEORDER_H
