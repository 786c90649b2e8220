//===- CheckSpacesTest.cpp - State in the memory of the host --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program whose state is in the memory of the host, with copies from and to
// there, and the same with one thing changed: what only copies may use, their
// directions, sizes and waits. A failure means that a program is run whose
// device reads memory that it cannot reach, or is copied to meanwhile.
//
//===----------------------------------------------------------------------===//

#include "Manifests.h"

#include "whale/ProgramFormat/CheckSpaces.h"
#include "whale/ProgramFormat/CheckValues.h"
#include "whale/ProgramFormat/ReadProgram.h"
#include "whale/ProgramFormat/WriteProgram.h"

#include "gtest/gtest.h"

using nlohmann::json;

namespace whale::format::test {
namespace {

json copyChannel(const char *kind) {
  return {{"kind", kind},
          {"participants", {0, 1}},
          {"parts", json::array({{{"dtype", "f32"}}})}};
}

/// Both ranks fetch their state, copy it to other memory, and bring it back.
json hostManifest() {
  json root = emptyManifest(2);
  json state = replicated("arg0", "f32", {4}, 2);
  state["donated"] = true;
  state["fed_by"] = 0;
  state["space"] = "host";
  json next = replicated("result0", "f32", {4}, 2);
  next["alias"] = 0;
  next["space"] = "host";
  root["arguments"] = json::array({state});
  root["results"] = json::array({next});
  root["channels"] = {{"0", copyChannel("host_to_device")},
                      {"1", copyChannel("device_to_host")}};
  json &rankClass = root["classes"][0];
  rankClass["arena_bytes"] = 128;
  rankClass["buffers"] = {shardBuffer("argument", 0, "f32", {4}),
                          shardBuffer("result", 0, "f32", {4}),
                          arenaBuffer(0, "f32", {4}),
                          arenaBuffer(64, "f32", {4})};
  rankClass["instructions"] = {{{"start", 0}, {"src", {0}}, {"dst", {2}}},
                               {{"wait", 0}},
                               {{"copy", {2, 3}}},
                               {{"start", 1}, {"src", {3}}, {"dst", {1}}},
                               {{"wait", 1}}};
  return root;
}

/// The error of the program with another value in one place.
std::string errorWith(const char *pointer, const json &value) {
  json root = hostManifest();
  root[json::json_pointer(pointer)] = value;
  return errorOf(root.dump());
}

constexpr const char *list = "/classes/0/instructions/";
std::string at(const std::string &rest) { return list + rest; }

TEST(CheckSpaces, ReadsAndWritesState) {
  Program program = readProgram(hostManifest().dump(), "file");
  EXPECT_TRUE(program.arguments[0].isInHost);
  EXPECT_TRUE(program.results[0].isInHost);
  EXPECT_FALSE(checkValues(program));
  const RankClass &rankClass = program.classes[0];
  EXPECT_TRUE(isInHost(program, rankClass.buffers[0]));
  EXPECT_FALSE(isInHost(program, rankClass.buffers[2]));
  Program again = readProgram(writeProgram(program).manifest, "file");
  EXPECT_TRUE(program == again);
}

TEST(CheckSpaces, OnlyCopiesUseTheHost) {
  EXPECT_EQ(errorWith(at("2/copy").c_str(), {0, 3}),
            "file: classes[0].instructions[2]: buffer 0 is in the host's "
            "memory, which only copies between host and device use");
  EXPECT_EQ(errorWith(at("2/copy").c_str(), {2, 1}),
            "file: classes[0].instructions[2]: buffer 1 is in the host's "
            "memory, which only copies between host and device use");
}

TEST(CheckSpaces, CopiesGoWhereTheirKindSays) {
  EXPECT_EQ(errorWith(at("0/src").c_str(), {3}),
            "file: classes[0].instructions[0]: buffer 3 is in the device's "
            "memory, and must be in its host's");
  EXPECT_EQ(errorWith(at("3/dst").c_str(), {2}),
            "file: classes[0].instructions[3]: buffer 2 is in the device's "
            "memory, and must be in its host's");
  EXPECT_EQ(errorWith("/channels/1/kind", "host_to_device"),
            "file: classes[0].instructions[3]: buffer 3 is in the device's "
            "memory, and must be in its host's");
}

TEST(CheckSpaces, WhatIsFedStaysWhereItIs) {
  EXPECT_EQ(errorWith("/results/0/space", "device"),
            "file: results[0].alias: arg0 is in another memory");
  EXPECT_EQ(errorWith("/arguments/0/space", "disk"),
            "file: arguments[0].space: must be 'device' or 'host'");
  json root = hostManifest();
  root["results"][0].erase("alias");
  root["results"][0].erase("space");
  EXPECT_EQ(errorOf(root.dump()), "file: arguments[0].fed_by: result0 is in "
                                  "another memory");
}

TEST(CheckSpaces, CopiesAreOfWholeBuffers) {
  EXPECT_EQ(errorWith("/channels/0/parts/0/cells", json::object()),
            "file: channels.0.parts[0]: a copy between host and device has no "
            "cells");
  EXPECT_EQ(errorWith("/channels/0/parts/0/reduction", "sum"),
            "file: channels.0.parts[0].reduction: a copy has none");
  json root = hostManifest();
  json &parts = root["channels"]["0"]["parts"];
  parts.push_back(parts[0]);
  EXPECT_EQ(errorOf(root.dump()), "file: channels.0.parts: a copy between host "
                                  "and device has one");
  root = hostManifest();
  root["communicators"] = {{0, 1}};
  root["channels"]["0"]["communicators"] = json::array({0});
  EXPECT_EQ(errorOf(root.dump()), "file: channels.0.communicators: ranks "
                                  "exchange nothing in a copy");
  root = hostManifest();
  root["classes"][0]["buffers"][2] = arenaBuffer(0, "f32", {3});
  EXPECT_EQ(errorOf(root.dump()), "file: classes[0].instructions[2]: src and "
                                  "dst have different sizes");
  EXPECT_EQ(errorWith(at("0/dst").c_str(), nullptr),
            "file: channels.0: rank 0 must have a src and a dst of one size");
}

/// What a copy uses is kept from instructions, and from other transfers.
TEST(CheckSpaces, CopiesAreWaitedFor) {
  auto errorOfOrder = [](std::vector<size_t> order) {
    json root = hostManifest();
    json &instructions = root["classes"][0]["instructions"];
    json moved = json::array();
    for (size_t i : order)
      moved.push_back(instructions[i]);
    instructions = moved;
    return errorOf(root.dump());
  };
  EXPECT_EQ(errorOfOrder({0, 1, 2, 3, 4}), "");
  EXPECT_EQ(errorOfOrder({0, 2, 1, 3, 4}),
            "file: classes[0].instructions[1]: buffer 2: transfer 0 may still "
            "go on, and this instruction reads what it receives into");
  EXPECT_EQ(errorOfOrder({0, 1, 3, 2, 4}),
            "file: classes[0].instructions[3]: buffer 3: transfer 1 may still "
            "go on, and this instruction writes what it sends");
  // The new value must not overwrite an old one that is still read.
  EXPECT_EQ(errorOfOrder({0, 3, 1, 2, 4}),
            "file: classes[0].instructions[1]: buffer 1: transfer 0 may still "
            "go on, and this instruction writes what it sends");
  EXPECT_NE(errorOfOrder({0, 1, 2, 3}), "");
}

} // namespace
} // namespace whale::format::test
