//===- FunctionTest.cpp - Functions that a program runs ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions that a class of ranks runs several times, on other operands and in
// other memory each time. The program is written by hand: one function adds in
// a loop and in place, one is a product with a constant; results are compared
// with a calculation in the test.
//
// Locals may be at other places of the arena in each run, which shows by a
// value that would be overwritten. Profiles and traces must count an
// instruction of a function once for each run, with the micro-batch of the run;
// errors must name the function's instruction.
//
//===----------------------------------------------------------------------===//

#include "ProgramFiles.h"
#include "Values.h"
#include "library/Library.h"
#include "whale/Runtime/Program.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace whale::runtime;
using namespace whale::runtime::test;
using nlohmann::json;

namespace {

json constantBuffer(int64_t offset, const std::string &dtype,
                    const std::vector<int64_t> &shape) {
  return shardBuffer("constant", offset, dtype, shape);
}

json kernel(const std::string &symbol, const std::vector<int> &buffers,
            int64_t extent) {
  return {{"kernel", symbol}, {"buffers", buffers}, {"extent", extent}};
}

json copy(int src, int dst) { return {{"copy", {src, dst}}}; }

/// Adds eight times its first operand to its second one, in a loop and in
/// place.
json accumulate() {
  return {{"operands", 2},
          {"results", 1},
          {"buffers",
           {/*0*/ shardBuffer("operand", 0, "f32", {8}),
            /*1*/ shardBuffer("operand", 1, "f32", {8}),
            /*2*/ shardBuffer("result", 0, "f32", {8}),
            /*3*/ shardBuffer("local", 0, "i32", {}),
            /*4*/ shardBuffer("local", 1, "i1", {}),
            /*5*/ shardBuffer("local", 2, "f32", {8}),
            /*6*/ constantBuffer(0, "i32", {}),
            /*7*/ constantBuffer(64, "i32", {})}},
          {"instructions",
           {copy(6, 3),
            copy(0, 5),
            {{"while", 4},
             {"cond", {kernel("less", {3, 7, 4}, 1)}},
             {"body",
              {kernel("increment", {3, 3}, 1), kernel("scale", {5, 5}, 8)}}},
            {{"kernel", "add"},
             {"buffers", {1, 5, 1}},
             {"extent", 8},
             {"origin", 0}}}}};
}

/// The product of its operand, [2, 4], and a constant.
json multiply() {
  return {{"operands", 1},
          {"results", 1},
          {"buffers",
           {shardBuffer("operand", 0, "f32", {2, 4}),
            shardBuffer("result", 0, "f32", {2, 4}),
            constantBuffer(0, "f32", {4, 4})}},
          {"instructions",
           {{{"matmul", {0, 2, 1}},
             {"batch", json::array()},
             {"m", {2, 4, 4}},
             {"n", {4, 1, 1}},
             {"k", {4, 1, 4}}}}}};
}

json given(int function, const std::vector<int> &operands, int result) {
  return {
      {"function", function}, {"operands", operands}, {"results", {result}}};
}

class FunctionTest : public ::testing::Test {
protected:
  /// result0 is arg1 and eight times each row of arg0, result1 the products of
  /// the first two rows, as [2, 4], and a constant.
  json manifest() {
    richProgram(directory.path());
    json root = emptyManifest(1);
    root["kernels"] = "kernels.so";
    root["constants"] = "constants.bin";
    root["origins"] = {{{"label", "sum"}, {"lines", {"model.py:5"}}},
                       {{"label", "roulette"}}};
    root["functions"] = {accumulate(), multiply()};
    root["arguments"] = {replicated("arg0", "f32", {3, 8}, 1),
                         replicated("arg1", "f32", {8}, 1)};
    root["results"] = {replicated("result0", "f32", {8}, 1),
                       replicated("result1", "f32", {2, 8}, 1)};
    json &rankClass = root["classes"][0];
    auto part = [&](const char *space, int64_t index, int64_t row) {
      json buffer = shardBuffer(space, index, "f32", {8});
      buffer["offset"] = 32 * row;
      rankClass["buffers"].push_back(buffer);
    };
    for (int64_t row : {0, 1, 2})
      part("argument", 0, row);
    rankClass["buffers"].push_back(shardBuffer("argument", 1, "f32", {8}));
    rankClass["buffers"].push_back(shardBuffer("result", 0, "f32", {8}));
    part("result", 1, 0);
    part("result", 1, 1);
    rankClass["arena_bytes"] = 128;
    rankClass["locals"] = {{"0", json::array({{64, 68, 0}})},
                           {"1", json::array({json::array()})}};
    rankClass["runs"] = {given(0, {0, 4}, 4), given(0, {1, 4}, 4),
                         given(0, {2, 4}, 4), given(1, {0}, 5),
                         given(1, {1}, 6)};
    json &instructions = rankClass["instructions"];
    instructions = json::array({copy(3, 4)});
    for (int run : {0, 1, 2, 3, 4})
      instructions.push_back({{"run", run}});
    rankClass["moments"] = {{1, 0}, {1, 1, 1, 2}, {2, nullptr}};
    return root;
  }

  Program load(const json &manifest) {
    writeFile(directory.path() / "manifest.json", manifest.dump());
    return Program::load(directory.path());
  }
  std::vector<Array> runOnce(const Program &program,
                             const RunOptions &options = {}) {
    return program.run(
        std::vector{Array::fromHost(DType::F32, {3, 8}, rows.data()),
                    Array::fromHost(DType::F32, {8}, sum.data())},
        options);
  }
  FunctionTest() : rows(24), sum(8, 100) {
    std::iota(rows.begin(), rows.end(), 0.0f);
  }

  TemporaryDirectory directory;
  std::vector<float> rows, sum;
};

std::vector<float> valuesOf(const Array &array) {
  std::vector<float> values(elementCount(array.shape()));
  array.toHost(values.data());
  return values;
}

TEST_F(FunctionTest, RunsOnOtherMemoryEachTime) {
  Program program = load(manifest());
  std::vector<float> sums(8), products(16);
  for (int i = 0; i < 8; ++i)
    sums[i] = 100 + 8 * (rows[i] + rows[8 + i] + rows[16 + i]);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < 4; ++k)
        products[4 * i + j] += rows[4 * i + k] * static_cast<float>(4 * k + j);
  for (int step = 0; step < 2; ++step) {
    std::vector<Array> results = runOnce(program);
    EXPECT_EQ(valuesOf(results[0]), sums);
    EXPECT_EQ(valuesOf(results[1]), products);
  }
}

// What is kept from the first run on is where the locals of the others are, and
// not those of the second.
TEST_F(FunctionTest, RunsHaveLocalsInTheirLayout) {
  json root = manifest();
  json &rankClass = root["classes"][0];
  rankClass["arena_bytes"] = 256;
  rankClass["locals"]["0"].push_back({192, 196, 128});
  rankClass["runs"][1]["layout"] = 1;
  const auto kept = static_cast<int>(rankClass["buffers"].size());
  rankClass["buffers"].push_back(arenaBuffer(0, "f32", {8}));
  json instructions = json::array({copy(3, 4),
                                   {{"run", 0}},
                                   copy(4, kept),
                                   {{"run", 1}},
                                   copy(kept, 4),
                                   {{"run", 2}}});
  for (int run : {3, 4})
    instructions.push_back({{"run", run}});
  rankClass["instructions"] = instructions;
  std::vector<float> sums(8);
  for (int i = 0; i < 8; ++i)
    sums[i] = 100 + 8 * (rows[i] + rows[16 + i]);
  EXPECT_EQ(valuesOf(runOnce(load(root))[0]), sums);
}

TEST_F(FunctionTest, ProfilesAddUpOverRuns) {
  json root = manifest();
  Program program = load(root);
  Profile profile;
  Trace trace;
  RunOptions options;
  options.profile = &profile;
  options.trace = &trace;
  runOnce(program, options);
  // The class's copy and runs; copies, loop and sum; the product.
  std::vector<int64_t> counts;
  for (const Profile::Spent &spent : profile.ranks[0])
    counts.push_back(spent.count);
  EXPECT_EQ(counts,
            (std::vector<int64_t>{1, 0, 0, 0, 0, 0, 3, 3, 0, 12, 9, 9, 3, 2}));
  std::string text = program.describe(profile);
  EXPECT_NE(text.find("model.py:5 (kernel; 3 a step)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("matmul (matmul; 2 a step)"), std::string::npos) << text;
  // A loop that exchanges nothing has a time in the model.
  EXPECT_NE(text.find("by the model of a step"), std::string::npos) << text;

  std::vector<int64_t> moments;
  for (const Trace::Event &event : trace.events()[0])
    if (event.name == "sum") {
      EXPECT_EQ(event.cost.lines, std::vector<std::string>{"model.py:5"});
      moments.push_back(event.cost.moment.value());
    } else if (event.name == "matmul") {
      EXPECT_EQ(event.cost.moment, std::nullopt);
    }
  EXPECT_EQ(moments, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_NE(trace.json().find("\"micro_batch\":2"), std::string::npos);
}

TEST_F(FunctionTest, CountsItsConstants) {
  Stats stats;
  RunOptions options;
  options.stats = &stats;
  Program program = load(manifest());
  runOnce(program, options);
  int64_t peak = stats.ranks[0].peakBytes;
  json root = manifest();
  root["functions"][1]["buffers"].push_back(constantBuffer(4, "f32", {8}));
  Program larger = load(root);
  runOnce(larger, options);
  EXPECT_EQ(stats.ranks[0].peakBytes, peak + 32);
}

TEST_F(FunctionTest, ErrorsNameTheInstruction) {
  std::string file = (directory.path() / "manifest.json").string();
  json root = manifest();
  root["functions"][0]["instructions"][3]["kernel"] = "subtract";
  EXPECT_EQ(errorOf([&] { load(root); }),
            file + ": functions[0].instructions[3].kernel: there is no kernel "
                   "'subtract' in kernels.so");
  root = manifest();
  root["functions"][1]["buffers"][2]["constant"] = 64;
  EXPECT_EQ(errorOf([&] { load(root); }),
            file + ": functions[1].buffers[2].constant: the buffer's 64 bytes "
                   "reach out of the constants of 68");

  registerLibraryFunction("test.lose", [](const LibraryRequest &) {
    return [](std::span<void *const>, std::span<void *const>) {
      throw Error("out of luck");
    };
  });
  root = manifest();
  root["functions"][1]["instructions"] = {{{"call", "test.lose"},
                                           {"origin", 1},
                                           {"inputs", json::array()},
                                           {"outputs", json::array()}}};
  Program program = load(root);
  EXPECT_EQ(errorOf([&] { runOnce(program); }),
            "rank 0: 'roulette': out of luck");
}

} // namespace
