//===- SchedulePropertyTest.cpp - What holds for every schedule -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What must hold for every schedule of a pipeline: each step once and after
// what it needs, values sent and received in one order, and no more
// micro-batches kept than the kind's definition allows. Dependencies and bounds
// are written here again, so that the simulation does not judge itself.
//
// Equal stages, up to 7 stages, 14 micro-batches and 3 task graphs for each
// stage, must take the textbook's time or stay within its bounds. 1,500 random
// problems must keep the rules, zero-bubble must never be slower than 1F1B, and
// the choice among the schedules must be the best of those that lack the least
// memory.
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/Schedule.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <map>
#include <random>

using namespace whale;

static constexpr ScheduleKind kKinds[] = {
    ScheduleKind::GPipe, ScheduleKind::OneForwardOneBackward,
    ScheduleKind::BackwardOptimizer, ScheduleKind::Interleaved,
    ScheduleKind::ZeroBubble};

/// The most micro-batches that a stage may keep, by the definition of the kind:
/// each of its TaskGraphs as many as there are from it to the last.
static int64_t boundOf(ScheduleKind kind, const ScheduleProblem &problem,
                       int64_t stage) {
  int64_t stages = problem.stages, chunks = problem.chunks;
  int64_t later = stages - 1 - stage, inTurn = 0, oneMore = 0;
  std::vector<int64_t> taskGraphs = problem.taskGraphsOf(stage);
  int64_t all = problem.microBatches * int64_t(taskGraphs.size());
  for (int64_t taskGraph : taskGraphs) {
    int64_t here = problem.getNumTaskGraphs() - taskGraph;
    inTurn += std::min(here, problem.microBatches);
    oneMore += std::min(here + (here > 1), problem.microBatches);
  }
  switch (kind) {
  case ScheduleKind::GPipe:
    return all;
  case ScheduleKind::OneForwardOneBackward:
    return inTurn;
  case ScheduleKind::BackwardOptimizer:
    return oneMore;
  case ScheduleKind::Interleaved:
    return std::min(all, 2 * later + (chunks - 1) * stages + 1);
  case ScheduleKind::ZeroBubble:
    return std::min(all, std::max(inTurn, problem.getNumTaskGraphs()));
  }
  return 0;
}

/// What passes between two TaskGraphs must be received in the order in which it
/// is sent: one list for each TaskGraph and direction.
static void checkChannels(const ScheduleProblem &problem,
                          const Schedule &schedule) {
  std::map<std::pair<int64_t, ScheduleStep::Kind>, std::vector<int64_t>> orders;
  for (int64_t stage = 0; stage < problem.stages; ++stage)
    for (const ScheduleStep &step : schedule[stage])
      orders[{problem.taskGraphsOf(stage)[step.chunk], step.kind}].push_back(
          step.microBatch);
  for (int64_t v = 0; v + 1 < problem.getNumTaskGraphs(); ++v)
    for (auto kind : {ScheduleStep::Forward, ScheduleStep::Backward})
      ASSERT_EQ((orders[{v, kind}]), (orders[{v + 1, kind}]));
  // Sums of gradients are the same bits under every schedule.
  for (auto &[key, order] : orders)
    ASSERT_TRUE(llvm::is_sorted(order));
}

/// Each step is once, after what it needs; written again here so that the
/// simulation isn't its own judge.
static void checkTimeline(const ScheduleProblem &problem,
                          const Schedule &schedule, const Timeline &timeline) {
  using Key = std::tuple<ScheduleStep::Kind, int64_t, int64_t>;
  std::map<Key, Timeline::Interval> at;
  bool split = false;
  for (int64_t stage = 0; stage < problem.stages; ++stage) {
    double end = 0;
    for (auto [step, interval] :
         llvm::zip_equal(schedule[stage], timeline.steps[stage])) {
      ASSERT_GE(interval.start, end);
      end = interval.end;
      split |= step.kind == ScheduleStep::WeightGradient;
      Key key = {step.kind, problem.taskGraphsOf(stage)[step.chunk],
                 step.microBatch};
      ASSERT_TRUE(at.insert({key, interval}).second);
    }
    ASSERT_LE(end, timeline.makespan);
  }
  int64_t taskGraphs = problem.getNumTaskGraphs();
  ASSERT_EQ(int64_t(at.size()),
            taskGraphs * problem.microBatches * (split ? 3 : 2));
  auto sendOf = [&](int64_t from) {
    bool stays = problem.stageOf(from) == problem.stageOf(from + 1);
    return stays ? 0 : problem.costs[from].send;
  };
  for (auto &[key, interval] : at) {
    auto [kind, v, m] = key;
    auto after = [&](ScheduleStep::Kind from, int64_t w, double delay) {
      ASSERT_GE(interval.start, at.at({from, w, m}).end + delay);
    };
    if (kind == ScheduleStep::Forward && v > 0)
      after(kind, v - 1, sendOf(v - 1));
    if (kind == ScheduleStep::Backward)
      after(ScheduleStep::Forward, v, 0);
    if (kind == ScheduleStep::Backward && v + 1 < taskGraphs)
      after(kind, v + 1, sendOf(v));
    if (kind == ScheduleStep::WeightGradient)
      after(ScheduleStep::Backward, v, 0);
  }
}

static void check(ScheduleKind kind, const ScheduleProblem &problem,
                  Timeline &timeline) {
  llvm::Expected<Schedule> schedule = makeSchedule(kind, problem);
  ASSERT_TRUE(bool(schedule)) << llvm::toString(schedule.takeError());
  llvm::Expected<Timeline> result = simulate(problem, *schedule);
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  checkChannels(problem, *schedule);
  checkTimeline(problem, *schedule, *result);
  for (int64_t stage = 0; stage < problem.stages; ++stage)
    ASSERT_LE(result->peakMicroBatches[stage], boundOf(kind, problem, stage));
  timeline = std::move(*result);
}

static bool fits(ScheduleKind kind, const ScheduleProblem &problem) {
  return kind != ScheduleKind::Interleaved ||
         (problem.stageSequence.empty() && problem.chunks > 1 &&
          problem.microBatches % problem.stages == 0);
}

TEST(ScheduleProperties, EqualStagesTakeTheTextbooksTime) {
  // Quarters, so that sums are exact.
  const double forward = 1, backward = 1.25, weight = 0.75;
  for (int64_t stages = 1; stages <= 7; ++stages)
    for (int64_t microBatches = 1; microBatches <= 14; ++microBatches)
      for (int64_t chunks = 1; chunks <= 3; ++chunks)
        for (ScheduleKind kind : kKinds) {
          ScheduleProblem problem = {
              stages, chunks, microBatches,
              std::vector<StageCost>(stages * chunks,
                                     {forward, backward, weight})};
          if (!fits(kind, problem))
            continue;
          Timeline timeline;
          check(kind, problem, timeline);
          double work = forward + backward + weight;
          double bubble = double(stages - 1) * work;
          double textbook = double(microBatches * chunks) * work + bubble;
          SCOPED_TRACE(testing::Message()
                       << stringifyScheduleKind(kind).str() << ' ' << stages
                       << ' ' << chunks << ' ' << microBatches);
          if (kind != ScheduleKind::Interleaved && chunks > 1) {
            // Fewer micro-batches than stages leave the first stage waiting
            // for the last between its TaskGraphs; so do those that may not
            // start where few may be in flight.
            double wait = double((chunks - 1) *
                                 std::max<int64_t>(0, stages - microBatches));
            if (kind == ScheduleKind::GPipe) {
              ASSERT_LE(timeline.makespan, textbook + wait * work);
            } else {
              ASSERT_LE(timeline.makespan, double(chunks) * textbook);
            }
          } else if (kind == ScheduleKind::ZeroBubble && stages > 1) {
            ASSERT_LT(timeline.makespan, textbook);
            // Once the pipeline is full, a third of the bubble is left.
            if (microBatches >= 2 * stages) {
              ASSERT_LE(timeline.makespan,
                        textbook - double(stages - 1) * 2 * weight);
            }
          } else {
            ASSERT_EQ(timeline.makespan, textbook);
          }
          for (double idle : timeline.idle)
            ASSERT_EQ(idle,
                      timeline.makespan - double(microBatches * chunks) * work);
        }
}

TEST(ScheduleProperties, OneForwardOneBackwardKeepsItsBound) {
  for (int64_t stages = 1; stages <= 8; ++stages)
    for (int64_t microBatches = 1; microBatches <= 12; ++microBatches) {
      ScheduleProblem problem = {
          stages, 1, microBatches,
          std::vector<StageCost>(stages, {1, 2, 0, 0, 3, 7})};
      Timeline timeline;
      check(ScheduleKind::OneForwardOneBackward, problem, timeline);
      for (int64_t stage = 0; stage < stages; ++stage) {
        int64_t kept = std::min(stages - stage, microBatches);
        ASSERT_EQ(timeline.peakMicroBatches[stage], kept);
        ASSERT_EQ(timeline.peakBytes[stage], 7 + 3 * kept);
      }
    }
}

TEST(ScheduleProperties, AnyCosts) {
  std::mt19937 random(11);
  auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int faster = 0;
  for (int round = 0; round < 1500; ++round) {
    ScheduleProblem problem;
    problem.stages = pick(1, 6);
    problem.chunks = pick(0, 2) ? 1 : pick(2, 3);
    problem.microBatches = pick(1, 12);
    // Some in no regular order, but with every stage.
    if (pick(0, 2) == 0) {
      for (int64_t v = 0; v < problem.stages + pick(0, 4); ++v)
        problem.stageSequence.push_back(
            v < problem.stages ? v : pick(0, problem.stages - 1));
      std::shuffle(problem.stageSequence.begin(), problem.stageSequence.end(),
                   random);
    }
    for (int64_t v = 0; v < problem.getNumTaskGraphs(); ++v)
      problem.costs.push_back({pick(0, 8) / 4.0, pick(0, 8) / 4.0,
                               pick(0, 8) / 4.0, pick(0, 3) / 4.0, pick(0, 5),
                               pick(0, 5), pick(0, 40)});
    std::map<ScheduleKind, Timeline> timelines;
    for (ScheduleKind kind : kKinds)
      if (fits(kind, problem))
        check(kind, problem, timelines[kind]);

    if (timelines.count(ScheduleKind::ZeroBubble)) {
      double plain = timelines[ScheduleKind::OneForwardOneBackward].makespan;
      double filled = timelines[ScheduleKind::ZeroBubble].makespan;
      ASSERT_LE(filled, plain);
      faster += filled < plain;
    }

    // The choice is the best of those that lack the least.
    std::pair<int64_t, double> best = {std::numeric_limits<int64_t>::max(), 0};
    for (auto &[kind, timeline] : timelines) {
      int64_t lack = 0;
      for (int64_t v = 0; v < problem.getNumTaskGraphs(); ++v)
        lack = std::max(lack, timeline.peakBytes[problem.stageOf(v)] -
                                  problem.costs[v].memoryBytes);
      best = std::min(best, {lack, timeline.makespan});
    }
    ScheduleChoice choice = llvm::cantFail(chooseSchedule(problem));
    ASSERT_EQ(choice.timeline.makespan, best.second);
  }
  EXPECT_GT(faster, 500);
}
