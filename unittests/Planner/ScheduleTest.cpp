//===- ScheduleTest.cpp - Orders, timelines and the choice of one ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The schedules of a pipeline in particular cases: the order of each stage's
// steps, the simulated timeline, peaks of memory, and which schedule is chosen
// and why. Orders, times and bytes are computed by hand, those with sends taken
// from published figures; messages are compared word for word.
//
// What holds for all schedules is in SchedulePropertyTest.cpp. A changed order
// here may still be a valid one; a changed time or peak means another cost
// model.
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/Schedule.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace whale;

using Peaks = std::vector<int64_t>;

static ScheduleProblem equalStages(int64_t stages, int64_t microBatches,
                                   StageCost cost, int64_t chunks = 1) {
  return {stages, chunks, microBatches,
          std::vector<StageCost>(stages * chunks, cost)};
}

static Timeline timelineOf(ScheduleKind kind, const ScheduleProblem &problem) {
  return llvm::cantFail(
      simulate(problem, llvm::cantFail(makeSchedule(kind, problem))));
}

/// One stage's steps: F0 B0 W0, with the chunk before where there are several.
static std::string print(llvm::ArrayRef<ScheduleStep> steps, bool chunks) {
  std::string text;
  for (const ScheduleStep &step : steps) {
    text += text.empty() ? "" : " ";
    text += "FBW"[step.kind];
    if (chunks)
      text += std::to_string(step.chunk) + ".";
    text += std::to_string(step.microBatch);
  }
  return text;
}

static std::vector<std::string> printed(ScheduleKind kind,
                                        const ScheduleProblem &problem) {
  std::vector<std::string> lines;
  for (const auto &steps : llvm::cantFail(makeSchedule(kind, problem)))
    lines.push_back(print(steps, problem.chunks > 1));
  return lines;
}

static std::string errorOf(ScheduleKind kind, const ScheduleProblem &problem) {
  llvm::Expected<Schedule> result = makeSchedule(kind, problem);
  return result ? "" : llvm::toString(result.takeError());
}

static std::string errorOf(const ScheduleProblem &problem,
                           const Schedule &schedule) {
  llvm::Expected<Timeline> result = simulate(problem, schedule);
  return result ? "" : llvm::toString(result.takeError());
}

TEST(Schedule, Names) {
  EXPECT_EQ(parseScheduleKind("PreferForward"), ScheduleKind::GPipe);
  EXPECT_EQ(parseScheduleKind("GPipe"), ScheduleKind::GPipe);
  EXPECT_EQ(parseScheduleKind("preferbackward"),
            ScheduleKind::OneForwardOneBackward);
  EXPECT_EQ(parseScheduleKind("1F1B"), ScheduleKind::OneForwardOneBackward);
  EXPECT_EQ(parseScheduleKind("PreferBackwardOptimizer"),
            ScheduleKind::BackwardOptimizer);
  EXPECT_EQ(parseScheduleKind(""), std::nullopt);
  EXPECT_EQ(parseScheduleKind("1f1b "), std::nullopt);
  EXPECT_EQ(scheduleKindNames().size(), 5u);
  for (llvm::StringRef name : scheduleKindNames())
    EXPECT_EQ(stringifyScheduleKind(*parseScheduleKind(name)), name);
}

TEST(Schedule, PlainOrders) {
  ScheduleProblem problem = equalStages(2, 3, {1, 2});
  EXPECT_EQ(
      printed(ScheduleKind::GPipe, problem),
      (std::vector<std::string>{"F0 F1 F2 B0 B1 B2", "F0 F1 F2 B0 B1 B2"}));
  EXPECT_EQ(
      printed(ScheduleKind::OneForwardOneBackward, problem),
      (std::vector<std::string>{"F0 F1 B0 F2 B1 B2", "F0 B0 F1 B1 F2 B2"}));
  EXPECT_EQ(
      printed(ScheduleKind::BackwardOptimizer, problem),
      (std::vector<std::string>{"F0 F1 F2 B0 B1 B2", "F0 B0 F1 B1 F2 B2"}));
}

TEST(Schedule, InterleavedOrder) {
  ScheduleProblem problem = equalStages(2, 4, {1, 2}, 2);
  EXPECT_EQ(printed(ScheduleKind::Interleaved, problem),
            (std::vector<std::string>{
                "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 "
                "B1.2 B1.3 B0.2 B0.3",
                "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 "
                "F1.3 B1.3 B0.2 B0.3"}));
}

TEST(Schedule, ZeroBubbleOrder) {
  EXPECT_EQ(printed(ScheduleKind::ZeroBubble, equalStages(2, 3, {1, 1, 1})),
            (std::vector<std::string>{"F0 F1 B0 W0 F2 B1 W1 B2 W2",
                                      "F0 B0 F1 B1 W0 F2 B2 W1 W2"}));
}

TEST(Schedule, TaskGraphsThatShareAllDevices) {
  ScheduleProblem problem = equalStages(1, 2, {1, 2, 0, 5}, 2);
  EXPECT_EQ(
      printed(ScheduleKind::OneForwardOneBackward, problem),
      (std::vector<std::string>{"F0.0 F1.0 B1.0 B0.0 F0.1 F1.1 B1.1 B0.1"}));
  // Nothing is sent.
  Timeline timeline = timelineOf(ScheduleKind::OneForwardOneBackward, problem);
  EXPECT_EQ(timeline.makespan, 12);
  EXPECT_EQ(timeline.peakMicroBatches, Peaks{2});
}

TEST(Schedule, AStageThatStandsTwiceInLine) {
  // To the second stage and back.
  ScheduleProblem problem = {
      2, 1, 3, std::vector<StageCost>(3, {1, 1}), {0, 1, 0}};
  auto printed = [&](ScheduleKind kind) {
    std::vector<std::string> lines;
    for (const auto &steps : llvm::cantFail(makeSchedule(kind, problem)))
      lines.push_back(print(steps, true));
    return lines;
  };
  EXPECT_EQ(printed(ScheduleKind::GPipe),
            (std::vector<std::string>{
                "F0.0 F0.1 F0.2 F1.0 F1.1 F1.2 B1.0 B1.1 B1.2 B0.0 B0.1 B0.2",
                "F0.0 F0.1 F0.2 B0.0 B0.1 B0.2"}));
  EXPECT_EQ(printed(ScheduleKind::OneForwardOneBackward),
            (std::vector<std::string>{
                "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 B0.0 B0.1 F0.2 F1.2 B1.2 B0.2",
                "F0.0 F0.1 B0.0 B0.1 F0.2 B0.2"}));
  EXPECT_EQ(timelineOf(ScheduleKind::GPipe, problem).peakMicroBatches,
            (Peaks{6, 3}));
}

TEST(Schedule, PeaksOfFourStages) {
  ScheduleProblem problem = equalStages(4, 8, {1, 2});
  auto peaks = [&](ScheduleKind kind) {
    return timelineOf(kind, problem).peakMicroBatches;
  };
  EXPECT_EQ(peaks(ScheduleKind::GPipe), (Peaks{8, 8, 8, 8}));
  EXPECT_EQ(peaks(ScheduleKind::OneForwardOneBackward), (Peaks{4, 3, 2, 1}));
  EXPECT_EQ(peaks(ScheduleKind::BackwardOptimizer), (Peaks{5, 4, 3, 1}));
}

TEST(Schedule, SendsDelay) {
  // The published figures for sends of 0.3 of a forward.
  ScheduleProblem problem = equalStages(8, 16, {1, 2, 0, 0.3});
  EXPECT_NEAR(timelineOf(ScheduleKind::GPipe, problem).makespan, 73.2, 1e-9);
  EXPECT_NEAR(timelineOf(ScheduleKind::OneForwardOneBackward, problem).makespan,
              81.0, 1e-9);
  EXPECT_NEAR(timelineOf(ScheduleKind::BackwardOptimizer, problem).makespan,
              77.8, 1e-9);
}

TEST(Schedule, TimelineOfUnequalStages) {
  ScheduleProblem problem = {2, 1, 2, {{1, 2, 0, 0.5, 10, 100}, {3, 4}}};
  Timeline timeline = timelineOf(ScheduleKind::OneForwardOneBackward, problem);
  // The second stage computes from 1.5 on, two times 3 + 4 without a pause.
  EXPECT_EQ(timeline.steps[1].front().start, 1.5);
  EXPECT_EQ(timeline.steps[1].back().end, 15.5);
  EXPECT_EQ(timeline.makespan, 18);
  EXPECT_EQ(timeline.idle, (std::vector<double>{12, 4}));
  EXPECT_EQ(timeline.peakBytes, (Peaks{120, 0}));
}

TEST(Schedule, GradientsOfWeightsThatWaitTakeMemory) {
  ScheduleProblem problem = equalStages(2, 3, {1, 1, 1, 0, 10});
  for (StageCost &cost : problem.costs)
    cost.weightBytes = 15;
  // F0 and F1, and W0 is right behind B0; what B0 and B1 have left.
  EXPECT_EQ(timelineOf(ScheduleKind::ZeroBubble, problem).peakBytes,
            (Peaks{20, 30}));
  EXPECT_EQ(timelineOf(ScheduleKind::OneForwardOneBackward, problem).peakBytes,
            (Peaks{20, 10}));
  // No room for two.
  problem.costs[1].memoryBytes = 25;
  EXPECT_EQ(printed(ScheduleKind::ZeroBubble, problem)[1],
            "F0 B0 W0 F1 B1 W1 F2 B2 W2");
}

TEST(Schedule, GradientsOfWeightsBehindAnExchangeTakeMemory) {
  ScheduleProblem problem = equalStages(2, 3, {1, 1, 1, 0, 10});
  for (StageCost &cost : problem.costs) {
    cost.weightBytes = 15;
    cost.joinsWeight = false;
  }
  // F0, and what B1 has left: the second stage has never two of both.
  EXPECT_EQ(timelineOf(ScheduleKind::ZeroBubble, problem).peakBytes,
            (Peaks{25, 30}));
}

TEST(Schedule, BackwardsFreeWhatGradientsOfWeightsDoNotRead) {
  ScheduleProblem problem = equalStages(2, 3, {1, 1, 1, 0, 10});
  for (StageCost &cost : problem.costs)
    cost.weightBytes = 2;
  // F0 and F1; what B0 has left, and F1.
  EXPECT_EQ(timelineOf(ScheduleKind::ZeroBubble, problem).peakBytes,
            (Peaks{20, 12}));
}

TEST(Schedule, SumsOfGradientsBeginWithTheFirst) {
  ScheduleProblem problem = equalStages(2, 3, {1, 1, 1, 0, 10});
  for (StageCost &cost : problem.costs) {
    cost.fixedBytes = 1;
    cost.sumBytes = 7;
    cost.weightBytes = 10;
  }
  // Of all three forwards, or of two.
  EXPECT_EQ(timelineOf(ScheduleKind::GPipe, problem).peakBytes,
            (Peaks{38, 38}));
  EXPECT_EQ(timelineOf(ScheduleKind::OneForwardOneBackward, problem).peakBytes,
            (Peaks{28, 18}));
  // The last part has what is kept of two and a seventh of the third.
  for (StageCost &cost : problem.costs)
    cost.sumParts = 7;
  EXPECT_EQ(timelineOf(ScheduleKind::GPipe, problem).peakBytes,
            (Peaks{32, 32}));
  problem.costs[0].sumBytes = -1;
  EXPECT_EQ(errorOf(ScheduleKind::GPipe, problem),
            "task graph 0: an amount of memory is negative");
  problem.costs[0].sumBytes = 1;
  problem.costs[0].sumParts = 0;
  EXPECT_EQ(errorOf(ScheduleKind::GPipe, problem),
            "task graph 0: its sums have less than one part");
}

TEST(Schedule, PeaksCountTheSamplesOfEachMicroBatch) {
  using Step = ScheduleStep;
  std::vector<Step> steps = {{Step::Forward, 0, 0},  {Step::Forward, 0, 1},
                             {Step::Backward, 0, 0}, {Step::Forward, 0, 2},
                             {Step::Backward, 0, 1}, {Step::Backward, 0, 2}};
  StageCost cost;
  cost.activationBytes = 10;
  EXPECT_EQ(findPeakBytes(steps, cost), 20);
  auto partOf = [](int64_t, int64_t microBatch) {
    return microBatch == 1 ? 1 : 0.5;
  };
  EXPECT_EQ(findPeakBytes(steps, cost, partOf), 15);
}

TEST(Schedule, MisfitsAreErrors) {
  EXPECT_EQ(errorOf(ScheduleKind::Interleaved, equalStages(2, 4, {1, 2})),
            "schedule 'interleaved' needs at least 2 task graphs on each "
            "stage's devices; raise num_task_graph, let more scopes share the "
            "devices, or take another schedule");
  EXPECT_EQ(errorOf(ScheduleKind::Interleaved, equalStages(2, 3, {1, 2}, 2)),
            "schedule 'interleaved' needs a number of micro-batches that its 2 "
            "stages divide, not 3; change num_micro_batch, or take another "
            "schedule");
  ScheduleProblem irregular = {2, 1, 4, {{}, {}, {}}, {0, 1, 0}};
  EXPECT_EQ(errorOf(ScheduleKind::Interleaved, irregular),
            "schedule 'interleaved' needs the same number of task graphs "
            "on each stage, in the same order; take another schedule");
  irregular.stageSequence = {0, 2, 1};
  EXPECT_EQ(errorOf(ScheduleKind::GPipe, irregular),
            "a task graph is on stage 2, of 2 stages");
  EXPECT_EQ(errorOf(ScheduleKind::GPipe, equalStages(2, 0, {1, 2})),
            "a pipeline has at least 1 stage, 1 task graph a stage and 1 "
            "micro-batch, not 2, 1 and 0");
  ScheduleProblem problem = equalStages(2, 1, {1, 2});
  problem.costs[1].send = std::nan("");
  EXPECT_EQ(errorOf(ScheduleKind::GPipe, problem),
            "task graph 1: a time is negative or not finite");
  problem.costs.pop_back();
  EXPECT_EQ(errorOf(ScheduleKind::GPipe, problem),
            "2 task graphs have 1 costs");
}

TEST(Schedule, WrongSchedulesAreErrors) {
  ScheduleProblem problem = equalStages(2, 1, {1, 2});
  Schedule good = llvm::cantFail(makeSchedule(ScheduleKind::GPipe, problem));
  EXPECT_EQ(errorOf(problem, good), "");

  Schedule bad = good;
  std::swap(bad[1][0], bad[1][1]);
  EXPECT_EQ(errorOf(problem, bad), "stage 0 waits for ever before the backward "
                                   "of micro-batch 0, chunk 0");
  bad = good;
  bad[1].pop_back();
  EXPECT_EQ(errorOf(problem, bad),
            "stage 1: backward of micro-batch 0, chunk 0 is missing");
  bad = good;
  bad[0].push_back(bad[0].front());
  EXPECT_EQ(errorOf(problem, bad),
            "stage 0: forward of micro-batch 0, chunk 0 is scheduled twice");
  bad = good;
  bad[0].push_back({ScheduleStep::Forward, 0, 1});
  EXPECT_EQ(errorOf(problem, bad), "stage 0: forward of micro-batch 1, chunk 0 "
                                   "is no step of the problem");
  bad = good;
  bad.pop_back();
  EXPECT_EQ(errorOf(problem, bad),
            "a schedule for 1 stages doesn't fit a pipeline of 2");
  // A stage that computes one gradient of its weights apart does so with all.
  problem.microBatches = 2;
  bad = llvm::cantFail(makeSchedule(ScheduleKind::GPipe, problem));
  bad[0].push_back({ScheduleStep::WeightGradient, 0, 1});
  EXPECT_EQ(errorOf(problem, bad),
            "stage 0: weight gradient of micro-batch 0, chunk 0 is missing");
}

TEST(Schedule, ChoiceOfEqualsKeepsLess) {
  // All but zero-bubble take as long; 1f1b keeps the least.
  ScheduleProblem problem = equalStages(4, 8, {1, 2, 0, 0, 10});
  ScheduleChoice choice = llvm::cantFail(chooseSchedule(problem));
  EXPECT_EQ(choice.kind, ScheduleKind::OneForwardOneBackward);
  EXPECT_FALSE(choice.isReplaceable);
  EXPECT_EQ(choice.reason,
            "1f1b has the least makespan within memory (of equal ones the "
            "least memory): gpipe 33 s, 1f1b 33 s, backward-optimizer 33 s, "
            "zero-bubble 33 s");
  // Where nothing is known of bytes, by the micro-batches that are kept.
  problem = equalStages(4, 8, {1, 2});
  EXPECT_EQ(llvm::cantFail(chooseSchedule(problem)).kind,
            ScheduleKind::OneForwardOneBackward);
}

TEST(Schedule, ChoiceUnderMemory) {
  ScheduleProblem problem = equalStages(8, 16, {1, 2, 0, 0.3, 10, 5});
  EXPECT_EQ(llvm::cantFail(chooseSchedule(problem)).kind, ScheduleKind::GPipe);
  EXPECT_TRUE(llvm::cantFail(chooseSchedule(problem)).isReplaceable);
  for (StageCost &cost : problem.costs)
    cost.memoryBytes = 95;
  ScheduleChoice choice = llvm::cantFail(chooseSchedule(problem));
  EXPECT_EQ(choice.kind, ScheduleKind::BackwardOptimizer);
  EXPECT_NE(choice.reason.find("gpipe 73.2 s (doesn't fit)"),
            std::string::npos);
  for (StageCost &cost : problem.costs)
    cost.memoryBytes = 85;
  EXPECT_EQ(llvm::cantFail(chooseSchedule(problem)).kind,
            ScheduleKind::OneForwardOneBackward);
  problem.costs[0].memoryBytes = 60;
  // None fits: the one that needs the least.
  choice = llvm::cantFail(chooseSchedule(problem));
  EXPECT_EQ(choice.kind, ScheduleKind::OneForwardOneBackward);
  llvm::StringRef reason = choice.reason;
  EXPECT_TRUE(reason.starts_with("1f1b comes closest to fitting: gpipe 73.2 s "
                                 "(doesn't fit), 1f1b "));
  EXPECT_TRUE(reason.ends_with(
      "; as far as is known, stage 0 lacks 25 bytes of memory with 8 "
      "micro-batches in flight"));
}

TEST(Schedule, ChoiceAmongSome) {
  ScheduleProblem problem = equalStages(4, 8, {1, 1, 1, 0, 10});
  EXPECT_EQ(llvm::cantFail(chooseSchedule(problem)).kind,
            ScheduleKind::ZeroBubble);
  EXPECT_EQ(
      llvm::cantFail(chooseSchedule(problem, {ScheduleKind::GPipe,
                                              ScheduleKind::BackwardOptimizer}))
          .kind,
      ScheduleKind::BackwardOptimizer);
  EXPECT_EQ(
      llvm::toString(
          chooseSchedule(problem, {ScheduleKind::Interleaved}).takeError()),
      "schedule 'interleaved' needs at least 2 task graphs on each stage's "
      "devices; raise num_task_graph, let more scopes share the devices, or "
      "take another schedule");
}
