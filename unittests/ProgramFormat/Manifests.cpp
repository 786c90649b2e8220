//===- Manifests.cpp - Hand-written manifests for tests ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Manifests for the tests of the program format and of the runtime, as JSON,
// which a test changes in one place. Their numbers are written by hand, so that
// the compiler is no part of these tests; a new version of the format has to be
// followed here.
//
// richManifest has four ranks in two classes, and each kind of instruction,
// buffer and parameter that a processor needs, all with valid sizes and
// offsets. Tests refer to its instructions and buffers by number.
//
//===----------------------------------------------------------------------===//

#include "Manifests.h"

#include "whale/ProgramFormat/ReadProgram.h"
#include "whale/System/Error.h"

#include "whale/ProgramFormat/Program.h"

using nlohmann::json;

namespace whale::format::test {

json emptyManifest(size_t ranks) {
  json root = {{"format", "whale"},  {"version", 11},
               {"target", "cpu"},    {"name", "test"},
               {"kernels", nullptr}, {"constants", nullptr}};
  json &rankClass = root["classes"][0];
  for (size_t i = 0; i < ranks; ++i) {
    root["ranks"].push_back({{"device", i}, {"class", 0}, {"kind", "cpu"}});
    rankClass["ranks"].push_back(i);
  }
  root["arguments"] = root["results"] = json::array();
  root["channels"] = json::object();
  rankClass["arena_bytes"] = 0;
  rankClass["buffers"] = rankClass["instructions"] = json::array();
  return root;
}

json replicated(const std::string &name, const std::string &dtype,
                const std::vector<int64_t> &shape, size_t ranks) {
  json boxes;
  for (size_t i = 0; i < ranks; ++i)
    boxes.push_back({std::vector<int64_t>(shape.size(), 0), shape});
  return {{"name", name},     {"label", ""},          {"dtype", dtype},
          {"shape", shape},   {"view", shape},        {"boxes", boxes},
          {"role", "input"},  {"batch_dim", nullptr}, {"fed_by", nullptr},
          {"donated", false}, {"alias", nullptr}};
}

json arenaBuffer(int64_t offset, const std::string &dtype,
                 const std::vector<int64_t> &shape) {
  return shardBuffer("arena", offset, dtype, shape);
}

json shardBuffer(const std::string &space, int64_t where,
                 const std::string &dtype, const std::vector<int64_t> &shape) {
  return {{space, where}, {"type", tensorType(*parseDType(dtype), shape)}};
}

json richManifest() {
  json root = emptyManifest(4);
  root["kernels"] = "kernels.so";
  root["constants"] = "constants.bin";
  root["plan"] = {{"task_graphs", json::array()}};
  root["origins"] = {{{"label", "out"}},
                     {{"label", "keep"}, {"lines", {"a.py:1", "a.py:2"}}}};
  root["task_graphs"] = {{{"name", "encoder"}}};
  root["kernel_signatures"] = {
      {"add", {{"inputs", 2}, {"bytes", {64, 64, 64}}, {"extent", 16}}},
      {"scale", {{"inputs", 1}, {"bytes", {64, 64}}, {"extent", 16}}},
      {"less", {{"inputs", 2}, {"bytes", {4, 4, 1}}, {"extent", 1}}},
      {"increment", {{"inputs", 1}, {"bytes", {4, 4}}, {"extent", 1}}}};
  for (const char *name : {"scale", "increment"})
    root["kernel_signatures"][name]["inplace"] = {{0, 1}};
  // Gives its operand back, by way of a local that held another sum.
  json constant = shardBuffer("constant", 0, "f32", {4, 4});
  root["functions"] = {
      {{"operands", 1},
       {"results", 1},
       {"buffers",
        {shardBuffer("operand", 0, "f32", {4, 4}),
         shardBuffer("result", 0, "f32", {1, 4, 4, 1}),
         shardBuffer("local", 0, "f32", {4, 4}), constant}},
       {"instructions",
        {{{"kernel", "add"}, {"buffers", {0, 3, 2}}, {"extent", 16}},
         {{"copy", {0, 2}}},
         {{"copy", {2, 1}}, {"origin", 0}}}}}};
  // State [4, 4] on all; a batch [8, 4] in rows of two for each rank.
  json state = replicated("arg0", "f32", {4, 4}, 4);
  state["donated"] = true;
  state["role"] = "state";
  state["fed_by"] = 0;
  json batch = replicated("arg1", "f32", {8, 4}, 4);
  batch["role"] = "batch";
  batch["batch_dim"] = 0;
  batch["view"] = {4, 2, 4};
  for (int rank = 0; rank < 4; ++rank)
    batch["boxes"][rank] = {{rank, 0, 0}, {1, 2, 4}};
  root["arguments"] = {state, batch};
  json next = replicated("result0", "f32", {4, 4}, 4);
  next["alias"] = 0;
  json gathered = replicated("result1", "f32", {8, 4}, 4);
  gathered["boxes"][3] = nullptr;
  root["results"] = {next, gathered};

  // Ranks 0..2 hold the gathered batch, rank 3 only sends.
  root["ranks"][3]["class"] = 1;
  root["classes"][1] = root["classes"][0];
  root["classes"][0]["ranks"] = {0, 1, 2};
  root["classes"][1]["ranks"] = {3};
  for (int c = 0; c < 2; ++c) {
    json &cls = root["classes"][c];
    size_t ranks = cls["ranks"].size();
    json offsets = {{"type", "i32[]"}};
    for (size_t i = 0; i < ranks; ++i)
      offsets["rank_constant"].push_back(json::array({cls["ranks"][i]}));
    cls["arena_bytes"] = 512;
    cls["locals"] = {{"0", json::array({{448}})}};
    cls["buffers"] = {
        /*0*/ shardBuffer("argument", 0, "f32", {4, 4}),
        /*1*/ shardBuffer("argument", 1, "f32", {2, 4}),
        /*2*/ shardBuffer("result", 0, "f32", {4, 4}),
        /*3*/
        shardBuffer("result", 1, "f32",
                    c == 0 ? std::vector<int64_t>{8, 4}
                           : std::vector<int64_t>{0, 4}),
        /*4*/ constant,
        /*5*/ shardBuffer("constant", 64, "i32", {}),
        /*6*/ offsets,
        /*7*/ arenaBuffer(0, "f32", {4, 4}),
        /*8*/ arenaBuffer(64, "f32", {4, 4}),
        /*9*/ arenaBuffer(128, "i32", {}),
        /*10*/ arenaBuffer(132, "i1", {}),
        /*11*/ arenaBuffer(192, "f32", {1, 4, 4, 1}),
        /*12*/ arenaBuffer(256, "f32", {3, 3, 1, 1}),
        /*13*/ arenaBuffer(320, "f32", {1, 4, 4, 1}),
        /*14*/ arenaBuffer(384, "f32", {4, 4}),
    };
    json gather = {{"start", 2}, {"src", {1}}, {"dst", {3}}};
    if (c == 1)
      gather["dst"] = nullptr;
    cls["runs"] =
        json::array({{{"function", 0}, {"operands", {8}}, {"results", {11}}}});
    cls["moments"] = json::array({{1, 2}});
    cls["instructions"] = {
        {{"kernel", "add"},
         {"buffers", {0, 4, 7}},
         {"extent", 16},
         {"class", "reduction"},
         {"computes_in", "f64"},
         {"task_graph", 0}},
        {{"start", 1}, {"src", {7}}, {"dst", {7}}},
        gather,
        {{"wait", 0}},
        {{"matmul", {7, 4, 8}},
         {"batch", json::array()},
         {"m", {4, 4, 4}},
         {"n", {4, 1, 1}},
         {"k", {4, 1, 4}}},
        {{"copy", {6, 9}}},
        {{"while", 10},
         {"cond",
          {{{"kernel", "less"}, {"buffers", {9, 5, 10}}, {"extent", 1}}}},
         {"body",
          {{{"kernel", "increment"}, {"buffers", {9, 9}}, {"extent", 1}}}},
         {"trips", 3}},
        {{"case", 9},
         {"branches",
          {json::array(),
           {{{"kernel", "scale"}, {"buffers", {8, 8}}, {"extent", 16}}}}}},
        {{"run", 0}},
        {{"copy", {11, 13}}},
        {{"convolution", {11, 12, 13}},
         {"padding", {{1, 1}, {1, 1}}},
         {"dimension_numbers",
          {{"input_batch_dimension", 0},
           {"input_feature_dimension", 3},
           {"input_spatial_dimensions", {1, 2}},
           {"kernel_input_feature_dimension", 2},
           {"kernel_output_feature_dimension", 3},
           {"kernel_spatial_dimensions", {0, 1}},
           {"output_batch_dimension", 0},
           {"output_feature_dimension", 3},
           {"output_spatial_dimensions", {1, 2}}}}},
        {{"call", "sort"},
         {"inputs", {8}},
         {"outputs", {14}},
         {"config",
          {{"dimension", 1}, {"keys", json::array({{{"operand", 0}}})}}}},
        {{"copy", {14, 2}}, {"origin", 1}},
        {{"wait", 1}}};
  }
  json everyone = {0, 1, 2, 3};
  root["communicators"] = {everyone, {0, 2}, {1, 3}};
  root["channels"]["1"] = {
      {"kind", "all_reduce"},
      {"participants", everyone},
      {"communicators", {1, 2}},
      {"parts", json::array({{{"dtype", "f32"}, {"reduction", "sum"}}})}};
  json &channel = root["channels"]["2"];
  channel = {{"kind", "all_gather"},
             {"participants", everyone},
             {"communicators", json::array({0})}};
  json &part = channel["parts"][0];
  part = {{"dtype", "f32"}, {"reduction", nullptr}};
  for (int receiver = 0; receiver < 3; ++receiver)
    for (int peer = 0; peer < 4; ++peer)
      part["cells"][std::to_string(receiver)].push_back(
          {{"dst", {{peer, 0, 0}, {1, 2, 4}}}, {"from", {{peer, {0, 0, 0}}}}});
  for (int rank = 0; rank < 4; ++rank) {
    part["src_shapes"][std::to_string(rank)] = {1, 2, 4};
    if (rank < 3)
      part["dst_shapes"][std::to_string(rank)] = {4, 2, 4};
  }
  return root;
}

std::string errorOf(const std::string &text) {
  try {
    readProgram(text, "file");
    return "";
  } catch (const system::Error &error) {
    return error.what();
  }
}

} // namespace whale::format::test
