//===- ReadFunctionTest.cpp - Functions, runs and parts ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How functions, their runs and their locals are read from a manifest, and what
// is refused. A small program of one rank, with one function that it runs three
// times, is changed in one field at a time; errors are compared word for word,
// with the path of the field.
//
// What is read, written and read again must be equal. The executor relies on
// these checks: an error that is missing is memory that a run would overwrite.
//
//===----------------------------------------------------------------------===//

#include "Manifests.h"
#include "whale/ProgramFormat/ReadProgram.h"
#include "whale/ProgramFormat/WriteProgram.h"
#include "whale/System/Error.h"

#include <gtest/gtest.h>

using namespace whale::format;
using namespace whale::format::test;
using nlohmann::json;

namespace {

/// A program of one rank that runs one function: it adds a product of its two
/// operands and a constant up in its result, by way of two locals.
json productManifest() {
  json root = emptyManifest(1);
  root["constants"] = "constants.bin";
  root["arguments"] = {replicated("arg0", "f32", {3, 4, 4}, 1)};
  json constant = shardBuffer("constant", 0, "f32", {4, 4});
  auto matmul = [](int lhs, int rhs, int out) -> json {
    return {{"matmul", {lhs, rhs, out}},
            {"m", {4, 4, 4}},
            {"n", {4, 1, 1}},
            {"batch", json::array()},
            {"k", {4, 1, 4}}};
  };
  root["functions"] = {
      {{"operands", 2},
       {"results", 1},
       {"buffers",
        {shardBuffer("operand", 0, "f32", {4, 4}),
         shardBuffer("operand", 1, "f32", {16}),
         shardBuffer("result", 0, "f32", {4, 4}),
         shardBuffer("local", 0, "f32", {4, 4}),
         shardBuffer("local", 1, "f32", {4, 4}), constant}},
       {"instructions", {matmul(0, 1, 3), matmul(3, 5, 4), matmul(4, 5, 2)}}}};
  json &rankClass = root["classes"][0];
  rankClass["arena_bytes"] = 512;
  rankClass["locals"]["0"] = json::array({{384, 448}});
  for (int i = 0; i < 6; ++i)
    rankClass["buffers"].push_back(arenaBuffer(64 * i, "f32", {4, 4}));
  json part = shardBuffer("argument", 0, "f32", {4, 4});
  part["offset"] = 64;
  rankClass["buffers"].push_back(part);
  rankClass["buffers"].push_back(constant);
  auto run = [](int a, int b, int result) -> json {
    return {{"function", 0}, {"operands", {a, b}}, {"results", {result}}};
  };
  rankClass["runs"] = {run(6, 7, 0), run(0, 6, 1), run(0, 0, 1)};
  for (int i : {0, 1, 2})
    rankClass["instructions"].push_back({{"run", i}});
  return root;
}

std::string errorOf(const json &manifest) {
  try {
    readProgram(manifest.dump(), "file");
    return "";
  } catch (const whale::system::Error &error) {
    return error.what();
  }
}

/// The error of the program with another value at a path.
std::string errorOf(const std::string &path, const json &value) {
  json manifest = productManifest();
  manifest[json::json_pointer(path)] = value;
  return errorOf(manifest);
}

std::string errorWithout(const std::string &path, const std::string &key) {
  json manifest = productManifest();
  manifest[json::json_pointer(path)].erase(key);
  return errorOf(manifest);
}

TEST(ReadFunctionTest, IsReadAndWritten) {
  Program program = readProgram(productManifest().dump(), "file");
  ASSERT_EQ(program.functions.size(), 1u);
  const Function &function = program.functions[0];
  EXPECT_EQ(function.operands, 2);
  EXPECT_EQ(function.results, 1);
  EXPECT_EQ(function.buffers[4].space, Space::Local);
  EXPECT_EQ(function.buffers[4].index, 1);
  EXPECT_EQ(function.instructions.size(), 3u);
  const RankClass &rankClass = program.classes[0];
  EXPECT_EQ(rankClass.locals.at(0),
            (std::vector<std::vector<int64_t>>{{384, 448}}));
  EXPECT_EQ(rankClass.buffers[6].offset, 64);
  EXPECT_EQ(std::get<whale::format::Run>(rankClass.instructions[1].operation),
            (whale::format::Run{0, {0, 6}, {1}, {}}));
  EXPECT_EQ(readProgram(writeProgram(program).manifest, "again"), program);
}

TEST(ReadFunctionTest, ErrorsNameTheField) {
  EXPECT_EQ(errorOf("/functions/0/operands", 3),
            "file: functions[0].buffers: there is no buffer of operand 2");
  EXPECT_EQ(errorOf("/functions/0/operands", 7),
            "file: functions[0].operands: must be an integer from 0 to 6");
  EXPECT_EQ(errorOf("/functions/0/results", 0),
            "file: functions[0].buffers[2].result: must be an integer from 0 "
            "to -1");
  EXPECT_EQ(errorOf("/functions/0/buffers/0", arenaBuffer(0, "f32", {4, 4})),
            "file: functions[0].buffers[0]: must have a field 'operand', "
            "'result', 'local' or 'constant'");
  EXPECT_EQ(errorOf("/functions/0/buffers/0/local", 0),
            "file: functions[0].buffers[0]: is both 'operand' and 'local'");
  EXPECT_EQ(errorOf("/functions/0/buffers/4/local", 2),
            "file: functions[0].buffers: there is no buffer of local 1");
  EXPECT_EQ(errorOf("/functions/0/buffers/4/local", INT64_MAX),
            "file: functions[0].buffers[4].local: must be an integer from 0 "
            "to 5");
  EXPECT_EQ(
      errorOf("/functions/0/buffers/4", shardBuffer("local", 0, "f32", {4})),
      "file: functions[0].buffers[4].type: must have 64 bytes, as in an "
      "earlier buffer of local 0");
  EXPECT_EQ(
      errorOf("/functions/0/instructions/0/matmul/0", 9),
      "file: functions[0].instructions[0].matmul[0]: must be an integer from 0 "
      "to 5");
  EXPECT_EQ(
      errorOf("/functions/0/instructions/2/matmul/2", 5),
      "file: functions[0].instructions[2].matmul[2]: is a constant and cannot "
      "be written");
  EXPECT_EQ(errorOf("/functions/0/instructions/2/matmul/2", 4),
            "file: functions[0].instructions[2].matmul[2]: overlaps buffer 4");
  for (const char *op : {"start", "wait", "run"})
    EXPECT_EQ(errorOf("/functions/0/instructions/1", {{op, 0}}),
              "file: functions[0].instructions[1]." + std::string(op) +
                  ": a function must not hold '" + op + "'");
}

TEST(ReadFunctionTest, LocalsLieInTheArena) {
  const std::string path = "/classes/0/locals/0/0",
                    field = "file: classes[0].locals.0[0]";
  EXPECT_EQ(errorWithout("/classes/0", "locals"),
            "file: classes[0].runs[0].function: the class has no "
            "locals of function 0");
  EXPECT_EQ(errorOf("/classes/0/locals/1", {0}),
            "file: classes[0].locals.1: there is no function '1'");
  EXPECT_EQ(errorOf("/classes/0/locals/0", json::array()),
            "file: classes[0].locals.0: must have a layout of the function's "
            "locals");
  EXPECT_EQ(errorOf(path, {384}), field + ": the function has 2 locals");
  EXPECT_EQ(errorOf(path, {384, 452}),
            field + "[1]: the local's 64 bytes reach out of the arena of 512");
  EXPECT_EQ(errorOf(path, {382, 448}),
            field + "[0]: must be a multiple of the element size");
  EXPECT_EQ(errorOf(path, {388, 448}),
            field + ": local 0 and local 1 overlap, and the function writes "
                    "one where it uses the other");
  EXPECT_EQ(errorOf("/classes/0/runs", json::array()),
            field + ": the class does not run function 0 with this layout");
}

TEST(ReadFunctionTest, RunsHaveLocalsInTheirLayout) {
  json manifest = productManifest();
  json &rankClass = manifest["classes"][0];
  rankClass["locals"]["0"].push_back({448, 384});
  EXPECT_EQ(errorOf(manifest), "file: classes[0].locals.0[1]: the class does "
                               "not run function 0 with this layout");
  rankClass["runs"][1]["layout"] = 1;
  Program program = readProgram(manifest.dump(), "file");
  auto layoutOf = [&](size_t instruction) {
    return std::get<whale::format::Run>(
               program.classes[0].instructions[instruction].operation)
        .layout;
  };
  EXPECT_EQ(layoutOf(0), 0);
  EXPECT_EQ(layoutOf(1), 1);
  EXPECT_EQ(readProgram(writeProgram(program).manifest, "again"), program);
  rankClass["runs"][1]["layout"] = 2;
  EXPECT_EQ(errorOf(manifest), "file: classes[0].runs[1].layout: must be an "
                               "integer from 0 to 1");
}

TEST(ReadFunctionTest, RunsAreGivenWhatTheFunctionTakes) {
  const std::string path = "/classes/0/runs/0",
                    field = "file: classes[0].runs[0]";
  EXPECT_EQ(errorOf(path + "/function", 1),
            field + ".function: must be an integer from 0 to 0");
  EXPECT_EQ(errorOf(path + "/operands", {6}),
            field + ".operands: the function has 2 operands");
  EXPECT_EQ(errorOf(path + "/results", {0, 1}),
            field + ".results: the function has 1 results");
  EXPECT_EQ(errorOf(path + "/results/0", 8),
            field + ".results[0]: must be an integer from 0 to 7");
  EXPECT_EQ(errorOf("/classes/0/instructions/0/run", 3),
            "file: classes[0].instructions[0].run: must be an integer from 0 "
            "to 2");
  EXPECT_EQ(errorOf("/classes/0/buffers/0", arenaBuffer(0, "f32", {4})),
            field + ".results[0]: the function has 64 bytes here, the buffer "
                    "16");
  EXPECT_EQ(errorOf("/classes/0/buffers/0", arenaBuffer(2, "f16", {32})),
            field + ".results[0]: must have an offset that is a multiple of "
                    "4");
  EXPECT_EQ(errorOf("/classes/0/buffers/0", arenaBuffer(4, "f16", {32})), "");
}

TEST(ReadFunctionTest, MomentsAreThoseOfRunsInARow) {
  json manifest = productManifest();
  json &rankClass = manifest["classes"][0];
  rankClass["moments"] = {{2, 5}, {1, nullptr}};
  Program program = readProgram(manifest.dump(), "file");
  std::vector<std::optional<int64_t>> moments;
  for (const Instruction &instruction : program.classes[0].instructions)
    moments.push_back(
        std::get<whale::format::Run>(instruction.operation).moment);
  EXPECT_EQ(moments, (std::vector<std::optional<int64_t>>{5, 5, {}}));
  EXPECT_EQ(
      json::parse(writeProgram(program).manifest)["classes"][0]["moments"],
      rankClass["moments"]);
  rankClass["moments"] = json::array({{2, 5, 1, nullptr}});
  EXPECT_EQ(readProgram(manifest.dump(), "file"), program);

  const std::string field = "file: classes[0].moments";
  auto errorWith = [&](const json &moments) {
    return errorOf("/classes/0/moments", moments);
  };
  EXPECT_EQ(errorWith(json::array({{3, 0}})), "");
  EXPECT_EQ(errorWith({{0, 5}, {3, 0}}),
            field + "[0][0]: must be an integer of at least 1");
  EXPECT_EQ(errorWith({{1, 5}, {2, -1}}),
            field + "[1][1]: must be an integer of at least 0");
  EXPECT_EQ(errorWith(json::array({{1, 5, 2}})),
            field + "[0]: must have a moment for each number of runs");
  EXPECT_EQ(errorWith({{2, 5}, {4, 0}}),
            field + ": has more runs than the class");
  EXPECT_EQ(errorWith({{1, 5}, {1, 0}}),
            "file: classes[0].instructions[2]: 'moments' of the class has "
            "fewer runs");
}

// One forward, one backward: groups of two turns differ by the same.
TEST(ReadFunctionTest, MomentsAreWrittenInGroups) {
  json manifest = productManifest();
  json &rankClass = manifest["classes"][0];
  rankClass["instructions"] = json::array();
  rankClass["moments"] = json::array();
  for (int moment = 0; moment < 40; ++moment) {
    for (int i : {0, 1, 2})
      rankClass["instructions"].push_back({{"run", i}});
    rankClass["moments"].push_back({1, moment + 3});
    rankClass["moments"].push_back({2, moment});
  }
  Program program = readProgram(manifest.dump(), "file");
  std::string text = writeProgram(program).manifest;
  EXPECT_EQ(json::parse(text)["classes"][0]["moments"][1],
            json::array({1, 4, 2, 1}));
  EXPECT_EQ(readProgram(text, "again"), program);
}

TEST(ReadFunctionTest, RunsNameConsecutiveBuffersByTheirFirst) {
  const std::string path = "/classes/0/runs/0/operands",
                    field = "file: classes[0].runs[0].operands";
  json manifest = productManifest();
  manifest[json::json_pointer(path)] = json::array({json::array({6, 2})});
  EXPECT_EQ(readProgram(manifest.dump(), "file"),
            readProgram(productManifest().dump(), "file"));
  EXPECT_EQ(errorOf(path, json::array({json::array({6, 1})})),
            field + ": the function has 2 operands");
  EXPECT_EQ(errorOf(path, {json::array({5, 2}), 7}),
            field + ": the function has 2 operands");
  EXPECT_EQ(errorOf(path, json::array({json::array({6, 3})})),
            field + "[0][1]: must be an integer from 1 to 2");
  EXPECT_EQ(errorOf(path, json::array({json::array({6, 0})})),
            field + "[0][1]: must be an integer from 1 to 2");
  EXPECT_EQ(errorOf(path, json::array({json::array({8, 1})})),
            field + "[0][0]: must be an integer from 0 to 7");
  EXPECT_EQ(errorOf(path, json::array({json::array({6})})),
            field + "[0]: must be [first buffer, number of buffers]");
}

TEST(ReadFunctionTest, WhatARunWritesMayBeWritten) {
  const std::string path = "/classes/0/runs/0",
                    field = "file: classes[0].runs[0]";
  EXPECT_EQ(errorOf(path + "/results/0", 7),
            field + ".results[0]: is a constant and cannot be written");
  EXPECT_EQ(errorOf(path + "/results/0", 6),
            field + ".results[0]: is an argument that no result is an alias "
                    "of: it cannot be written");
  // An operand that the function writes.
  json copy = {{"copy", {3, 1}}};
  EXPECT_EQ(errorOf("/functions/0/instructions/2", copy),
            field + ".operands[1]: is a constant and cannot be written");
}

TEST(ReadFunctionTest, WhatMustBeApartIsApartInEachRun) {
  const std::string path = "/classes/0/runs/1",
                    field = "file: classes[0].runs[1]";
  const std::string why =
      " overlap, and the function writes one where it uses the other";
  // It reads its operands before it writes its result: these may overlap.
  EXPECT_EQ(errorOf(path + "/results/0", 0), "");
  json manifest = productManifest();
  manifest["classes"][0]["buffers"][1]["arena"] = 444;
  EXPECT_EQ(errorOf(manifest), field + ": result 0 and local 1" + why);
  manifest["classes"][0]["locals"]["0"] = json::array({{448, 384}});
  EXPECT_EQ(errorOf(manifest), field + ": result 0 and local 1" + why);
  manifest = productManifest();
  manifest["classes"][0]["buffers"][0]["arena"] = 384;
  EXPECT_EQ(errorOf(manifest), field + ": operand 0 and local 0" + why);
}

TEST(ReadFunctionTest, PartsOfArguments) {
  const std::string path = "/classes/0/buffers/6",
                    field = "file: classes[0].buffers[6]";
  EXPECT_EQ(errorOf(path + "/offset", 128), "");
  EXPECT_EQ(errorOf(path + "/offset", 132),
            field + ".offset: the buffer's 64 bytes reach out of the 192 of "
                    "arg0 on rank 0");
  EXPECT_EQ(errorOf(path + "/offset", 63),
            field + ".offset: must be a multiple of the element size");
  EXPECT_EQ(errorOf(path + "/offset", INT64_MAX),
            field + ".offset: must be an integer from 0 to " +
                std::to_string(int64_t(1) << 60));
  EXPECT_EQ(errorWithout(path, "offset"),
            field + ".type: has 16 elements, the box of arg0 on rank 0 has "
                    "48");
  // The first part stays a part when it is written.
  json manifest = productManifest();
  manifest["classes"][0]["buffers"][6]["offset"] = 0;
  Program program = readProgram(manifest.dump(), "file");
  EXPECT_EQ(readProgram(writeProgram(program).manifest, "again"), program);
}

} // namespace
