//===- ShortListsTest.cpp - What is alike is written once -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/WriteProgram.h"

#include "Manifests.h"
#include "whale/ProgramFormat/ReadProgram.h"

#include <gtest/gtest.h>

using namespace whale::format;
using namespace whale::format::test;
using nlohmann::json;

namespace {

TEST(ShortListsTest, ListsAreShortInFiles) {
  Program program = readProgram(richManifest().dump(), "rich");
  RankClass &rankClass = program.classes[0];
  BufferInfo buffer = rankClass.buffers[7];
  std::vector<Instruction> copies;
  for (int64_t i = 0; i < 20; ++i) {
    buffer.offset = 512 + 64 * i * i;
    rankClass.buffers.push_back(buffer);
    copies.emplace_back().operation = Copy{7, BufferIndex(15 + i)};
  }
  rankClass.arenaBytes = 512 + 64 * 400;
  rankClass.instructions.insert(rankClass.instructions.begin(), copies.begin(),
                                copies.end());
  EXPECT_EQ(writeProgram(program).manifest.find("\"rows\""), std::string::npos);
  ProgramText parts = writeProgram(program, {}, /*mostBytes=*/100);
  json written = json::parse(parts.tables.at("classes-0.json"))[0];
  json rows = written["instructions"]["rows"];
  EXPECT_EQ(rows[0], json::array({0}));
  EXPECT_EQ(rows[1], json::array({19, json::array({0, 0, 1})}));
  EXPECT_EQ(written["instructions"]["elements"][0], json({{"copy", {7, 15}}}));
  // Squares: differences of 1, 3, 5, ... times 64.
  rows = written["buffers"]["rows"];
  EXPECT_EQ(rows.back()[1], json(64 * (2 * 19 - 1)));
  auto readPart = [&](const std::string &name) {
    return parts.tables.at(name);
  };
  EXPECT_EQ(readProgram(parts.manifest, "parts", readPart), program);

  // Differences of these don't fit.
  for (BufferInfo &info : rankClass.buffers)
    if (info.space == Space::RankConstant) {
      info.dtype = DType::I64;
      info.shape = {8};
      info.bytes = 64;
      info.values.assign(3, std::vector<uint8_t>(64, 0x7f));
    }
  parts = writeProgram(program, {}, /*mostBytes=*/100);
  EXPECT_EQ(json::parse(parts.tables.at("classes-0.json"))[0]["buffers"].size(),
            35u);
}

TEST(ShortListsTest, EqualLayoutsAreWrittenOnce) {
  json manifest = emptyManifest(17);
  manifest["arguments"] = {replicated("arg0", "f32", {2}, 17),
                           replicated("arg1", "f32", {2}, 17)};
  manifest["arguments"][1]["boxes"] = "arg0";
  Program program = readProgram(manifest.dump(), "file");
  EXPECT_EQ(
      json::parse(writeProgram(program).manifest)["arguments"][1]["boxes"],
      "arg0");
}

} // namespace
