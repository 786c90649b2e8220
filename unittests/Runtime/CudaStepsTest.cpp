//===- CudaStepsTest.cpp - Steps that overlap on a test machine -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps that are submitted while the ones before still run on a GPU: when their
// graphs are launched, which memory they use, and what becomes of them after a
// fault or an interruption. The test machine can be held, so that a step stays
// under way as long as a test wants.
//
// The program only copies: a step's small result is the state before it, so a
// step that used memory too early, or another step's, has a number too much or
// too little. Graphs are counted as the machine launches them. Most tests first
// run 60 steps, after which steps are graphs whatever addresses they have.
//
//===----------------------------------------------------------------------===//

#include "CudaScenario.h"
#include "ProgramFiles.h"
#include "Values.h"
#include "cuda/test/TestPrograms.h"
#include "whale/Runtime/Program.h"

#include <gtest/gtest.h>

#include <thread>

using namespace whale::runtime;
using namespace whale::runtime::test;
using cuda::test::Machine;
using nlohmann::json;

namespace {

/// Of a state, which lies where its array does, and of a small result, which
/// does not.
constexpr int64_t size = 32768, smallSize = 64;

Array floats(float value) { return uniform(size, value); }

class CudaSteps : public ::testing::Test {
protected:
  CudaSteps() { setenv("WHALE_TEST_CUDA", "3", 1); }
  ~CudaSteps() override {
    unsetenv("WHALE_TEST_CUDA");
    machine().hold(false);
    EXPECT_EQ(machine().takeFaults(), std::vector<std::string>());
  }

  /// (state, batch) -> (batch, part of the state), the first result in the
  /// state's place, which is donated, if `inPlace`. With `branches`, (state,
  /// batch, number) -> (batch or, if the number is 1, state, part of that).
  Program load(bool inPlace = true, bool branches = false) {
    json root = emptyManifest(1);
    root["target"] = "cuda";
    for (const char *name : {"arg0", "arg1"})
      root["arguments"].push_back(replicated(name, "f32", {size}, 1));
    root["results"] = {replicated("result0", "f32", {size}, 1),
                       replicated("result1", "f32", {smallSize}, 1)};
    if (inPlace) {
      root["arguments"][0]["donated"] = true;
      root["results"][0]["alias"] = 0;
    }
    json &rankClass = root["classes"][0];
    rankClass["arena_bytes"] = 4 * size;
    rankClass["buffers"] = {shardBuffer("argument", 0, "f32", {size}),
                            shardBuffer("argument", 1, "f32", {size}),
                            shardBuffer("result", 0, "f32", {size}),
                            shardBuffer("result", 1, "f32", {smallSize}),
                            arenaBuffer(0, "f32", {size}),
                            arenaBuffer(0, "f32", {smallSize})};
    rankClass["instructions"] = {
        {{"copy", {0, 4}}}, {{"copy", {1, 2}}}, {{"copy", {5, 3}}}};
    if (branches) {
      root["arguments"].push_back(replicated("arg2", "i32", json::array(), 1));
      rankClass["buffers"].push_back(
          shardBuffer("argument", 2, "i32", json::array()));
      json choice = {{"case", 6},
                     {"branches",
                      {json::array({{{"copy", {1, 2}}}}),
                       json::array({{{"copy", {0, 2}}}})}}};
      rankClass["instructions"] = {
          {{"copy", {0, 4}}}, {{"copy", {1, 2}}}, {{"copy", {5, 3}}}, choice,
          {{"copy", {2, 4}}}, {{"copy", {4, 2}}}, {{"copy", {5, 3}}}};
    }
    writeFile(directory.path() / "manifest.json", root.dump());
    Program program = Program::load(directory.path());
    EXPECT_EQ(&machine().libraries(), cuda::test::findTestLibraries());
    return program;
  }

  static Machine &machine() { return Machine::get(); }
  static int64_t graphLaunches() {
    std::lock_guard lock(machine().mutex);
    return machine().graphLaunches;
  }
  /// Whether so many graphs are launched in time.
  static bool waitForGraphs(int64_t count) {
    for (int round = 0; round < 2000 && graphLaunches() < count; ++round)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return graphLaunches() >= count;
  }

  /// Steps with batches 1, 2, ... from the state 0.
  struct Loop {
    Program program;
    Array state = floats(0);
    float batch = 0;

    Submission submit() {
      Submission step = program.submit(std::vector{state, floats(batch += 1)});
      state = step.results[0];
      return step;
    }
  };
  /// So many that the next ones are graphs.
  static constexpr int warmUp = 60;
  Loop warm(bool inPlace = true) {
    Loop loop{load(inPlace)};
    Submission last = loop.submit();
    for (int step = 1; step < warmUp; ++step) {
      Submission next = loop.submit();
      // As long as it can be under way.
      int64_t launched = graphLaunches();
      machine().hold(true);
      for (int round = 0; round < 10 && graphLaunches() == launched; ++round)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      machine().hold(false);
      last.step->wait();
      last = std::move(next);
    }
    last.step->wait();
    return loop;
  }

  TemporaryDirectory directory;
};

TEST_F(CudaSteps, TheNextOneIsLaunchedBeforeTheLastHasEnded) {
  for (bool inPlace : {true, false}) {
    Loop loop = warm(inPlace);
    int64_t before = graphLaunches();
    machine().hold(true);
    std::vector<Submission> steps;
    for (int step = 0; step < 3; ++step)
      steps.push_back(loop.submit());
    EXPECT_TRUE(waitForGraphs(before + 2));
    // The third one waits for the first one's memory.
    EXPECT_EQ(graphLaunches(), before + 2);
    for (const Submission &step : steps)
      EXPECT_FALSE(step.step->hasEnded() || step.results[1].isReady());
    machine().hold(false);
    for (size_t step = 0; step < steps.size(); ++step)
      EXPECT_EQ(valueOf(steps[step].results[1]), warmUp + step);
    EXPECT_EQ(valueOf(loop.state), warmUp + 3);
    EXPECT_EQ(graphLaunches(), before + 3);
    for (const Submission &step : steps) {
      const Stats &stats = step.costs->stats;
      EXPECT_GT(stats.stepSeconds, 0);
      EXPECT_EQ(stats.ranks[0].computeSeconds, stats.stepSeconds);
    }
  }
}

TEST_F(CudaSteps, ManyOverlapInAnyOrderOfStreams) {
  Loop loop = warm();
  std::vector<Submission> steps;
  for (int step = 0; step < 100; ++step)
    steps.push_back(loop.submit());
  for (size_t step = 0; step < steps.size(); ++step)
    EXPECT_EQ(valueOf(steps[step].results[1]), warmUp + step);
}

TEST_F(CudaSteps, WhateverTheCallerKeepsStepsAreGraphs) {
  for (bool inPlace : {true, false}) {
    Loop loop = warm(inPlace);
    std::vector<Array> kept;
    int64_t before = graphLaunches();
    for (int step = 0; step < 40; ++step) {
      // Some are over before the next one, some are not.
      if (step % 5 == 0)
        loop.state.wait();
      kept.push_back(loop.submit().results[1]);
    }
    for (size_t step = 0; step < kept.size(); ++step)
      EXPECT_EQ(valueOf(kept[step]), warmUp + step);
    EXPECT_GE(graphLaunches() - before, 30) << inPlace;
  }
}

TEST_F(CudaSteps, WhatLiesBetweenChoicesAreGraphs) {
  Program program = load(/*inPlace=*/false, /*branches=*/true);
  Array state = floats(-1), batch = floats(5);
  int64_t before = graphLaunches();
  for (int32_t step = 0; step < 8; ++step) {
    int32_t number = step % 3 == 1;
    Array choice = Array::fromHost(DType::I32, {}, &number);
    std::vector<Array> results =
        program.run(std::vector{state, batch, choice}, {});
    EXPECT_EQ(valueOf(results[0]), number ? -1 : 5);
    EXPECT_EQ(valueOf(results[1]), number ? -1 : 5);
  }
  // All but the first step, with each set of addresses.
  EXPECT_GE(graphLaunches() - before, 8);
}

TEST_F(CudaSteps, FaultsReachBothThatAreUnderWay) {
  {
    Loop loop = warm();
    int64_t before = graphLaunches();
    machine().hold(true);
    Submission first = loop.submit(), second = loop.submit();
    EXPECT_TRUE(waitForGraphs(before + 2));
    {
      std::lock_guard lock(machine().mutex);
      machine().fault(0, "an injected fault");
    }
    machine().hold(false);
    for (const Array &result :
         {first.results[1], second.results[0], second.results[1]}) {
      std::string text = errorOf([&] { valueOf(result); });
      EXPECT_TRUE(text.starts_with("rank 0: GPU 0 (Test GPU): ") &&
                  text.find("an injected fault") != std::string::npos)
          << text;
    }
    EXPECT_EQ(first.results[0].fate(), "donated to a program that failed");
    EXPECT_NE(errorOf([&] { loop.submit(); }), "");
  }
  // What has failed has left operations that are never done.
  EXPECT_EQ(machine().takeFaults().front(), "an injected fault");
}

TEST_F(CudaSteps, InterruptionsEndWhatWasLaunched) {
  Loop loop = warm();
  int64_t before = graphLaunches();
  machine().hold(true);
  Submission first = loop.submit(), second = loop.submit();
  EXPECT_TRUE(waitForGraphs(before + 2));
  EXPECT_THROW(second.step->wait([] { return true; }), Interrupted);
  for (const Submission &step : {first, second})
    EXPECT_EQ(errorOf([&] { valueOf(step.results[1]); }),
              "the run was interrupted");
  // What they use is not given to the next one, though nobody needs it.
  first.results.clear();
  second.results.clear();
  loop.state = floats(50);
  Submission next = loop.submit();
  // Long enough to see what it would be launched with.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(graphLaunches(), before + 2);
  machine().hold(false);
  EXPECT_EQ(valueOf(next.results[1]), 50);
  EXPECT_EQ(valueOf(loop.state), loop.batch);
}

TEST_F(CudaSteps, OthersKeepWhatAStepUses) {
  Loop loop = warm();
  Program other = load();
  // In place of a batch that is still read, and of a result that others have.
  Array batch = floats(70);
  int64_t before = graphLaunches();
  machine().hold(true);
  Submission first = loop.program.submit(std::vector{loop.state, batch});
  EXPECT_TRUE(waitForGraphs(before + 1));
  Submission second = other.submit(std::vector{batch, floats(71)});
  Array reader = first.results[0].contents().array();
  Submission third =
      loop.program.submit(std::vector{first.results[0], floats(72)});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  machine().hold(false);
  EXPECT_EQ(valueOf(third.results[1]), 70);
  EXPECT_EQ(valueOf(third.results[0]), 72);
  EXPECT_EQ(valueOf(reader), 70);
  EXPECT_EQ(valueOf(second.results[1]), 70);
  EXPECT_EQ(valueOf(second.results[0]), 71);
  EXPECT_EQ(valueOf(first.results[1]), warmUp);
}

TEST_F(CudaSteps, AStepMayNeedAnotherProgramsOfTheOneBefore) {
  Loop loop = warm();
  Program other = load(false);
  machine().hold(true);
  Submission first = loop.submit();
  Submission second = other.submit(
      std::vector{floats(80), first.results[0].contents().array()});
  Submission third =
      loop.program.submit(std::vector{loop.state, second.results[0]});
  machine().hold(false);
  EXPECT_EQ(valueOf(third.results[0]), warmUp + 1);
  EXPECT_EQ(valueOf(third.results[1]), warmUp + 1);
}

TEST(CudaStepArrays, LieWhereTheyHaveLainTogether) {
  Machine own;
  std::unique_ptr<Device> device = makeGpu(own);
  BufferTable table;
  int repeated = 0;
  auto run = [&] {
    std::vector<std::shared_ptr<Buffer>> arrays;
    std::vector<Region> regions;
    for (int64_t bytes : {64, 128, 256}) {
      arrays.push_back(Buffer::allocate(bytes));
      std::memset(arrays.back()->data.get(), 0, static_cast<size_t>(bytes));
      regions.push_back({arrays.back().get(), 0, /*isRead=*/true,
                         /*isWritten=*/false, /*isOfArray=*/true});
    }
    device->reset();
    device->bind(table, regions);
    if (device->repeat(table, 0)) {
      ++repeated;
    } else {
      device->beginRecording(table, 0);
      device->endRecording();
    }
    device->finish();
    return arrays;
  };
  // They have lain in two, three and five places.
  {
    std::vector<std::shared_ptr<Buffer>> kept;
    for (size_t step = 0; step < 5; ++step) {
      auto arrays = run();
      for (size_t i = 0; i < 3; ++i)
        if (step < std::array<size_t, 3>{1, 2, 4}[i])
          kept.push_back(arrays[i]);
    }
  }
  for (int step = 0; step < 40; ++step)
    run();
  EXPECT_GE(repeated, 35);
  EXPECT_EQ(own.takeFaults(), std::vector<std::string>());
}

TEST_F(CudaSteps, WhereMemoryIsShortTheLastOneEndsFirst) {
  Loop loop{load()};
  // None of these needs memory beside that of the one before.
  for (int step = 0; step < 5; ++step)
    loop.submit().step->wait();
  int64_t launched = graphLaunches();
  int64_t &used = machine().gpus[0].usedBytes;
  int64_t before = std::exchange(used, machine().options.memoryBytes);
  machine().hold(true);
  loop.submit();
  EXPECT_TRUE(waitForGraphs(launched + 1));
  Array last = loop.submit().results[1];
  machine().hold(false);
  EXPECT_EQ(valueOf(last), 6);
  used += before - machine().options.memoryBytes;
}

} // namespace
