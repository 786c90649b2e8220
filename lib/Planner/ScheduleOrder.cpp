//===- ScheduleOrder.cpp - The order of each schedule ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a pipeline (stages, TaskGraphs, micro-batches, durations and memory) and
// a kind of schedule. Out: the steps of each stage in order, or an error that
// says why the pipeline cannot have this schedule. GPipe, 1F1B and
// Megatron-LM's interleaved order have closed forms; the other orders are found
// by simulation (ScheduleReady.cpp, ScheduleZeroBubble.cpp).
//
// Cost: linear in the steps of all stages where the order has a closed form. In
// a simulation each step looks at all TaskGraphs (for the zero-bubble schedule
// at all stages), so it is quadratic in these and linear in micro-batches.
//
//===----------------------------------------------------------------------===//

#include "ScheduleOrder.h"
#include "Fail.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <algorithm>
#include <cmath>

using namespace whale;

llvm::Error whale::checkProblem(const ScheduleProblem &problem) {
  if (problem.stages < 1 || problem.chunks < 1 || problem.microBatches < 1)
    return fail("a pipeline has at least 1 stage, 1 task graph a stage and 1 "
                "micro-batch, not " +
                llvm::Twine(problem.stages) + ", " +
                llvm::Twine(problem.chunks) + " and " +
                llvm::Twine(problem.microBatches));
  for (int64_t stage : problem.stageSequence)
    if (stage < 0 || stage >= problem.stages)
      return fail("a task graph is on stage " + llvm::Twine(stage) + ", of " +
                  llvm::Twine(problem.stages) + " stages");
  if (int64_t(problem.costs.size()) != problem.getNumTaskGraphs())
    return fail(llvm::Twine(problem.getNumTaskGraphs()) + " task graphs have " +
                llvm::Twine(problem.costs.size()) + " costs");
  for (auto [i, cost] : llvm::enumerate(problem.costs)) {
    for (double time : {cost.forward, cost.backward, cost.weight, cost.send})
      if (!(time >= 0) || std::isinf(time))
        return fail("task graph " + llvm::Twine(i) +
                    ": a time is negative or not finite");
    if (cost.activationBytes < 0 || cost.weightBytes < 0 || cost.sumBytes < 0 ||
        cost.fixedBytes < 0 || cost.memoryBytes < 0)
      return fail("task graph " + llvm::Twine(i) +
                  ": an amount of memory is negative");
    if (cost.sumParts < 1)
      return fail("task graph " + llvm::Twine(i) +
                  ": its sums have less than one part");
  }
  return llvm::Error::success();
}

/// Returns `count` forwards and as many backwards: first `warmup` forwards,
/// then a forward and a backward alternately, then the remaining backwards. The
/// functions return the k-th forward and backward.
static std::vector<ScheduleStep>
inTurn(int64_t count, int64_t warmup,
       llvm::function_ref<ScheduleStep(int64_t)> forward,
       llvm::function_ref<ScheduleStep(int64_t)> backward) {
  warmup = std::min(warmup, count);
  std::vector<ScheduleStep> steps;
  steps.reserve(2 * count);
  for (int64_t k = 0; k < warmup; ++k)
    steps.push_back(forward(k));
  for (int64_t k = warmup; k < count; ++k) {
    steps.push_back(forward(k));
    steps.push_back(backward(k - warmup));
  }
  for (int64_t k = count - warmup; k < count; ++k)
    steps.push_back(backward(k));
  return steps;
}

/// Returns the number of forwards of a TaskGraph before its first pair of a
/// forward and a backward, if `later` TaskGraphs follow it in the pipeline.
static int64_t warmupOf(ScheduleKind kind, int64_t later) {
  return kind == ScheduleKind::BackwardOptimizer && later > 0 ? later + 1
                                                              : later;
}

/// All forwards of a stage's TaskGraphs, one after the other, then all
/// backwards.
static std::vector<ScheduleStep> forwardsFirst(const ScheduleProblem &problem,
                                               int64_t stage) {
  std::vector<ScheduleStep> steps;
  int64_t chunks = problem.taskGraphsOf(stage).size();
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    for (int64_t m = 0; m < problem.microBatches; ++m)
      steps.push_back({ScheduleStep::Forward, chunk, m});
  for (int64_t chunk = chunks; chunk-- > 0;)
    for (int64_t m = 0; m < problem.microBatches; ++m)
      steps.push_back({ScheduleStep::Backward, chunk, m});
  return steps;
}

/// Runs each backward as soon as possible, in a stage with one TaskGraph.
static std::vector<ScheduleStep> backwardsInTurn(ScheduleKind kind,
                                                 const ScheduleProblem &problem,
                                                 int64_t stage) {
  return inTurn(
      problem.microBatches, warmupOf(kind, problem.stages - 1 - stage),
      [](int64_t k) { return ScheduleStep{ScheduleStep::Forward, 0, k}; },
      [](int64_t k) { return ScheduleStep{ScheduleStep::Backward, 0, k}; });
}

/// The order of Megatron-LM: groups of micro-batches, each with as many as
/// there are stages, pass the stage's TaskGraphs one after the other.
static std::vector<ScheduleStep>
interleavedOrder(const ScheduleProblem &problem, int64_t stage) {
  int64_t stages = problem.stages, chunks = problem.chunks;
  auto at = [&](int64_t k, ScheduleStep::Kind kind) {
    int64_t group = k / (stages * chunks), chunk = k / stages % chunks;
    if (kind == ScheduleStep::Backward)
      chunk = chunks - 1 - chunk;
    return ScheduleStep{kind, chunk, group * stages + k % stages};
  };
  return inTurn(
      problem.microBatches * chunks,
      2 * (stages - 1 - stage) + (chunks - 1) * stages,
      [&](int64_t k) { return at(k, ScheduleStep::Forward); },
      [&](int64_t k) { return at(k, ScheduleStep::Backward); });
}

llvm::Expected<Schedule> whale::makeSchedule(ScheduleKind kind,
                                             const ScheduleProblem &problem) {
  if (llvm::Error error = checkProblem(problem))
    return error;
  bool interleaved = kind == ScheduleKind::Interleaved;
  std::string name = "schedule '" + stringifyScheduleKind(kind).str() + "' ";
  if (interleaved && !problem.stageSequence.empty())
    return fail(name + "needs the same number of task graphs on each stage, in "
                       "the same order; take another schedule");
  if (interleaved && problem.chunks < 2)
    return fail(name +
                "needs at least 2 task graphs on each stage's devices; raise "
                "num_task_graph, let more scopes share the devices, or take "
                "another schedule");
  if (interleaved && problem.microBatches % problem.stages != 0)
    return fail(name + "needs a number of micro-batches that its " +
                llvm::Twine(problem.stages) + " stages divide, not " +
                llvm::Twine(problem.microBatches) +
                "; change num_micro_batch, or take another schedule");

  Schedule schedule;
  bool isPlain = problem.stageSequence.empty() && problem.chunks == 1;
  if (!isPlain && !interleaved && kind != ScheduleKind::GPipe)
    schedule = backwardsAsReady(problem, [&](int64_t taskGraph) {
      int64_t later = problem.getNumTaskGraphs() - 1 - taskGraph;
      return warmupOf(kind, later) + 1;
    });
  else
    for (int64_t stage = 0; stage < problem.stages; ++stage)
      schedule.push_back(interleaved ? interleavedOrder(problem, stage)
                         : kind == ScheduleKind::GPipe
                             ? forwardsFirst(problem, stage)
                             : backwardsInTurn(kind, problem, stage));
  if (kind == ScheduleKind::ZeroBubble)
    return fillBubbles(problem, schedule);
  return schedule;
}
