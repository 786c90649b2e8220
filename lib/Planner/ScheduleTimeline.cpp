//===- ScheduleTimeline.cpp - Simulation of a schedule --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks and simulates a schedule. Stages take steps in order; a step whose
// inputs have not been computed blocks its stage until they are. Records the
// times of all steps and the peak memory of each stage. Cost: that of the
// engine for the number of steps.
//
//===----------------------------------------------------------------------===//

#include "Fail.h"
#include "ScheduleOrder.h"
#include <algorithm>

using namespace whale;

static std::string describe(const ScheduleStep &step) {
  static constexpr const char *names[] = {"forward", "backward",
                                          "weight gradient"};
  return std::string(names[step.kind]) + " of micro-batch " +
         std::to_string(step.microBatch) + ", chunk " +
         std::to_string(step.chunk);
}

std::optional<ScheduleNeed> whale::needOf(const ScheduleProblem &problem,
                                          ScheduleStep::Kind kind,
                                          int64_t taskGraph,
                                          int64_t microBatch) {
  int64_t last = problem.getNumTaskGraphs() - 1;
  auto send = [&](int64_t from) {
    // Nothing is sent between TaskGraphs on the same devices.
    bool stays = problem.stageOf(from) == problem.stageOf(from + 1);
    return stays ? 0 : problem.costs[from].send;
  };
  switch (kind) {
  case ScheduleStep::Forward:
    if (taskGraph == 0)
      return std::nullopt;
    return ScheduleNeed{kind, taskGraph - 1, microBatch, send(taskGraph - 1)};
  case ScheduleStep::Backward:
    if (taskGraph == last)
      return ScheduleNeed{ScheduleStep::Forward, last, microBatch, 0};
    return ScheduleNeed{kind, taskGraph + 1, microBatch, send(taskGraph)};
  case ScheduleStep::WeightGradient:
    return ScheduleNeed{ScheduleStep::Backward, taskGraph, microBatch, 0};
  }
  llvm_unreachable("unknown kind of step");
}

size_t whale::signalOf(const ScheduleProblem &problem, ScheduleStep::Kind kind,
                       int64_t taskGraph, int64_t microBatch) {
  return (kind * problem.getNumTaskGraphs() + taskGraph) *
             problem.microBatches +
         microBatch;
}

double whale::arrivalOf(const ScheduleProblem &problem,
                        const ScheduleNeed &need, const StepEngine &engine) {
  size_t signal = signalOf(problem, need.kind, need.taskGraph, need.microBatch);
  return engine.endOf(signal) + need.delay;
}

QueueItem whale::awaitOf(const ScheduleProblem &problem,
                         const ScheduleNeed &need) {
  return {QueueItem::Kind::Await, 0, need.delay,
          signalOf(problem, need.kind, need.taskGraph, need.microBatch)};
}

void whale::runStages(const ScheduleProblem &problem, QueueSource &source) {
  std::vector<RankQueue> queues(problem.stages);
  StepEngine(queues).run(source);
}

namespace {

/// Lets each stage take its steps in their order.
class Simulation : public QueueSource {
public:
  Simulation(const ScheduleProblem &problem, const Schedule &schedule)
      : problem(problem), schedule(schedule), awaited(problem.stages),
        splits(problem.getNumTaskGraphs()) {
    for (int64_t stage = 0; stage < problem.stages; ++stage)
      chunksOf.push_back(problem.taskGraphsOf(stage));
  }

  llvm::Expected<Timeline> run() {
    if (llvm::Error error = check())
      return error;
    timeline.steps.resize(problem.stages);
    timeline.idle.assign(problem.stages, 0);
    runStages(problem, *this);
    for (int64_t stage = 0; stage < problem.stages; ++stage) {
      size_t done = timeline.steps[stage].size();
      if (done < schedule[stage].size())
        return fail("stage " + llvm::Twine(stage) +
                    " waits for ever before the " +
                    describe(schedule[stage][done]));
      if (done != 0)
        timeline.makespan =
            std::max(timeline.makespan, timeline.steps[stage].back().end);
      addPeaks(stage);
    }
    for (int64_t stage = 0; stage < problem.stages; ++stage) {
      timeline.idle[stage] = timeline.makespan;
      for (const Timeline::Interval &step : timeline.steps[stage])
        timeline.idle[stage] -= step.end - step.start;
    }
    return std::move(timeline);
  }

  std::optional<QueueItem> next(size_t stage, StepEngine &engine) override {
    std::vector<Timeline::Interval> &done = timeline.steps[stage];
    if (done.size() == schedule[stage].size())
      return std::nullopt;
    const ScheduleStep &step = schedule[stage][done.size()];
    int64_t taskGraph = chunksOf[stage][step.chunk];
    if (std::optional<QueueItem> item = nextAwait(stage, step, taskGraph))
      return item;
    awaited[stage] = 0;
    double seconds = durationOf(step.kind, taskGraph);
    timeline.order.push_back({int64_t(stage), done.size()});
    done.push_back({engine.now(), engine.now() + seconds});
    return QueueItem{QueueItem::Kind::Compute, 0, seconds,
                     signalOf(problem, step.kind, taskGraph, step.microBatch)};
  }

private:
  int64_t taskGraphOf(int64_t stage, int64_t chunk) const {
    return chunksOf[stage][chunk];
  }
  int64_t chunkCount(int64_t stage) const { return chunksOf[stage].size(); }

  /// What the step waits for and has not waited for yet.
  std::optional<QueueItem> nextAwait(int64_t stage, const ScheduleStep &step,
                                     int64_t taskGraph) {
    auto need = needOf(problem, step.kind, taskGraph, step.microBatch);
    if (awaited[stage] < 1 && ++awaited[stage] && need)
      return awaitOf(problem, *need);
    // A backward reads what the forward of the same micro-batch kept.
    if (awaited[stage] < 2 && ++awaited[stage] &&
        step.kind == ScheduleStep::Backward)
      return awaitOf(problem, {ScheduleStep::Forward, taskGraph,
                               step.microBatch, /*delay=*/0});
    return std::nullopt;
  }

  /// Checks that the schedule has each step of the problem once, and no others.
  llvm::Error check() {
    if (int64_t(schedule.size()) != problem.stages)
      return fail("a schedule for " + llvm::Twine(schedule.size()) +
                  " stages doesn't fit a pipeline of " +
                  llvm::Twine(problem.stages));
    std::vector<int64_t> counts[3];
    for (auto &table : counts)
      table.assign(splits.size() * problem.microBatches, 0);
    for (int64_t stage = 0; stage < problem.stages; ++stage)
      for (const ScheduleStep &step : schedule[stage]) {
        std::string where =
            "stage " + std::to_string(stage) + ": " + describe(step);
        if (step.chunk < 0 || step.chunk >= chunkCount(stage) ||
            step.microBatch < 0 || step.microBatch >= problem.microBatches)
          return fail(where + " is no step of the problem");
        int64_t taskGraph = taskGraphOf(stage, step.chunk);
        if (step.kind == ScheduleStep::WeightGradient)
          splits[taskGraph] = true;
        if (++counts[step.kind]
                    [taskGraph * problem.microBatches + step.microBatch] > 1)
          return fail(where + " is scheduled twice");
      }
    for (int64_t stage = 0; stage < problem.stages; ++stage)
      for (int64_t chunk = 0; chunk < chunkCount(stage); ++chunk)
        for (int64_t m = 0; m < problem.microBatches; ++m) {
          int64_t taskGraph = taskGraphOf(stage, chunk);
          for (auto kind : {ScheduleStep::Forward, ScheduleStep::Backward,
                            ScheduleStep::WeightGradient}) {
            bool wanted =
                kind != ScheduleStep::WeightGradient || splits[taskGraph];
            if (wanted && !counts[kind][taskGraph * problem.microBatches + m])
              return fail("stage " + llvm::Twine(stage) + ": " +
                          describe({kind, chunk, m}) + " is missing");
          }
        }
    return llvm::Error::success();
  }

  double durationOf(ScheduleStep::Kind kind, int64_t taskGraph) const {
    const StageCost &cost = problem.costs[taskGraph];
    switch (kind) {
    case ScheduleStep::Forward:
      return cost.forward;
    case ScheduleStep::Backward:
      return splits[taskGraph] ? cost.backward : cost.backward + cost.weight;
    case ScheduleStep::WeightGradient:
      return cost.weight;
    }
    llvm_unreachable("unknown kind of step");
  }

  void addPeaks(int64_t stage) {
    int64_t held = 0, peak = 0;
    for (const ScheduleStep &step : schedule[stage]) {
      bool waits = splits[taskGraphOf(stage, step.chunk)];
      if (step.kind == ScheduleStep::Forward)
        peak = std::max(peak, ++held);
      else if (!waits || step.kind == ScheduleStep::WeightGradient)
        --held;
    }
    timeline.peakMicroBatches.push_back(peak);
    std::vector<StageCost> chunks;
    for (int64_t taskGraph : chunksOf[stage])
      chunks.push_back(problem.costs[taskGraph]);
    timeline.peakBytes.push_back(findPeakBytes(schedule[stage], chunks));
  }

  const ScheduleProblem &problem;
  const Schedule &schedule;
  Timeline timeline;
  std::vector<std::vector<int64_t>> chunksOf;
  /// By stage, how many of the things that its next step may wait for it has
  /// waited for.
  std::vector<int> awaited;
  /// Whether each TaskGraph has separate weight gradients.
  std::vector<bool> splits;
};

} // namespace

int64_t
whale::findPeakBytes(llvm::ArrayRef<ScheduleStep> steps,
                     llvm::ArrayRef<StageCost> chunks,
                     llvm::function_ref<double(int64_t, int64_t)> partOf) {
  std::vector<bool> splits(chunks.size()), hasSums(chunks.size());
  for (const ScheduleStep &step : steps)
    if (step.kind == ScheduleStep::WeightGradient &&
        chunks[step.chunk].weightBytes > 0)
      splits[step.chunk] = true;
  int64_t bytes = 0;
  for (const StageCost &chunk : chunks)
    bytes += chunk.fixedBytes;
  int64_t peak = bytes;
  for (size_t next = 0; next < steps.size();) {
    const ScheduleStep &step = steps[next++];
    const StageCost &cost = chunks[step.chunk];
    auto partly = [&](int64_t amount) {
      return partOf
                 ? int64_t(double(amount) * partOf(step.chunk, step.microBatch))
                 : amount;
    };
    int64_t activations = partly(cost.activationBytes);
    int64_t forWeights = partly(cost.weightBytes);
    if (step.kind == ScheduleStep::Forward) {
      peak = std::max(peak, bytes += activations);
      continue;
    }
    bool isWeights = step.kind == ScheduleStep::WeightGradient;
    // Where nothing waits for it, the backward computes them.
    if (isWeights && !splits[step.chunk])
      continue;
    bool isSplit = splits[step.chunk] && !isWeights;
    // A backward with the gradients of its weights right behind it may be
    // whole.
    if (isSplit && cost.joinsWeight && next < steps.size() &&
        steps[next].kind == ScheduleStep::WeightGradient &&
        steps[next].chunk == step.chunk &&
        steps[next].microBatch == step.microBatch) {
      isSplit = false;
      ++next;
    }
    if (isSplit) {
      peak = std::max(peak, bytes += forWeights - activations);
      continue;
    }
    int64_t freed = isWeights ? forWeights : activations;
    if (!hasSums[step.chunk]) {
      hasSums[step.chunk] = true;
      // The first part begins with all that is kept, the last with all sums.
      peak = std::max({peak, bytes + cost.sumBytes / cost.sumParts,
                       bytes + cost.sumBytes - freed + freed / cost.sumParts});
      bytes += cost.sumBytes;
    }
    bytes -= freed;
  }
  return peak;
}

llvm::Expected<Timeline> whale::simulate(const ScheduleProblem &problem,
                                         const Schedule &schedule) {
  if (llvm::Error error = checkProblem(problem))
    return error;
  return Simulation(problem, schedule).run();
}
