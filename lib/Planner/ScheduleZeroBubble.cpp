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

/// Inserts the gradients of the weights into a schedule on the engine.
class Filler : public QueueSource {
public:
  /// A `patient` stage waits for a step that is due before the weight gradient
  /// would be done.
  Filler(const ScheduleProblem &problem, const Schedule &schedule, bool patient)
      : problem(problem), schedule(schedule), patient(patient),
        stages(problem.stages), result(problem.stages) {
    for (int64_t stage = 0; stage < problem.stages; ++stage) {
      stages[stage].chunks = problem.taskGraphsOf(stage);
      stages[stage].limit = limitOf(stage);
    }
  }

  Schedule run() {
    runStages(problem, *this);
    return std::move(result);
  }

  std::optional<QueueItem> next(size_t stage, StepEngine &engine) override {
    Stage &state = stages[stage];
    bool hasWeight = !state.weights.empty();
    if (state.next == schedule[stage].size())
      return hasWeight ? std::optional(takeWeight(stage)) : std::nullopt;
    const ScheduleStep &step = schedule[stage][state.next];
    bool full = step.kind == ScheduleStep::Forward && state.held >= state.limit;
    if (full && hasWeight)
      return takeWeight(stage);
    auto need = needOf(problem, step.kind, taskGraphOf(stage, step.chunk),
                       step.microBatch);
    double ready = need ? arrivalOf(problem, *need, engine) : 0;
    if (ready <= engine.now())
      return takeStep(stage, step);
    if (!hasWeight)
      return awaitOf(problem, *need);
    double duration =
        problem.costs[taskGraphOf(stage, state.weights.front().chunk)].weight;
    return patient && engine.now() + duration > ready ? awaitOf(problem, *need)
                                                      : takeWeight(stage);
  }

private:
  struct Stage {
    std::vector<int64_t> chunks;
    size_t next = 0;
    /// Number of micro-batches whose activations are kept.
    int64_t held = 0, limit = 0;
    std::deque<ScheduleStep> weights;
  };
  int64_t taskGraphOf(int64_t stage, int64_t chunk) const {
    return stages[stage].chunks[chunk];
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

  QueueItem takeStep(int64_t stage, const ScheduleStep &step) {
    Stage &state = stages[stage];
    ++state.next;
    const StageCost &cost = problem.costs[taskGraphOf(stage, step.chunk)];
    if (step.kind == ScheduleStep::Forward) {
      ++state.held;
      return take(stage, step, cost.forward);
    }
    state.weights.push_back(
        {ScheduleStep::WeightGradient, step.chunk, step.microBatch});
    return take(stage, step, cost.backward);
  }

  QueueItem takeWeight(int64_t stage) {
    Stage &state = stages[stage];
    ScheduleStep step = state.weights.front();
    state.weights.pop_front();
    --state.held;
    return take(stage, step,
                problem.costs[taskGraphOf(stage, step.chunk)].weight);
  }

  QueueItem take(int64_t stage, const ScheduleStep &step, double seconds) {
    result[stage].push_back(step);
    return {QueueItem::Kind::Compute, 0, seconds,
            signalOf(problem, step.kind, taskGraphOf(stage, step.chunk),
                     step.microBatch)};
  }

  const ScheduleProblem &problem;
  const Schedule &schedule;
  bool patient;
  std::vector<Stage> stages;
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
