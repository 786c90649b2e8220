//===- ReadChannelsTest.cpp - What ranks exchange -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Channels as they are read: several tensors in one, what several ranks or
// channels have alike, where starts come from, and wrong tables, each of which
// an error refuses that names its path.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/ReadProgram.h"

#include "Manifests.h"
#include "whale/System/Error.h"

#include <gtest/gtest.h>

using namespace whale::format;
using namespace whale::format::test;
using nlohmann::json;

namespace {

/// The rich program with a channel in which rank 3 sends all others a matrix
/// and an integer.
json manifestWithParts() {
  json manifest = richManifest();
  json matrix = {{"dtype", "f32"}}, integer = {{"dtype", "i32"}};
  for (const char *rank : {"0", "1", "2"}) {
    matrix["cells"][rank] =
        json::array({{{"dst", {{0, 0}, {1, 4}}}, {"from", {{3, {2, 0}}}}},
                     {{"dst", {{1, 0}, {3, 4}}}, {"from", {{3, {1, 0}}}}}});
    integer["cells"][rank] =
        json::array({{{"dst", {json::array(), json::array()}},
                      {"from", json::array({{3, json::array()}})}}});
  }
  manifest["channels"]["3"] = {{"kind", "send_recv"},
                               {"participants", {0, 1, 2, 3}},
                               {"communicators", json::array({0})},
                               {"parts", {matrix, integer}}};
  json &classes = manifest["classes"];
  classes[0]["instructions"].push_back({{"start", 3}, {"dst", {14, 9}}});
  classes[1]["instructions"].push_back({{"start", 3}, {"src", {14, 9}}});
  for (json &rankClass : classes)
    rankClass["instructions"].push_back({{"wait", 2}});
  return manifest;
}

TEST(ReadChannelsTest, ChannelsHaveSeveralParts) {
  const json manifest = manifestWithParts();
  Program program = readProgram(manifest.dump(), "file");
  const Collective &channel = *program.channels.at(3);
  ASSERT_EQ(channel.parts.size(), 2u);
  EXPECT_EQ(channel.parts[0].srcShapes.at(3), Shape({4, 4}));
  EXPECT_EQ(channel.parts[1].dtype, DType::I32);
  EXPECT_EQ(channel.parts[1].dstShapes.at(2), Shape());

  auto errorAt = [&](const std::string &path, const json &value) {
    json changed = manifest;
    changed[json::json_pointer(path)] = value;
    return errorOf(changed.dump());
  };
  const std::string cells = "/channels/3/parts/0/cells/1";
  json list = manifest[json::json_pointer(cells)];
  // A row is dropped, doubled, or shifted.
  json dropped = list, doubled = list, shifted = list;
  dropped.erase(0);
  doubled.push_back(list[0]);
  shifted[0]["dst"][0][0] = 1;
  EXPECT_EQ(errorAt(cells, dropped),
            "file: channels.3.parts[0].cells.1: cells fill 12 of the 16 "
            "elements of dst");
  for (const json &some : {doubled, shifted})
    EXPECT_EQ(errorAt(cells, some),
              "file: channels.3.parts[0].cells.1: cells overlap");
  EXPECT_EQ(errorAt(cells + "/0/from/0/1/0", 4),
            "file: channels.3.parts[0].cells.1[0]: reaches out of the buffer "
            "[4, 4] of rank 3");
  EXPECT_EQ(errorAt("/channels/3/parts/1/cells/1", json::array()),
            "file: channels.3.parts[1].cells.1: cells fill 0 of the 1 elements "
            "of dst");

  EXPECT_EQ(errorAt("/channels/3/parts", json::array()),
            "file: channels.3.parts: must have one or more tensors");
  json reduced = {{"dtype", "f32"}, {"reduction", "sum"}};
  EXPECT_EQ(errorAt("/channels/1/parts", {reduced, reduced}),
            "file: channels.1.parts: an all-reduce has one");
  EXPECT_EQ(errorAt("/channels/3/parts/1/dtype", "i8"),
            "file: classes[0].instructions[14].dst[1]: must have the channel's "
            "dtype i8");
  const std::string start = "/classes/0/instructions/14";
  EXPECT_EQ(errorAt(start + "/dst", json::array({14})),
            "file: classes[0].instructions[14].dst: must have an entry for "
            "each of the channel's 2 parts");
  EXPECT_EQ(errorAt(start + "/dst/1", nullptr),
            "file: channels.3.parts[1].cells.0: rank 0 has no dst buffer");
  EXPECT_EQ(errorAt(start + "/src", {14, nullptr}),
            "file: classes[0].instructions[14]: src and dst overlap");
  json alike = manifest;
  alike["channels"]["3"]["parts"][1] = alike["channels"]["3"]["parts"][0];
  for (int i : {0, 1})
    alike["classes"][i]["instructions"][14][i ? "src" : "dst"] = {14, 14};
  EXPECT_EQ(errorOf(alike.dump()),
            "file: classes[0].instructions[14]: two of dst overlap");
}

TEST(ReadChannelsTest, StartsComeFromWhereTheirChannelDoes) {
  json manifest = richManifest();
  manifest["channels"]["1"]["origin"] = 1;
  json &instructions = manifest["classes"][0]["instructions"];
  auto origin = [&] {
    Program program = readProgram(manifest.dump(), "file");
    return program.classes[0].instructions[1].origin;
  };
  EXPECT_EQ(origin(), 1);
  instructions[1]["origin"] = 0;
  EXPECT_EQ(origin(), 0);
  instructions[1]["origin"] = nullptr;
  EXPECT_EQ(origin(), std::nullopt);
  manifest["channels"]["1"]["origin"] = 2;
  EXPECT_EQ(errorOf(manifest.dump()),
            "file: channels.1.origin: must be an integer from 0 to 1");
}

TEST(ReadChannelsTest, SharesWhatIsToldOnce) {
  json manifest = richManifest();
  json &cells = manifest["channels"]["2"]["parts"][0]["cells"];
  cells["1"] = 0;
  Program program = readProgram(manifest.dump(), "file");
  const Collective &gather = *program.channels.at(2);
  EXPECT_EQ(gather.parts[0].cells.at(0).get(),
            gather.parts[0].cells.at(1).get());
  EXPECT_NE(gather.parts[0].cells.at(0).get(),
            gather.parts[0].cells.at(2).get());
  EXPECT_EQ(*gather.parts[0].cells.at(0), *gather.parts[0].cells.at(2));
  cells["2"] = 1;
  EXPECT_EQ(errorOf(manifest.dump()),
            "file: channels.2.parts[0].cells.2: rank 1 has no list");
}

} // namespace
