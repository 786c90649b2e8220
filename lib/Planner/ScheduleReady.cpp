//===- ScheduleReady.cpp - Schedules that prefer backwards ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// If the devices of a stage hold several TaskGraphs, the step that is ready
// first depends on their durations, so the order is found by simulation. The
// oldest micro-batch is within every limit, so a step can always be taken.
//
//===----------------------------------------------------------------------===//

#include "ScheduleOrder.h"

using namespace whale;

namespace {

class ReadyOrder {
public:
  ReadyOrder(const ScheduleProblem &problem,
             llvm::function_ref<int64_t(int64_t)> limitOf)
      : problem(problem), limitOf(limitOf), free(problem.stages, 0),
        result(problem.stages) {
    for (int64_t stage = 0; stage < problem.stages; ++stage)
      chunksOf.push_back(problem.taskGraphsOf(stage));
    for (auto &table : ends)
      table.resize(problem.getNumTaskGraphs());
  }

  /// Always takes the step that starts first, so that no step that becomes
  /// ready later could have started before it.
  Schedule run() {
    while (true) {
      std::optional<Choice> first;
      for (int64_t stage = 0; stage < problem.stages; ++stage)
        for (size_t chunk = chunksOf[stage].size(); chunk-- > 0;)
          for (auto kind : {ScheduleStep::Backward, ScheduleStep::Forward})
            if (std::optional<Choice> choice = choose(stage, chunk, kind);
                choice && (!first || choice->rank() < first->rank()))
              first = choice;
      if (!first)
        return std::move(result);
      take(*first);
    }
  }

private:
  struct Choice {
    int64_t stage, taskGraph;
    ScheduleStep step;
    double start;

    /// Backwards before forwards; otherwise the first in order.
    std::pair<double, bool> rank() const {
      return {start, step.kind == ScheduleStep::Forward};
    }
  };

  /// Returns the TaskGraph's next step of the kind, if it can be taken.
  std::optional<Choice> choose(int64_t stage, size_t chunk,
                               ScheduleStep::Kind kind) {
    int64_t taskGraph = chunksOf[stage][chunk];
    int64_t m = ends[kind][taskGraph].size();
    int64_t inFlight =
        m - int64_t(ends[ScheduleStep::Backward][taskGraph].size());
    if (m == problem.microBatches ||
        (kind == ScheduleStep::Forward && inFlight >= limitOf(taskGraph)))
      return std::nullopt;
    double start = free[stage];
    if (auto need = needOf(problem, kind, taskGraph, m)) {
      const std::vector<double> &done = ends[need->kind][need->taskGraph];
      if (int64_t(done.size()) <= m)
        return std::nullopt;
      start = std::max(start, done[m] + need->delay);
    }
    return Choice{stage, taskGraph, {kind, int64_t(chunk), m}, start};
  }

  void take(const Choice &choice) {
    const StageCost &cost = problem.costs[choice.taskGraph];
    result[choice.stage].push_back(choice.step);
    bool isForward = choice.step.kind == ScheduleStep::Forward;
    free[choice.stage] =
        choice.start + (isForward ? cost.forward : cost.backward + cost.weight);
    ends[choice.step.kind][choice.taskGraph].push_back(free[choice.stage]);
  }

  const ScheduleProblem &problem;
  llvm::function_ref<int64_t(int64_t)> limitOf;
  std::vector<std::vector<int64_t>> chunksOf;
  /// When each stage can take its next step.
  std::vector<double> free;
  /// When each TaskGraph's forwards and backwards ended.
  std::vector<std::vector<double>> ends[2];
  Schedule result;
};

} // namespace

Schedule whale::backwardsAsReady(const ScheduleProblem &problem,
                                 llvm::function_ref<int64_t(int64_t)> limitOf) {
  return ReadyOrder(problem, limitOf).run();
}
