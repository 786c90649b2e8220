//===- ExecutorTest.cpp - Whole programs, written by hand -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The executor as a user of the runtime sees it: programs are written as
// manifests with kernels in C, loaded, run, and their results compared with a
// calculation in the test. richProgram has every kind of instruction, on four
// ranks.
//
// Also here: donation and aliases, statistics and traces, delays of a simulated
// network, late devices with 8 seeds, and runs that fail, never end, or are
// interrupted. Some tests compare times with lower bounds, and one expects an
// error within a second. Cost: most tests run the C compiler once, for their
// kernels.
//
//===----------------------------------------------------------------------===//

#include "library/Library.h"
#include "whale/Runtime/Program.h"

#include "Networks.h"
#include "ProgramFiles.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

using namespace whale::runtime;
using namespace whale::runtime::test;
using nlohmann::json;

namespace {

Array floats(const Shape &shape, std::vector<float> values) {
  return Array::fromHost(DType::F32, shape, values.data());
}

std::vector<float> valuesOf(const Array &array) {
  std::vector<float> values(elementCount(array.shape()));
  array.toHost(values.data());
  return values;
}

class ExecutorTest : public ::testing::Test {
protected:
  Program load(const json &manifest) {
    writeFile(directory.path() / "manifest.json", manifest.dump());
    return Program::load(directory.path());
  }
  std::string loadError(const json &manifest) {
    try {
      load(manifest);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  }

  /// arg0 + arg1 -> result0, one rank.
  json addProgram() {
    compileKernels(directory.path(), kernelSource);
    json root = emptyManifest(1);
    root["kernels"] = "kernels.so";
    root["arguments"] = {replicated("arg0", "f32", {8}, 1),
                         replicated("arg1", "f32", {8}, 1)};
    root["results"] = {replicated("result0", "f32", {8}, 1)};
    root["classes"][0]["buffers"] = {shardBuffer("argument", 0, "f32", {8}),
                                     shardBuffer("argument", 1, "f32", {8}),
                                     shardBuffer("result", 0, "f32", {8})};
    root["classes"][0]["instructions"] = {
        {{"kernel", "add"}, {"buffers", {0, 1, 2}}, {"extent", 8}}};
    return root;
  }

  TemporaryDirectory directory;
};

TEST_F(ExecutorTest, RunsAKernel) {
  Program program = load(addProgram());
  EXPECT_EQ(program.rankCount(), 1u);
  EXPECT_EQ(program.arguments()[1].name, "arg1");
  Array x = floats({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  std::vector<Array> results = program.run(std::vector{x, x});
  EXPECT_EQ(valuesOf(results[0]),
            (std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16}));
  EXPECT_FALSE(x.isDonated());
  // A result is an argument as it lies.
  results = program.run(std::vector{results[0], x});
  EXPECT_EQ(valuesOf(results[0])[7], 24);
}

TEST_F(ExecutorTest, RefusesWrongArguments) {
  Program program = load(addProgram());
  Array x = floats({8}, std::vector<float>(8));
  Array shorter = floats({4}, std::vector<float>(4));
  std::vector<int32_t> integers(8);
  Array other = Array::fromHost(DType::I32, {8}, integers.data());
  auto errorOf = [&](std::vector<Array> arguments) -> std::string {
    try {
      program.run(arguments);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(errorOf({x}), "the program takes 2 arguments, 1 were given");
  EXPECT_EQ(errorOf({x, shorter}),
            "arg1: must have shape [8], the array has [4]");
  EXPECT_EQ(errorOf({x, other}), "arg1: must be f32, the array is i32");
  EXPECT_EQ(errorOf({x, Array()}), "arg1: no array was given");
  EXPECT_EQ(errorOf({x, x}), "");
}

TEST_F(ExecutorTest, DonatedArgumentsAreTakenOver) {
  json root = addProgram();
  root["arguments"][0]["donated"] = true;
  root["results"][0]["alias"] = 0;
  Program program = load(root);
  auto ones = std::vector<float>(8, 1);
  Array x = floats({8}, ones), y = floats({8}, ones);
  const void *memory = x.wholeData();
  std::vector<Array> results = program.run(std::vector{x, y});
  EXPECT_EQ(results[0].wholeData(), memory);
  EXPECT_TRUE(x.isDonated());
  EXPECT_FALSE(y.isDonated());
  EXPECT_THROW(program.run(std::vector{x, y}), Error);
  EXPECT_EQ(valuesOf(results[0]), std::vector<float>(8, 2));

  // Kept when asked, copied when somebody else holds the memory.
  RunOptions keep;
  keep.donate = false;
  std::vector<Array> again = program.run(std::vector{results[0], y}, keep);
  EXPECT_EQ(valuesOf(results[0]), std::vector<float>(8, 2));
  EXPECT_EQ(valuesOf(again[0]), std::vector<float>(8, 3));
  auto shared = results[0].shard(0);
  again = program.run(std::vector{results[0], y});
  EXPECT_NE(again[0].wholeData(), shared->data.get());
  EXPECT_EQ(*static_cast<float *>(shared->data.get()), 2);

  // Memory that is only borrowed is never written.
  auto owner = std::make_shared<std::vector<float>>(8, 5.0f);
  Array adopted = Array::adopt(
      DType::F32, {8}, std::shared_ptr<const void>(owner, owner->data()));
  again = program.run(std::vector{adopted, y});
  EXPECT_EQ(*owner, std::vector<float>(8, 5));
  EXPECT_EQ(valuesOf(again[0]), std::vector<float>(8, 6));

  // One array twice: the copy that is read stays as it was.
  Array both = floats({8}, ones);
  again = program.run(std::vector{both, both});
  EXPECT_EQ(valuesOf(again[0]), std::vector<float>(8, 2));
}

/// What a rank of richProgram computes: all of them the same.
std::vector<float> richOracle(const std::vector<float> &state) {
  // add, all-reduce over two equal ranks, times the constant matrix.
  std::vector<float> sum(16), product(16);
  for (int i = 0; i < 16; ++i)
    sum[i] = 2 * (state[i] + static_cast<float>(i));
  for (int m = 0; m < 4; ++m)
    for (int n = 0; n < 4; ++n)
      for (int k = 0; k < 4; ++k)
        product[m * 4 + n] += sum[m * 4 + k] * static_cast<float>(k * 4 + n);
  // The loop counts to 3; the last branch doubles.
  for (float &value : product)
    value *= 2;
  for (int m = 0; m < 4; ++m)
    std::sort(product.begin() + m * 4, product.begin() + m * 4 + 4);
  return product;
}

TEST_F(ExecutorTest, SlowRanksComputeTheSame) {
  richProgram(directory.path());
  Program program = Program::load(directory.path());
  std::vector<float> state(16), batch(32);
  std::iota(state.begin(), state.end(), -3.0f);
  RunOptions options;
  options.slowdowns = {1, 3, 1.5, 100};
  std::vector<Array> results = program.run(
      std::vector{floats({4, 4}, state), floats({8, 4}, batch)}, options);
  EXPECT_EQ(valuesOf(results[0]), richOracle(state));

  options.slowdowns = {1, 1};
  EXPECT_THROW(
      program.run(std::vector{floats({4, 4}, state), floats({8, 4}, batch)},
                  options),
      Error);
}

TEST_F(ExecutorTest, LateDevicesComputeTheSame) {
  richProgram(directory.path());
  std::vector<float> state(16), batch(32);
  std::iota(state.begin(), state.end(), -3.0f);
  auto movedBy = [&](const Program &program) {
    Stats stats;
    RunOptions options;
    options.stats = &stats;
    std::vector<Array> results = program.run(
        std::vector{floats({4, 4}, state), floats({8, 4}, batch)}, options);
    EXPECT_EQ(valuesOf(results[0]), richOracle(state));
    int64_t moved = 0;
    for (const RankStats &rank : stats.ranks)
      moved += rank.movedTransfers.value();
    return moved;
  };
  LoadOptions options;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    options.lateSeed = seed;
    Program program = Program::load(directory.path(), options);
    int64_t moved = movedBy(program);
    EXPECT_EQ(movedBy(program), moved);
    // All four ranks compute between the gather's start and its wait.
    if (seed == 0)
      EXPECT_EQ(moved, 4);
  }
  setenv("WHALE_TEST_LATE", "0", 1);
  EXPECT_EQ(movedBy(Program::load(directory.path())), 4);
  setenv("WHALE_TEST_LATE", "soon", 1);
  EXPECT_THROW(Program::load(directory.path()), Error);
  unsetenv("WHALE_TEST_LATE");
}

TEST_F(ExecutorTest, RunsEveryKindOfInstruction) {
  richProgram(directory.path());
  Program program = Program::load(directory.path());
  EXPECT_EQ(program.rankCount(), 4u);
  EXPECT_EQ(program.plan(), R"({"task_graphs":[]})");
  std::vector<float> state(16), batch(32);
  std::iota(state.begin(), state.end(), -3.0f);
  std::iota(batch.begin(), batch.end(), 100.0f);
  Stats stats;
  Trace trace;
  RunOptions options;
  options.stats = &stats;
  options.trace = &trace;
  Array x = floats({4, 4}, state);
  for (int step = 0; step < 3; ++step) {
    std::vector<Array> results =
        program.run(std::vector{x, floats({8, 4}, batch)}, options);
    state = richOracle(state);
    EXPECT_EQ(valuesOf(results[0]), state);
    EXPECT_EQ(valuesOf(results[1]), batch);
    EXPECT_EQ(results[1].shard(3), nullptr);
    x = results[0];
  }

  ASSERT_EQ(stats.ranks.size(), 4u);
  const CollectiveStats &reduce = stats.ranks[0].collectives["all_reduce"];
  EXPECT_EQ(reduce.count, 1);
  EXPECT_EQ(reduce.bytesSent, 64);
  EXPECT_EQ(reduce.bytesReceived, 64);
  const CollectiveStats &gather = stats.ranks[0].collectives["all_gather"];
  EXPECT_EQ(gather.bytesReceived, 3 * 32);
  EXPECT_EQ(gather.bytesSent, 2 * 32);
  EXPECT_EQ(stats.ranks[3].collectives["all_gather"].bytesSent, 3 * 32);
  EXPECT_EQ(stats.ranks[3].collectives["all_gather"].bytesReceived, 0);
  // Arena, state (taken over by the result), batch, gathered, constants.
  EXPECT_GE(stats.ranks[0].peakBytes, 512 + 64 + 32 + 128 + 64 + 4 + 4);
  EXPECT_EQ(stats.ranks[0].argumentBytes, 64 + 32);
  EXPECT_TRUE(json::parse(stats.json()).contains("ranks"));

  json events = json::parse(trace.json())["traceEvents"];
  int communications = 0;
  for (const json &event : events)
    communications += event["ph"] == "X" && event["cat"] == "communication";
  EXPECT_EQ(communications, 3 * 4 * 2);
  auto product =
      std::find_if(events.begin(), events.end(), [](const json &event) {
        return event["ph"] == "X" && event["args"]["instruction"] == "matmul";
      });
  ASSERT_NE(product, events.end());
  const json &told = (*product)["args"];
  EXPECT_EQ(told["bytes"], 3 * 64);
  EXPECT_GT(told["roofline"], 0);
}

TEST_F(ExecutorTest, TransfersAppearByTheirWaits) {
  json root = richProgram(directory.path());
  root["origins"].push_back(
      {{"label", "collect"}, {"lines", {"model.py:7", "model.py:3"}}});
  root["origins"].push_back({{"label", "sum"}});
  for (json &rankClass : root["classes"]) {
    json &start = rankClass["instructions"][2];
    start["origin"] = 2;
    start["flops"] = 5;
    start["bytes"] = 600;
    rankClass["instructions"][1]["origin"] = 3;
  }
  Program program = load(root);
  Trace trace;
  Profile profile;
  RunOptions options;
  options.trace = &trace;
  options.profile = &profile;
  program.run(std::vector{floats({4, 4}, std::vector<float>(16)),
                          floats({8, 4}, std::vector<float>(32))},
              options);
  for (size_t rank = 0; rank < 4; ++rank) {
    std::map<std::string, Trace::Event> bars;
    for (const Trace::Event &event : trace.events()[rank])
      if (event.queue == Queue::Communication)
        bars.emplace(event.name, event);
    ASSERT_EQ(bars.size(), 2u);
    const Trace::Cost &sum = bars.at("sum").cost;
    EXPECT_EQ(sum.exchange->kind, "all_reduce");
    EXPECT_EQ(sum.exchange->sent, 64);
    EXPECT_TRUE(sum.lines.empty());
    const Trace::Event &collect = bars.at("collect");
    EXPECT_EQ(collect.cost.detail, "wait");
    EXPECT_EQ(collect.cost.exchange->kind, "all_gather");
    EXPECT_EQ(collect.cost.exchange->peers.size(), 3u);
    EXPECT_EQ(collect.cost.lines,
              (std::vector<std::string>{"model.py:7", "model.py:3"}));
    EXPECT_EQ(collect.cost.flops, 5);
    EXPECT_EQ(collect.cost.bytes, 600);
    // It was started before the other one ended, and waited for last.
    std::chrono::duration<double> took = collect.end - bars.at("sum").end;
    EXPECT_GE(collect.cost.exchange->totalSeconds, took.count());
  }
  json bars = json::parse(trace.json())["traceEvents"];
  auto bar = std::find_if(bars.begin(), bars.end(), [](const json &event) {
    return event["name"] == "collect";
  });
  ASSERT_NE(bar, bars.end());
  EXPECT_GT((*bar)["args"]["since_start_us"], 0);
  EXPECT_TRUE((*bar)["args"].contains("waiting_us"));

  // The instructions that start transfers have no times of their own.
  EXPECT_EQ(profile.ranks[0][1].count, 0);
  EXPECT_EQ(profile.ranks[0][2].count, 0);
  EXPECT_EQ(profile.ranks[0][3].count, 1);
  EXPECT_NE(program.describe(profile).find("model.py:7 (all_gather; 1 a step)"),
            std::string::npos);
}

TEST_F(ExecutorTest, ANetworkDelaysTransfers) {
  richProgram(directory.path());
  LoadOptions options;
  options.network = networkOf(4, 0.005);
  Program program = Program::load(directory.path(), options);
  std::vector<float> state(16), batch(32);
  std::iota(batch.begin(), batch.end(), 100.0f);
  Stats stats;
  RunOptions runOptions;
  Profile profile;
  runOptions.stats = &stats;
  runOptions.profile = &profile;
  std::vector<Array> results = program.run(
      std::vector{floats({4, 4}, state), floats({8, 4}, batch)}, runOptions);
  EXPECT_EQ(valuesOf(results[0]), richOracle(state));
  EXPECT_EQ(valuesOf(results[1]), batch);
  // A round of an all-reduce of few bytes, then the gathering.
  EXPECT_GE(stats.stepSeconds, 2 * 0.005);
  EXPECT_GT(stats.ranks[0].communicationSeconds, 0);
  // The model has the same, and what was measured of the rest.
  std::string text = program.describe(profile);
  double measured = 0, model = 0;
  ASSERT_EQ(
      std::sscanf(text.c_str(),
                  "%lf ms a step, mean of 1, 4 ranks\n%lf ms by the model",
                  &measured, &model),
      2)
      << text;
  EXPECT_GE(model, 10);
  EXPECT_GE(measured, 10);
}

TEST_F(ExecutorTest, FailingRankStopsTheOthers) {
  registerLibraryFunction("test.fail", [](const LibraryRequest &) {
    return [](std::span<void *const>, std::span<void *const>) {
      throw Error("out of luck");
    };
  });
  json root = richProgram(directory.path());
  root["origins"].push_back({{"label", "roulette"}});
  json &instructions = root["classes"][1]["instructions"];
  json call = {{"call", "test.fail"},
               {"origin", 2},
               {"inputs", json::array()},
               {"outputs", json::array()}};
  instructions.insert(instructions.begin() + 1, call);
  Program program = load(root);
  Array state = floats({4, 4}, std::vector<float>(16));
  Array batch = floats({8, 4}, std::vector<float>(32));
  RunOptions keep;
  keep.donate = false;
  for (int round = 0; round < 3; ++round) {
    auto begin = std::chrono::steady_clock::now();
    try {
      program.run(std::vector{state, batch}, keep);
      FAIL();
    } catch (const Error &error) {
      EXPECT_STREQ(error.what(), "rank 3: 'roulette': out of luck");
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(1));
  }
  EXPECT_THROW(program.run(std::vector{state, batch}), Error);
  EXPECT_EQ(state.fate(), "donated to a program that failed");
}

/// A program that adds, which adds to its result so many times more.
static json repeated(json root, int64_t trips) {
  json &rankClass = root["classes"][0];
  rankClass["arena_bytes"] = 64;
  // Nobody writes the condition.
  rankClass["buffers"].push_back({{"arena", 0}, {"type", "i1[]"}});
  json again = {{"kernel", "add"}, {"buffers", {2, 1, 2}}, {"extent", 8}};
  rankClass["instructions"].push_back({{"while", 3},
                                       {"cond", json::array()},
                                       {"body", json::array({again})},
                                       {"trips", trips}});
  return root;
}

TEST_F(ExecutorTest, AProfileCountsAllRunsOfALoop) {
  Program program = load(repeated(addProgram(), 1000));
  Array x = floats({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  RunOptions options;
  Profile profile;
  options.profile = &profile;
  program.run(std::vector{x, x}, options);
  // Few of the runs are timed, and stand for all.
  auto often =
      std::ranges::find(profile.ranks[0], 1000, &Profile::Spent::count);
  ASSERT_NE(often, profile.ranks[0].end());
  EXPECT_GT(often->seconds, 0);
  EXPECT_EQ(profile.ranks[0][0].count, 1);
}

TEST_F(ExecutorTest, ALoopThatCountsReadsNothingBack) {
  Program program = load(repeated(addProgram(), 3));
  Array x = floats({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(valuesOf(program.run(std::vector{x, x})[0]),
            (std::vector<float>{5, 10, 15, 20, 25, 30, 35, 40}));
}

TEST_F(ExecutorTest, AnEndlessLoopCanBeStopped) {
  json root = richProgram(directory.path());
  for (json &cls : root["classes"])
    for (json &instruction : cls["instructions"])
      if (instruction.contains("while")) {
        instruction["body"] = json::array();
        instruction.erase("trips");
      }
  Program program = load(root);
  std::stop_source source;
  RunOptions options;
  options.stop = source.get_token();
  std::thread user([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    source.request_stop();
  });
  try {
    program.run(std::vector{floats({4, 4}, std::vector<float>(16)),
                            floats({8, 4}, std::vector<float>(32))},
                options);
    ADD_FAILURE();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "the run was stopped");
  }
  user.join();
}

TEST_F(ExecutorTest, ACallerMayInterrupt) {
  json root = richProgram(directory.path());
  json endless = root;
  for (json &cls : endless["classes"])
    for (json &instruction : cls["instructions"])
      if (instruction.contains("while")) {
        instruction["body"] = json::array();
        instruction.erase("trips");
      }
  Program program = load(endless);
  Array state = floats({4, 4}, std::vector<float>(16));
  Array batch = floats({8, 4}, std::vector<float>(32));
  int asked = 0;
  RunOptions options;
  options.interrupted = [&] { return ++asked == 2; };
  EXPECT_THROW(program.run(std::vector{state, batch}, options), Interrupted);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(state.fate(), "donated to a program that was interrupted");
  EXPECT_FALSE(batch.isDonated());
  try {
    program.run(std::vector{state, batch});
    ADD_FAILURE();
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("was interrupted before"),
              std::string::npos);
  }
  // Another thread's run is no reason to wait.
  std::stop_source source;
  std::thread other([&] {
    RunOptions options;
    options.stop = source.get_token();
    options.donate = false;
    Array state = floats({4, 4}, std::vector<float>(16));
    EXPECT_THROW(program.run(std::vector{state, batch}, options), Error);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  state = floats({4, 4}, std::vector<float>(16));
  options.interrupted = [] { return true; };
  EXPECT_THROW(program.run(std::vector{state, batch}, options), Interrupted);
  source.request_stop();
  other.join();
}

TEST_F(ExecutorTest, DifferentOrdersOfCollectivesAreAnError) {
  json root = richProgram(directory.path());
  json &instructions = root["classes"][0]["instructions"];
  std::swap(instructions[1], instructions[2]);
  for (json &instruction : instructions)
    if (auto transfer = instruction.find("wait"); transfer != instruction.end())
      *transfer = 1 - transfer->get<int>();
  // Ranks 0 to 2 wait for rank 3 in channel 2, which waits for rank 1 in
  // channel 1.
  EXPECT_NE(loadError(root).find("and channel 2 is next in its queue"),
            std::string::npos)
      << loadError(root);
}

TEST_F(ExecutorTest, AChannelMayBeTheSameAsAnother) {
  json root = richProgram(directory.path());
  root["channels"]["7"] = {{"same_as", 2}};
  // Gathers once more, in the new channel.
  for (json &rankClass : root["classes"]) {
    json &instructions = rankClass["instructions"];
    for (size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].value("start", 0) != 2)
        continue;
      json again = instructions[i];
      again["start"] = 7;
      instructions.insert(instructions.begin() + i + 1, again);
      instructions.push_back({{"wait", 2}});
      break;
    }
  }
  Program program = load(root);
  std::vector<float> batch(32);
  std::iota(batch.begin(), batch.end(), 100.0f);
  Stats stats;
  RunOptions options;
  options.stats = &stats;
  Array state = floats({4, 4}, std::vector<float>(16));
  std::vector<Array> results =
      program.run(std::vector{state, floats({8, 4}, batch)}, options);
  EXPECT_EQ(valuesOf(results[1]), batch);
  EXPECT_EQ(stats.ranks[0].collectives["all_gather"].count, 2);
  // But not as one that is itself only a reference.
  root["channels"]["2"] = {{"same_as", 7}};
  EXPECT_THROW(load(root), Error);
}

TEST_F(ExecutorTest, BoxesMayBeThoseOfAnEarlierTensor) {
  json root = addProgram();
  root["arguments"][1]["boxes"] = "arg0";
  root["results"][0]["boxes"] = "arg1";
  Program program = load(root);
  auto ones = std::vector<float>(8, 1);
  std::vector<Array> results =
      program.run(std::vector{floats({8}, ones), floats({8}, ones)});
  EXPECT_EQ(valuesOf(results[0]), std::vector<float>(8, 2));
  root["arguments"][0]["boxes"] = "arg1";
  EXPECT_THROW(load(root), Error);
}

TEST_F(ExecutorTest, ThreadsSplitAKernelInRanges) {
  compileKernels(directory.path(), kernelSource);
  constexpr int64_t n = 200'003;
  json root = emptyManifest(1);
  root["kernels"] = "kernels.so";
  root["arguments"] = {replicated("arg0", "f32", {n}, 1)};
  root["results"] = {replicated("result0", "f32", {n}, 1)};
  root["classes"][0]["buffers"] = {shardBuffer("argument", 0, "f32", {n}),
                                   shardBuffer("result", 0, "f32", {n})};
  root["classes"][0]["instructions"] = {
      {{"kernel", "scale"}, {"buffers", {0, 1}}, {"extent", n}}};
  writeFile(directory.path() / "manifest.json", root.dump());
  LoadOptions options;
  options.threadsPerRank = 3;
  Program program = Program::load(directory.path(), options);
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.0f);
  auto results = program.run(std::vector{floats({n}, values)});
  for (float &value : values)
    value *= 2;
  EXPECT_EQ(valuesOf(results[0]), values);
}

TEST_F(ExecutorTest, RefusesOtherVersionsAndTargets) {
  json root = emptyManifest(1);
  EXPECT_EQ(loadError(root), "");
  std::string file = (directory.path() / "manifest.json").string();
  root["version"] = 12;
  EXPECT_EQ(loadError(root),
            file + ": version: the program has version 12, this Whale reads "
                   "version 11: it needs a newer Whale");
  root["version"] = 3;
  EXPECT_EQ(loadError(root),
            file + ": version: the program has version 3, this Whale reads "
                   "version 11: compile it anew");
  root["version"] = 11;
  root["target"] = "none";
  EXPECT_NE(loadError(root).find("no code to run"), std::string::npos);
  EXPECT_THROW(Program::load("/nonexistent"), Error);
}

} // namespace
