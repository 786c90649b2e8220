//===- ScheduleZeroBubble.cpp - Weight gradients that fill bubbles --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inserts weight gradients into a schedule of forwards and backwards (ZB-H1).
// In: the pipeline and a schedule. Out: the schedule with a WeightGradient step
// for each backward. The idea: simulate; where a stage would wait, it computes
// a weight gradient instead. Tries a few variants and keeps the fastest. Cost:
// a simulation for each.
//
//===----------------------------------------------------------------------===//

#include "ScheduleOrder.h"
#include "llvm/ADT/DenseMap.h"
#include <algorithm>
#include <deque>

using namespace whale;

namespace {

/// Inserts the gradients of the weights into a schedule by simulating it.
class Filler {
public:
  /// A `patient` stage waits for a step that is due before the weight gradient
  /// would be done.
  Filler(const ScheduleProblem &problem, const Schedule &schedule, bool patient)
      : problem(problem), schedule(schedule), patient(patient),
        stages(problem.stages), result(problem.stages) {
    int64_t taskGraphs = problem.getNumTaskGraphs();
    for (auto &table : ends)
      table.assign(taskGraphs * problem.microBatches, kUndone);
    for (int64_t stage = 0; stage < problem.stages; ++stage) {
      stages[stage].chunks = problem.taskGraphsOf(stage);
      stages[stage].limit = limitOf(stage);
    }
  }

  /// Always takes the step that starts first, so that no step that becomes
  /// ready later could have started before it.
  Schedule run() {
    while (true) {
      std::optional<Choice> first;
      for (int64_t stage = 0; stage < problem.stages; ++stage) {
        std::optional<Choice> choice = choose(stage);
        if (choice && (!first || choice->start < first->start))
          first = choice;
      }
      if (!first)
        return std::move(result);
      take(*first);
    }
  }

private:
  static constexpr double kUndone = -1;

  struct Stage {
    std::vector<int64_t> chunks;
    size_t next = 0;
    double free = 0;
    /// Number of micro-batches whose activations are kept.
    int64_t held = 0, limit = 0;
    std::deque<ScheduleStep> weights;
  };
  struct Choice {
    int64_t stage;
    ScheduleStep step;
    double start;
  };

  int64_t taskGraphOf(int64_t stage, int64_t chunk) const {
    return stages[stage].chunks[chunk];
  }
  double &endOf(int64_t taskGraph, ScheduleStep::Kind kind, int64_t m) {
    return ends[kind][taskGraph * problem.microBatches + m];
  }

  /// Returns how many micro-batches a stage may hold: as many as the first
  /// stage holds anyway, or as memory allows, but at least as many as without
  /// separate weight gradients.
  int64_t limitOf(int64_t stage) const {
    int64_t held = 0, most = 0, room = problem.getNumTaskGraphs();
    int64_t bytes = 0, memory = std::numeric_limits<int64_t>::max();
    int64_t kept = 0;
    for (int64_t taskGraph : stages[stage].chunks) {
      const StageCost &cost = problem.costs[taskGraph];
      bytes += cost.fixedBytes + cost.sumBytes;
      memory = std::min(memory, cost.memoryBytes);
      kept = std::max({kept, cost.activationBytes, cost.weightBytes});
    }
    for (const ScheduleStep &step : schedule[stage])
      most =
          std::max(most, step.kind == ScheduleStep::Forward ? ++held : --held);
    if (kept > 0)
      room = std::min(room, (memory - bytes) / kept);
    return std::max(most, room);
  }

  /// Returns the stage's next step and its start.
  std::optional<Choice> choose(int64_t stage) {
    Stage &state = stages[stage];
    std::optional<Choice> next, weight;
    if (!state.weights.empty())
      weight = {stage, state.weights.front(), state.free};
    if (state.next == schedule[stage].size())
      return weight;
    const ScheduleStep &step = schedule[stage][state.next];
    bool full = step.kind == ScheduleStep::Forward && state.held >= state.limit;
    if (full && weight)
      return weight;
    auto need = needOf(problem, step.kind, taskGraphOf(stage, step.chunk),
                       step.microBatch);
    double ready = 0;
    if (need) {
      double end = endOf(need->taskGraph, need->kind, need->microBatch);
      if (end == kUndone)
        return weight;
      ready = end + need->delay;
    }
    next = {stage, step, std::max(state.free, ready)};
    if (!weight || ready <= state.free)
      return next;
    double duration =
        problem.costs[taskGraphOf(stage, weight->step.chunk)].weight;
    return patient && state.free + duration > ready ? next : weight;
  }

  void take(const Choice &choice) {
    Stage &state = stages[choice.stage];
    const ScheduleStep &step = choice.step;
    int64_t taskGraph = taskGraphOf(choice.stage, step.chunk);
    const StageCost &cost = problem.costs[taskGraph];
    result[choice.stage].push_back(step);
    state.free = choice.start;
    switch (step.kind) {
    case ScheduleStep::Forward:
      state.free += cost.forward;
      ++state.held;
      ++state.next;
      break;
    case ScheduleStep::Backward:
      state.free += cost.backward;
      state.weights.push_back(
          {ScheduleStep::WeightGradient, step.chunk, step.microBatch});
      ++state.next;
      break;
    case ScheduleStep::WeightGradient:
      state.free += cost.weight;
      --state.held;
      state.weights.pop_front();
      break;
    }
    endOf(taskGraph, step.kind, step.microBatch) = state.free;
  }

  const ScheduleProblem &problem;
  const Schedule &schedule;
  bool patient;
  std::vector<Stage> stages;
  std::vector<double> ends[3];
  Schedule result;
};

} // namespace

/// Returns the schedule with each weight gradient right after its backward.
static Schedule atOnce(const Schedule &schedule) {
  Schedule result(schedule.size());
  for (auto [from, to] : llvm::zip_equal(schedule, result))
    for (const ScheduleStep &step : from) {
      to.push_back(step);
      if (step.kind == ScheduleStep::Backward)
        to.push_back(
            {ScheduleStep::WeightGradient, step.chunk, step.microBatch});
    }
  return result;
}

llvm::Expected<Schedule> whale::fillBubbles(const ScheduleProblem &problem,
                                            const Schedule &schedule) {
  Schedule best;
  std::optional<double> makespan;
  // Filling is greedy; the steps that it delays may cost more than it gains.
  for (const Schedule &candidate :
       {atOnce(schedule), Filler(problem, schedule, false).run(),
        Filler(problem, schedule, true).run()}) {
    llvm::Expected<Timeline> timeline = simulate(problem, candidate);
    if (!timeline)
      return timeline.takeError();
    if (makespan && timeline->makespan >= *makespan)
      continue;
    makespan = timeline->makespan;
    best = candidate;
  }
  return best;
}
