//===- StageCutTest.cpp - Cuts against brute force ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a chain of operations is cut into the stages of a pipeline, by the time
// of the slowest stage and within the memory of devices. Small cases are worked
// out by hand.
//
// Where each device has one stage and memory does not matter, 400 random
// problems of up to 10 units must have the best of all cuts. With memory and
// several stages on a device the search is not exact: in 400 problems, no
// boundary may be better one unit further, and at least 80% must be the best of
// all. The worth of a cut is computed here again, from the problem alone. The
// largest cases have 4,000 units, and 200 stages.
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/StageCut.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <functional>
#include <map>
#include <optional>
#include <random>

using namespace whale;

/// Units of one second each for so many FLOPs, on stages of one device each.
static CutProblem chain(llvm::ArrayRef<double> flops,
                        llvm::ArrayRef<double> speeds) {
  CutProblem problem;
  for (double f : flops) {
    CutUnit &unit = problem.units.emplace_back();
    unit.flops = f;
    unit.counts = f > 0;
    unit.fusedSeconds = f / speeds.front();
    for (double speed : speeds)
      unit.seconds.push_back(f / speed);
  }
  for (size_t i = 0; i < speeds.size(); ++i)
    problem.stages.emplace_back().devices.push_back({int64_t(i), unsigned(i)});
  return problem;
}

static std::vector<int64_t> begins(const CutProblem &problem) {
  std::vector<int64_t> result;
  for (const StageLoad &load : llvm::cantFail(cutStages(problem)))
    result.push_back(load.begin);
  return result;
}

static std::string errorOf(const CutProblem &problem) {
  auto result = cutStages(problem);
  return result ? "" : llvm::toString(result.takeError());
}

using Cuts = std::vector<int64_t>;

TEST(StageCut, FollowsCapacity) {
  EXPECT_EQ(begins(chain({1, 1, 1, 1}, {1, 1})), (Cuts{0, 2}));
  EXPECT_EQ(begins(chain({1, 1, 1, 1}, {3, 1})), (Cuts{0, 3}));
  EXPECT_EQ(begins(chain({4, 1, 1, 1, 1}, {1, 1})), (Cuts{0, 1}));
  EXPECT_EQ(begins(chain({1, 1, 1, 1, 1, 1}, {1, 1, 1})), (Cuts{0, 2, 4}));
  EXPECT_EQ(proportionalCut(chain({1, 1, 1, 1}, {3, 1})), (Cuts{0, 3, 4}));
  // Two slow devices are as good as a fast one.
  CutProblem problem = chain({1, 1, 1, 1}, {2, 1});
  problem.stages[1].devices.push_back({2, 1});
  EXPECT_EQ(begins(problem), (Cuts{0, 2}));
}

TEST(StageCut, EveryStageHasEnoughToDo) {
  // The fastest cut leaves a scalar to the last stage.
  CutProblem problem = chain({8, 8, 1e-6}, {1, 1, 1});
  EXPECT_EQ(begins(problem), (Cuts{0, 1, 2}));
  EXPECT_EQ(mostStagesOf(problem, 0.1), 2);
  EXPECT_EQ(mostStagesOf(problem, 0), 3);
  problem.leastShare = 0.1;
  EXPECT_EQ(errorOf(problem), "no cut into 3 task graphs gives each of them "
                              "enough to do");
  problem.stages.pop_back();
  EXPECT_EQ(begins(problem), (Cuts{0, 1}));
  // What crosses a slow link is not worth a stage of nearly nothing.
  problem = chain({1e-3, 4, 4}, {1, 1});
  problem.values.push_back({1, {2}, 100});
  problem.stages[1].secondsPerByte = 1;
  EXPECT_EQ(begins(problem), (Cuts{0, 1}));
  problem.leastShare = 0.1;
  EXPECT_EQ(begins(problem), (Cuts{0, 2}));
  // Nothing is left of the last one as it is fused with the one before.
  problem = chain({8, 8, 8}, {1, 1, 1});
  problem.units.back().fusedSeconds = 0.01;
  EXPECT_EQ(begins(problem), (Cuts{0, 1, 2}));
  EXPECT_EQ(mostStagesOf(problem, 0.1), 2);
  problem.leastShare = 0.1;
  problem.stages.pop_back();
  EXPECT_EQ(begins(problem), (Cuts{0, 1}));
  // The last one moves much, but computes nearly nothing.
  problem = chain({8, 8, 8}, {1, 1, 1});
  problem.units.back().flops = 0.01;
  EXPECT_EQ(begins(problem), (Cuts{0, 1, 2}));
  EXPECT_EQ(mostStagesOf(problem, 0.1), 2);
  problem.leastShare = 0.1;
  problem.stages.pop_back();
  EXPECT_EQ(begins(problem), (Cuts{0, 1}));
}

TEST(StageCut, EveryStageHasAnOperationThatCounts) {
  EXPECT_EQ(begins(chain({0, 9, 0, 1, 0}, {1, 1})), (Cuts{0, 2}));
  EXPECT_EQ(begins(chain({0, 9, 0, 1, 0}, {1, 9})), (Cuts{0, 2}));
  EXPECT_EQ(errorOf(chain({0, 9, 0, 1, 0}, {1, 1, 1})),
            "can't cut 2 forward operations with FLOPs into 3 task graphs");
}

TEST(StageCut, AvoidsCommunication) {
  CutProblem problem = chain({1, 1, 1, 1, 1, 1}, {1, 1});
  problem.stages[1].secondsPerByte = 1;
  for (int64_t i = 0; i < 5; ++i)
    problem.values.push_back({i, {i + 1}, i == 2 ? 3.0 : 0.5});
  EXPECT_EQ(begins(problem), (Cuts{0, 2}));
  // A value that skips the wide place makes that cut no better than others.
  problem.values.push_back({0, {5}, 2});
  problem.values[2].bytes = 0.5;
  std::vector<StageLoad> loads = llvm::cantFail(cutStages(problem));
  EXPECT_EQ(loads[1].begin, 3);
  EXPECT_EQ(loads[1].bytesIn, 2.5);
  EXPECT_EQ(loads[1].seconds, 5.5);
}

TEST(StageCut, LatencyCountsForEachMicroBatch) {
  CutProblem problem = chain({1, 1}, {1, 1});
  problem.values.push_back({0, {1}, 1});
  problem.stages[1].latency = 0.25;
  problem.microBatches = 4;
  EXPECT_EQ(llvm::cantFail(cutStages(problem))[0].seconds, 3);
}

TEST(StageCut, MemoryBeforeTime) {
  CutProblem problem = chain({1, 1, 1, 1}, {1, 1});
  for (CutUnit &unit : problem.units)
    unit.activationBytes = 8;
  problem.stages[0].devices[0].memoryBytes = 8;
  EXPECT_EQ(begins(problem), (Cuts{0, 1}));
  // Only two of eight micro-batches are kept in the first stage, one after.
  problem.microBatches = 8;
  std::vector<StageLoad> loads = llvm::cantFail(cutStages(problem));
  EXPECT_EQ(loads[1].begin, 2);
  EXPECT_EQ(loads[0].lacksBytes, 0);
  problem.stages[0].devices[0].memoryBytes = 1;
  loads = llvm::cantFail(cutStages(problem));
  EXPECT_EQ(loads[0].end, 1);
  EXPECT_EQ(loads[0].lacksBytes, 1);
}

TEST(StageCut, StateMustFit) {
  CutProblem problem = chain({1, 1, 1, 1}, {1, 1});
  for (CutUnit &unit : problem.units)
    unit.stateBytes = 10;
  for (CutStage &stage : problem.stages)
    stage.devices[0].memoryBytes = 30;
  problem.stages[0].devices[0].memoryBytes = 10;
  EXPECT_EQ(begins(problem), (Cuts{0, 1}));
  problem.stages[1].devices[0].memoryBytes = 25;
  EXPECT_EQ(errorOf(problem),
            "parameters and optimizer state of 40 bytes don't fit 2 task "
            "graphs, however they are cut: no device has more than 25 bytes; "
            "more task graphs, or a default strategy 'split', need less on "
            "each device");
  // Two devices that share the state out have room.
  problem.stages[1].sharesState = true;
  problem.stages[1].devices.push_back(problem.stages[1].devices[0]);
  problem.stages[1].devices[1].id = 2;
  EXPECT_EQ(begins(problem), (Cuts{0, 1}));
}

/// Bytes that the fullest device lacks, and seconds of the slowest, summed up
/// over the stages that each is in.
static std::pair<double, double> worthOf(const CutProblem &problem,
                                         const Cuts &cuts) {
  int64_t count = problem.stages.size();
  std::map<int64_t, double> seconds, bytes, memory;
  for (int64_t stage = 0; stage < count; ++stage) {
    int64_t begin = cuts[stage], end = cuts[stage + 1];
    auto all = [&](const CutDevice &device) {
      double sum = 0;
      for (int64_t i = begin; i < end; ++i)
        sum += problem.units[i].seconds[device.speedClass];
      return sum;
    };
    double rate = 0, in = 0, out = 0, fixed = 0, kept = 0;
    for (const CutDevice &device : problem.stages[stage].devices)
      rate += 1 / all(device);
    for (const CutValue &value : problem.values) {
      auto within = [&](int64_t user) { return user >= begin && user < end; };
      if (value.producer < begin && llvm::any_of(value.users, within))
        in += value.bytes;
      if (within(value.producer) && value.users.back() >= end)
        out += value.bytes;
    }
    for (int64_t i = begin; i < end; ++i) {
      fixed += problem.units[i].stateBytes + problem.units[i].gradientBytes;
      kept += double(problem.units[i].activationBytes) *
              double(std::min(count - stage, problem.microBatches)) /
              double(problem.microBatches);
    }
    for (const CutDevice &device : problem.stages[stage].devices) {
      seconds[device.id] +=
          1 / rate + in * problem.stages[stage].secondsPerByte +
          (stage + 1 < count ? out * problem.stages[stage + 1].secondsPerByte
                             : 0);
      bytes[device.id] += fixed + kept / all(device) / rate;
      memory[device.id] = double(device.memoryBytes);
    }
  }
  std::pair<double, double> worth;
  for (auto [id, sum] : seconds)
    worth.second = std::max(worth.second, sum);
  for (auto [id, sum] : bytes)
    worth.first = std::max(worth.first, sum - memory[id]);
  return worth;
}

/// The worth of the best of all cuts.
static std::pair<double, double> bruteForce(const CutProblem &problem) {
  int64_t units = problem.units.size(), count = problem.stages.size();
  std::optional<std::pair<double, double>> best;
  Cuts cuts = {0};
  std::function<void()> walk = [&] {
    if (int64_t(cuts.size()) == count) {
      cuts.push_back(units);
      auto worth = worthOf(problem, cuts);
      if (!best || worth < *best)
        best = worth;
      cuts.pop_back();
      return;
    }
    for (int64_t cut = cuts.back() + 1; cut < units; ++cut) {
      cuts.push_back(cut);
      walk();
      cuts.pop_back();
    }
  };
  walk();
  return *best;
}

/// The boundaries of the cut that is found.
static Cuts boundaries(const CutProblem &problem) {
  Cuts cuts = begins(problem);
  cuts.push_back(problem.units.size());
  return cuts;
}

TEST(StageCut, MatchesBruteForce) {
  std::mt19937 random(5);
  auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 400; ++round) {
    std::vector<double> flops, speeds;
    for (int i = pick(4, 10); i > 0; --i)
      flops.push_back(pick(1, 8));
    for (int i = pick(1, 4); i > 0; --i)
      speeds.push_back(pick(1, 3));
    CutProblem problem = chain(flops, speeds);
    for (CutStage &stage : problem.stages) {
      if (pick(0, 1)) {
        stage.devices.push_back(problem.stages[0].devices[0]);
        stage.devices.back().id = 4 + stage.devices.front().id;
      }
      stage.secondsPerByte = pick(0, 2) / 2.0;
    }
    for (int i = pick(0, 12); i > 0; --i) {
      CutValue value;
      value.producer = pick(0, int(flops.size()) - 2);
      for (int64_t u = value.producer + 1; u < int64_t(flops.size()); ++u)
        if (pick(0, 2) == 0 || u + 1 == int64_t(flops.size()))
          value.users.push_back(u);
      value.bytes = pick(0, 6);
      problem.values.push_back(value);
    }
    double slowest = 0;
    int64_t next = 0;
    for (const StageLoad &load : llvm::cantFail(cutStages(problem))) {
      ASSERT_EQ(load.begin, next);
      next = load.end;
      slowest = std::max(slowest, load.seconds);
    }
    ASSERT_EQ(next, int64_t(flops.size()));
    ASSERT_NEAR(slowest, bruteForce(problem).second, 1e-9);
  }
}

TEST(StageCut, SumsUpStagesOnADevice) {
  // The first and the last of three stages share a device.
  CutProblem problem = chain(std::vector<double>(8, 1), {1, 1, 1});
  problem.stages[2].devices = problem.stages[0].devices;
  EXPECT_EQ(begins(problem), (Cuts{0, 2, 6}));
  for (CutUnit &unit : problem.units)
    unit.stateBytes = 1;
  for (CutStage &stage : problem.stages)
    stage.devices[0].memoryBytes = 8;
  EXPECT_EQ(begins(problem), (Cuts{0, 2, 6}));
  problem.stages[0].devices[0].memoryBytes = 3;
  problem.stages[2].devices[0].memoryBytes = 3;
  Cuts cuts = boundaries(problem);
  EXPECT_EQ(cuts[2] - cuts[1], 5);
  std::vector<CutNeed> needs =
      needsOf(problem, llvm::cantFail(cutStages(problem)));
  ASSERT_EQ(needs.size(), 2u);
  EXPECT_EQ(needs[0].stateBytes, 3);
  EXPECT_EQ(needs[1].stateBytes, 5);
}

TEST(StageCut, CorrectsMemory) {
  CutProblem problem = chain({1, 1, 1, 1}, {1, 1});
  for (CutUnit &unit : problem.units)
    unit.activationBytes = 8;
  problem.stages[0].devices[0].memoryBytes = 16;
  EXPECT_EQ(begins(problem), (Cuts{0, 2}));
  problem.stages[0].devices[0].memoryScale = 2;
  std::vector<StageLoad> loads = llvm::cantFail(cutStages(problem));
  EXPECT_EQ(loads[0].end, 1);
  EXPECT_EQ(loads[0].lacksBytes, 0);
  EXPECT_EQ(needsOf(problem, loads)[0].workingBytes, 16);
  // What is there whatever is cut off moves the cut, but refuses none.
  problem.stages[0].devices[0].memoryScale = 1;
  problem.stages[0].devices[0].scratchBytes = 8;
  loads = llvm::cantFail(cutStages(problem));
  EXPECT_EQ(loads[0].end, 1);
  EXPECT_EQ(loads[0].lacksBytes, 0);
  problem.stages[0].devices[0].scratchBytes = 20;
  EXPECT_EQ(llvm::cantFail(cutStages(problem))[0].lacksBytes, 12);
}

TEST(StageCut, NoBoundaryIsBetterElsewhere) {
  std::mt19937 random(7);
  auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int solved = 0, best = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<double> flops, speeds;
    for (int i = pick(6, 12); i > 0; --i)
      flops.push_back(pick(1, 8));
    int devices = pick(1, 4);
    for (int i = 0; i < devices; ++i)
      speeds.push_back(pick(1, 3));
    CutProblem problem = chain(flops, speeds);
    problem.microBatches = pick(1, 4);
    for (CutUnit &unit : problem.units) {
      unit.stateBytes = pick(0, 4);
      unit.gradientBytes = pick(0, 2);
      unit.activationBytes = pick(0, 4);
    }
    std::vector<CutStage> ofDevice = problem.stages;
    for (CutStage &stage : ofDevice)
      stage.devices[0].memoryBytes = pick(20, 80);
    problem.stages.clear();
    for (int i = 0, stages = pick(devices, 6); i < stages; ++i) {
      problem.stages.push_back(ofDevice[i % devices]);
      if (i > 0 && devices > 1)
        problem.stages.back().secondsPerByte = pick(0, 2) / 4.0;
    }
    for (int64_t i = 0; i + 1 < int64_t(flops.size()); ++i)
      problem.values.push_back({i, {i + 1}, double(pick(0, 6))});
    auto loads = cutStages(problem);
    if (!loads) {
      llvm::consumeError(loads.takeError());
      continue;
    }
    Cuts cuts = boundaries(problem);
    auto worth = worthOf(problem, cuts);
    for (size_t boundary = 1; boundary + 1 < cuts.size(); ++boundary)
      for (int64_t by : {-1, 1}) {
        Cuts moved = cuts;
        moved[boundary] += by;
        if (moved[boundary] == moved[boundary - 1] ||
            moved[boundary] == moved[boundary + 1])
          continue;
        auto [lacks, seconds] = worthOf(problem, moved);
        ASSERT_GE(lacks, worth.first - 1e-6);
        if (lacks < worth.first + 1e-6)
          ASSERT_GE(seconds, worth.second - 1e-6);
      }
    auto [lacks, seconds] = bruteForce(problem);
    ++solved;
    best += worth.first < lacks + 1e-6 && worth.second < seconds + 1e-6;
  }
  EXPECT_GE(solved, 300);
  EXPECT_GE(best, solved * 8 / 10) << "of " << solved;
}

TEST(StageCut, ManyUnits) {
  // Layers of 40 units; only between layers little is sent.
  std::vector<double> flops(4000, 1);
  CutProblem problem = chain(flops, {1, 1, 2, 1});
  for (CutStage &stage : problem.stages)
    stage.secondsPerByte = 1;
  for (int64_t i = 0; i + 1 < 4000; ++i)
    problem.values.push_back({i, {i + 1}, i % 40 == 39 ? 1.0 : 50.0});
  EXPECT_EQ(begins(problem), (Cuts{0, 800, 1600, 3200}));
  // Units without any time or FLOPs are nothing to cut at.
  for (size_t i = 0; i < problem.units.size(); ++i)
    if (i % 2)
      problem.units[i] = {{0, 0, 0, 0}};
  EXPECT_EQ(begins(problem), (Cuts{0, 800, 1600, 3200}));
}

TEST(StageCut, ManyStages) {
  std::vector<double> flops(1000, 1), speeds(1, 1);
  CutProblem problem = chain(flops, speeds);
  problem.stages.resize(200, problem.stages.front());
  std::vector<StageLoad> loads = llvm::cantFail(cutStages(problem));
  ASSERT_EQ(loads.size(), 200u);
  for (const StageLoad &load : loads)
    ASSERT_LE(load.end - load.begin, 6);
}
