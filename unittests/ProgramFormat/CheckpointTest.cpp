//===- CheckpointTest.cpp - The manifest of a checkpoint --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Checkpoint.h"
#include "whale/System/Error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace whale::format;
using nlohmann::json;

namespace {

CheckpointManifest example() {
  CheckpointManifest manifest;
  manifest.step = 12;
  manifest.extra = R"({"row":3,"text":"a \\ and \"b\""})";
  manifest.tree = R"("PyTreeDef")";
  manifest.files = {{"shard-0.safetensors", 200}, {"shard-1.safetensors", 80}};
  manifest.leaves = {
      {"w",
       DType::F32,
       {4, 6},
       "",
       {4, 2, 3},
       {{0, 100, {{0, 0, 0}, {4, 1, 3}}, {"0123456789abcdef"}},
        {1, 32, {{0, 1, 0}, {4, 1, 3}}, {"0000000000000000"}}}},
      {"key", DType::UI32, {2}, "fry", {2}, {{0, 8, {{0}, {2}}, {"1"}}}},
      {"none", DType::F16, {0, 3}, "", {0, 3}, {}}};
  return manifest;
}

std::string errorOf(const std::string &path, const json &value) {
  json root = json::parse(writeCheckpoint(example()));
  root[json::json_pointer(path)] = value;
  try {
    readCheckpoint(root.dump(), "m.json");
  } catch (const whale::system::Error &error) {
    return error.what();
  }
  return "";
}

TEST(CheckpointManifestTest, ReadsWhatItWrites) {
  EXPECT_EQ(readCheckpoint(writeCheckpoint(example()), "m.json"), example());
}

TEST(CheckpointManifestTest, ErrorsNameTheField) {
  EXPECT_EQ(errorOf("/version", 2),
            "m.json: version: the checkpoint has version 2, this Whale reads "
            "version 1");
  EXPECT_EQ(errorOf("/format", "whale"),
            "m.json: format: must be 'whale-checkpoint'");
  EXPECT_EQ(errorOf("/files/0/name", "../x"),
            "m.json: files[0].name: must be the name of a file, without "
            "folders");
  EXPECT_EQ(errorOf("/files/1/bytes", 79),
            "m.json: leaves[0].pieces[1]: reaches out of shard-1.safetensors");
  EXPECT_EQ(errorOf("/leaves/0/view", {4, 5}),
            "m.json: leaves[0].view: must have as many elements as the shape");
  EXPECT_EQ(errorOf("/leaves/1/name", "w"),
            "m.json: leaves[1].name: is the name of an earlier leaf, too");
  EXPECT_EQ(errorOf("/leaves/1/pieces/0/checksums", json::array()),
            "m.json: leaves[1].pieces[0].checksums: must have one for each "
            "4194304 of 8 bytes");
  EXPECT_EQ(errorOf("/leaves/1/pieces/0/box", {{1}, {2}}),
            "m.json: leaves[1].pieces[0].box: reaches out of the view");
}

TEST(CheckpointManifestTest, EachElementIsThereOnce) {
  std::string all = "m.json: leaves[0].pieces: are not 'w', each element once";
  const std::string box = "/leaves/0/pieces/1/box";
  EXPECT_EQ(errorOf(box, {{0, 0, 0}, {4, 1, 3}}), all);
  EXPECT_EQ(errorOf(box, {{0, 1, 0}, {3, 1, 3}}), all);
  EXPECT_EQ(errorOf("/leaves/0/pieces", json::array()), all);
}

TEST(CheckpointManifestTest, EveryCutOfTheText) {
  std::string text = writeCheckpoint(example());
  for (size_t size = 0; size + 2 < text.size(); size += 5)
    EXPECT_THROW(readCheckpoint(text.substr(0, size), "m.json"),
                 whale::system::Error);
}

} // namespace
