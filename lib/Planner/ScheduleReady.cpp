//===- ScheduleReady.cpp - Schedules that prefer backwards ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If the devices of a stage hold several TaskGraphs, the step that is ready
// first depends on their durations, so the order is found on the engine. The
// oldest micro-batch is within every limit, so a step can always be taken.
//
//===----------------------------------------------------------------------===//

#include "ScheduleOrder.h"
#include <limits>

using namespace whale;

namespace {

class ReadyOrder : public QueueSource {
public:
  ReadyOrder(const ScheduleProblem &problem,
             llvm::function_ref<int64_t(int64_t)> limitOf)
      : problem(problem), limitOf(limitOf), result(problem.stages) {
    for (int64_t stage = 0; stage < problem.stages; ++stage)
      chunksOf.push_back(problem.taskGraphsOf(stage));
    for (auto &table : taken)
      table.resize(problem.getNumTaskGraphs());
  }

  Schedule run() {
    runStages(problem, *this);
    return std::move(result);
  }

  /// Of the steps that are ready a backward before a forward, and of these the
  /// one of the last TaskGraph.
  std::optional<QueueItem> next(size_t stage, StepEngine &engine) override {
    double first = std::numeric_limits<double>::infinity();
    bool isDone = true;
    for (auto kind : {ScheduleStep::Backward, ScheduleStep::Forward})
      for (size_t chunk = chunksOf[stage].size(); chunk-- > 0;) {
        int64_t taskGraph = chunksOf[stage][chunk];
        if (taken[kind][taskGraph] == problem.microBatches)
          continue;
        isDone = false;
        double ready = readyAt(kind, taskGraph, engine);
        if (ready <= engine.now())
          return take(stage, kind, chunk);
        first = std::min(first, ready);
      }
    if (isDone)
      return std::nullopt;
    return QueueItem{QueueItem::Kind::Idle, 0, first - engine.now()};
  }

private:
  /// When the TaskGraph's next step of the kind can be taken, as far as known.
  double readyAt(ScheduleStep::Kind kind, int64_t taskGraph,
                 const StepEngine &engine) const {
    int64_t m = taken[kind][taskGraph];
    if (kind == ScheduleStep::Forward &&
        m - taken[ScheduleStep::Backward][taskGraph] >= limitOf(taskGraph))
      return std::numeric_limits<double>::infinity();
    auto need = needOf(problem, kind, taskGraph, m);
    return need ? arrivalOf(problem, *need, engine) : 0;
  }

  QueueItem take(size_t stage, ScheduleStep::Kind kind, size_t chunk) {
    int64_t taskGraph = chunksOf[stage][chunk];
    int64_t m = taken[kind][taskGraph]++;
    result[stage].push_back({kind, int64_t(chunk), m});
    const StageCost &cost = problem.costs[taskGraph];
    return {QueueItem::Kind::Compute, 0,
            kind == ScheduleStep::Forward ? cost.forward
                                          : cost.backward + cost.weight,
            signalOf(problem, kind, taskGraph, m)};
  }

  const ScheduleProblem &problem;
  llvm::function_ref<int64_t(int64_t)> limitOf;
  std::vector<std::vector<int64_t>> chunksOf;
  /// By kind and TaskGraph, how many forwards and backwards were taken.
  std::vector<int64_t> taken[2];
  Schedule result;
};

} // namespace

Schedule whale::backwardsAsReady(const ScheduleProblem &problem,
                                 llvm::function_ref<int64_t(int64_t)> limitOf) {
  return ReadyOrder(problem, limitOf).run();
}
