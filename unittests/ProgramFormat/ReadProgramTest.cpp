//===- ReadProgramTest.cpp - What is refused, and where it is ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/ReadProgram.h"
#include "whale/ProgramFormat/WriteProgram.h"

#include "Manifests.h"
#include "whale/ProgramFormat/Error.h"

#include <gtest/gtest.h>

using namespace whale::format;
using namespace whale::format::test;
using nlohmann::json;

namespace {

/// Empty if the text is a program.
std::string errorOf(const std::string &text) {
  try {
    readProgram(text, "file");
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

bool refused(const std::string &text) { return !errorOf(text).empty(); }

/// The error of the rich program with another value at a path.
std::string errorOf(const std::string &path, const json &value) {
  json manifest = richManifest();
  manifest[json::json_pointer(path)] = value;
  return errorOf(manifest.dump());
}

TEST(ReadProgramTest, ErrorsNameTheField) {
  EXPECT_EQ(errorOf(richManifest().dump()), "");
  EXPECT_EQ(errorOf("[]"), "file: must be an object");
  EXPECT_EQ(errorOf("{}"), "file: has no field 'format'");
  EXPECT_EQ(errorOf("/version", 2),
            "file: version: the program has version 2, this runtime reads up "
            "to version 1: it needs a newer Whale");
  EXPECT_EQ(errorOf("/ranks", json::array()), "file: ranks: must not be empty");
  EXPECT_EQ(errorOf("/kernels", "a/b"),
            "file: kernels: must be the name of a file, without folders");
  EXPECT_EQ(errorOf("/hashes", json::object()),
            "file: hashes: has no field 'kernels.so'");
  EXPECT_EQ(errorOf("/arguments/1/boxes/2", {{2, 0, 0}, {3, 2, 4}}),
            "file: arguments[1].boxes[2]: reaches out of the view [4, 2, 4]");
  EXPECT_EQ(errorOf("/arguments/1/boxes/2", nullptr),
            "file: arguments[1].boxes: must cover the whole view [4, 2, 4]");
  EXPECT_EQ(errorOf("/classes/0/lines", {7}),
            "file: classes[0].lines[0]: must be a string");
  EXPECT_EQ(errorOf("/classes/0/instructions/0/lines", {0}),
            "file: classes[0].instructions[0].lines[0]: must be an integer "
            "from 0 to -1");
  EXPECT_EQ(errorOf("/classes/1/ranks", {2, 3}),
            "file: classes[1].ranks: must list the ranks whose class this is: "
            "[3]");
  EXPECT_EQ(errorOf("/classes/0/arena_bytes", 440),
            "file: classes[0].buffers[14].offset: the buffer's 64 bytes reach "
            "out of the arena of 440");
  EXPECT_EQ(errorOf("/classes/0/buffers/6/values/1/0", 1.5),
            "file: classes[0].buffers[6].values[1][0]: must be an integer");
  EXPECT_EQ(errorOf("/classes/0/instructions/5/body/0/buffers/1", 99),
            "file: classes[0].instructions[5].body[0].buffers[1]: must be an "
            "integer from 0 to 14");
  EXPECT_EQ(errorOf("/classes/0/instructions/5/body/0/extent", 2),
            "file: classes[0].instructions[5].body[0].extent: the kernel has "
            "extent 1");
  EXPECT_EQ(errorOf("/classes/1/instructions/2/channel", 3),
            "file: classes[1].instructions[2].channel: there is no such "
            "channel");
  EXPECT_EQ(errorOf("/channels/2/participants", {0, 1, 2}),
            "file: channels.2.cells.0[3].from[0][0]: 3 is no participant");
  EXPECT_EQ(errorOf("/channels/2/cells/1/0/dst/0/0", 1),
            "file: channels.2.cells.1: cells overlap");
  EXPECT_EQ(errorOf("/channels/2/cells/1/0/from/0/1/1", 1),
            "file: channels.2.cells.1[0]: reaches out of the buffer [1, 2, 4] "
            "of rank 0");
  EXPECT_EQ(errorOf("/channels/7", {{"same_as", 3}}),
            "file: channels.7.same_as: channel 3 is not described");
  EXPECT_EQ(errorOf("/channels/7", {{"same_as", 7}}),
            "file: channels.7.same_as: channel 7 is not described");
  EXPECT_EQ(errorOf("/channels/7", {{"same_as", 2}}),
            "file: channels.2: rank 0 is a participant, but its class does not "
            "use it");
}

TEST(ReadProgramTest, LeavesToOthersWhatIsInFiles) {
  // The kernels, the size of the constants, the functions of the runtime.
  EXPECT_EQ(errorOf("/kernels", nullptr), "");
  EXPECT_EQ(errorOf("/constants", nullptr), "");
  EXPECT_EQ(errorOf("/classes/0/buffers/4/offset", 1 << 20), "");
  EXPECT_EQ(errorOf("/classes/0/instructions/10/function", "other"), "");
  EXPECT_EQ(errorOf("/target", "none"), "");
}

TEST(ReadProgramTest, ThePlanKeepsItsOrder) {
  std::string text = richManifest().dump(1);
  text.insert(text.rfind('}'), R"(, "plan" : [ {"b": "} \" ,", "a" :1} ] )");
  EXPECT_EQ(readProgram(text, "file").plan, R"([{"b":"} \" ,","a":1}])");
  json manifest = richManifest();
  manifest.erase("plan");
  EXPECT_EQ(readProgram(manifest.dump(), "file").plan, "null");
}

TEST(ReadProgramTest, NumbersFitInTheirType) {
  json buffer = {{"space", "rank_constant"},
                 {"dtype", "f16"},
                 {"shape", json::array()},
                 {"bytes", 2},
                 {"values", {{1}, {1e6}, {1}}}};
  EXPECT_EQ(errorOf("/classes/0/buffers/6", buffer),
            "file: classes[0].buffers[6].values[1][0]: does not fit in its "
            "element type");
}

TEST(ReadProgramTest, CostsAreRounded) {
  json manifest = richManifest();
  json &first = manifest["classes"][0]["instructions"][0];
  first["flops"] = 1e30;
  first["bytes"] = 2.75;
  Program program = readProgram(manifest.dump(), "file");
  const Instruction &instruction = program.classes[0].instructions[0];
  EXPECT_EQ(instruction.flops, INT64_MAX);
  EXPECT_EQ(instruction.bytes, 3);
}

TEST(ReadProgramTest, SharesWhatIsToldOnce) {
  json manifest = richManifest();
  json &cells = manifest["channels"]["2"]["cells"];
  cells["1"] = 0;
  Program program = readProgram(manifest.dump(), "file");
  const Collective &gather = *program.channels.at(2);
  EXPECT_EQ(gather.cells.at(0).get(), gather.cells.at(1).get());
  EXPECT_NE(gather.cells.at(0).get(), gather.cells.at(2).get());
  EXPECT_EQ(*gather.cells.at(0), *gather.cells.at(2));
  cells["2"] = 1;
  EXPECT_EQ(errorOf(manifest.dump()),
            "file: channels.2.cells.2: rank 1 has no list");
}

TEST(ReadProgramTest, MovesWhatIsToldOnce) {
  json manifest = richManifest();
  json &cells = manifest["channels"]["2"]["cells"];
  for (int peer = 0; peer < 4; ++peer)
    cells["0"][peer]["dst"][1] = {1, 1, 4};
  cells["1"] = {{"like", 0}, {"moved", {0, 1, 0}}};
  cells["2"] = 0;
  Program program = readProgram(manifest.dump(), "file");
  const Collective &exchange = *program.channels.at(2);
  for (int peer = 0; peer < 4; ++peer) {
    const Cell &first = (*exchange.cells.at(0))[peer];
    const Cell &second = (*exchange.cells.at(1))[peer];
    EXPECT_EQ(first.from[0].start, (Shape{0, 0, 0}));
    EXPECT_EQ(second.from[0].start, (Shape{0, 1, 0}));
    EXPECT_EQ(first.from[0].peer, second.from[0].peer);
    EXPECT_EQ(first.dstStart, second.dstStart);
    EXPECT_EQ(first.size, second.size);
  }
  // It is written in the same way, whoever made the lists.
  json written = json::parse(writeProgram(program));
  EXPECT_EQ(written["channels"]["2"]["cells"], cells);
  EXPECT_EQ(readProgram(writeProgram(program), "file"), program);

  auto errorWith = [&](json entry) {
    cells["1"] = std::move(entry);
    return errorOf(manifest.dump());
  };
  EXPECT_EQ(errorWith({{"like", 0}, {"moved", {0, 2, 0}}}),
            "file: channels.2.cells.1: cell 0: reaches out of the buffer "
            "[1, 2, 4] of rank 0");
  EXPECT_EQ(errorWith({{"like", 0}, {"moved", {0, -1, 0}}}),
            "file: channels.2.cells.1.moved: moves a start out of its buffer");
  EXPECT_EQ(errorWith({{"like", 0}, {"moved", {0, 1}}}),
            "file: channels.2.cells.1.moved: must have 3 dimensions");
  EXPECT_EQ(errorWith({{"like", 2}, {"moved", {0, 1, 0}}}),
            "file: channels.2.cells.1.like: rank 2 has no list");
}

// The parser would take it for the end, and what comes after it for nothing.
TEST(ReadProgramTest, ZeroBytes) {
  using namespace std::string_literals;
  std::string text = richManifest().dump();
  EXPECT_EQ(errorOf(text + "\0\"u"s), "file: not valid JSON: byte " +
                                          std::to_string(text.size()) +
                                          " is zero");
}

TEST(ReadProgramTest, EveryCutOfTheManifest) {
  std::string text = richManifest().dump();
  for (size_t size = 0; size < text.size(); size += 7)
    EXPECT_TRUE(refused(text.substr(0, size)));
}

TEST(ReadProgramTest, DeepNesting) {
  json nested = json::array();
  for (int i = 0; i < 100; ++i)
    nested = json::array(
        {{{"op", "case"}, {"index", 9}, {"branches", json::array({nested})}}});
  json changed = richManifest();
  changed["classes"][0]["instructions"] = nested;
  EXPECT_TRUE(refused(changed.dump()));
  EXPECT_TRUE(refused(std::string(1'000'000, '[')));
  // The plan may hold anything, but not that deep.
  changed = richManifest();
  changed["plan"] = "here";
  std::string text = changed.dump();
  text.replace(text.find("\"here\""), 6,
               std::string(1'000'000, '[') + std::string(1'000'000, ']'));
  EXPECT_TRUE(refused(text));
}

} // namespace
