//===- ReadProgramTest.cpp - What is refused, and where it is ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reader of manifests: what it accepts, what it refuses, and the path of
// the field that it names. richManifest is changed in one field at a time;
// errors are compared word for word.
//
// The reader checks all that the runtime relies on, except for the contents of
// other files, so a manifest that is accepted wrongly is a crash at run time.
// Texts that are cut off at every seventh byte, or nested 1,000,000 deep, must
// be refused as well. Shortened forms of lists must be read as the long forms
// are.
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

using whale::format::test::errorOf;

bool refused(const std::string &text) { return !errorOf(text).empty(); }

/// The error of the rich program with another value at a path.
std::string errorOf(const std::string &path, const json &value) {
  json manifest = richManifest();
  manifest[json::json_pointer(path)] = value;
  return errorOf(manifest.dump());
}

TEST(ReadProgramTest, OwnArgumentsAreTheLastOnes) {
  json manifest = emptyManifest(1);
  manifest["classes"][0]["arena_bytes"] = 0;
  json user = replicated("arg0", "f32", {2}, 1),
       own = replicated("arg1", "f32", {2}, 1);
  user["fed_by"] = 0;
  own["fed_by"] = 1;
  own["initial"] = {8, 0};
  manifest["arguments"] = {user, own};
  manifest["results"] = {replicated("result0", "f32", {2}, 1),
                         replicated("result1", "f32", {2}, 1)};
  auto errorWith = [](const json &edited) { return errorOf(edited.dump()); };
  std::string expected = errorWith(manifest);
  EXPECT_EQ(expected.find("initial"), std::string::npos) << expected;
  json edited = manifest;
  edited["arguments"][1]["fed_by"] = 0;
  EXPECT_EQ(errorWith(edited),
            "file: arguments[1].fed_by: must be one of the last results, as "
            "the argument has 'initial'");
  edited = manifest;
  edited["arguments"][0]["initial"] = {1, 2};
  edited["arguments"][1].erase("initial");
  EXPECT_EQ(errorWith(edited), "file: arguments[1]: must have 'initial', as "
                               "arguments before it have");
}

TEST(ReadProgramTest, ErrorsNameTheField) {
  EXPECT_EQ(errorOf(richManifest().dump()), "");
  EXPECT_EQ(errorOf("[]"), "file: must be an object");
  EXPECT_EQ(errorOf("{}"), "file: has no field 'format'");
  EXPECT_EQ(errorOf("/version", 12),
            "file: version: the program has version 12, this Whale reads "
            "version 11: it needs a newer Whale");
  EXPECT_EQ(errorOf("/version", 3),
            "file: version: the program has version 3, this Whale reads "
            "version 11: compile it anew");
  EXPECT_EQ(errorOf("/features", json::array({"warp"})),
            "file: features[0]: unknown feature 'warp': the program needs a "
            "newer Whale");
  EXPECT_EQ(errorOf("/ranks", json::array()), "file: ranks: must not be empty");
  EXPECT_EQ(errorOf("/kernels", "a/b"),
            "file: kernels: must be the name of a file, without folders");
  EXPECT_EQ(errorOf("/hashes", json::object()),
            "file: hashes: has no field 'kernels.so'");
  EXPECT_EQ(errorOf("/arguments/1/boxes/2", {{2, 0, 0}, {3, 2, 4}}),
            "file: arguments[1].boxes[2]: reaches out of the view [4, 2, 4]");
  EXPECT_EQ(errorOf("/arguments/1/boxes/2", nullptr),
            "file: arguments[1].boxes: must cover the whole view [4, 2, 4]");
  EXPECT_EQ(errorOf("/arguments/0/initial", {1, 2}),
            "file: arguments[0].initial: must be the elements of an argument "
            "of f32 that is fed");
  EXPECT_EQ(errorOf("/arguments/0/initial", {1.5}),
            "file: arguments[0].initial[0]: must be an integer from "
            "-16777216 to 16777216");
  EXPECT_EQ(errorOf("/origins/1/lines/1", 7),
            "file: origins[1].lines[1]: must be a string");
  EXPECT_EQ(errorOf("/classes/0/instructions/0/origin", 2),
            "file: classes[0].instructions[0].origin: must be an integer "
            "from 0 to 1");
  EXPECT_EQ(errorOf("/classes/0/instructions/0/class", "product"),
            "file: classes[0].instructions[0].class: unknown class of "
            "operations 'product'");
  EXPECT_EQ(errorOf("/classes/0/instructions/0/computes_in", "f33"),
            "file: classes[0].instructions[0].computes_in: unknown element "
            "type 'f33'");
  EXPECT_EQ(errorOf("/classes/0/instructions/0/task_graph", 1),
            "file: classes[0].instructions[0].task_graph: must be an integer "
            "from 0 to 0");
  EXPECT_EQ(errorOf("/task_graphs/0", json::object()),
            "file: task_graphs[0]: has no field 'name'");
  for (const char *type :
       {"", "f32", "f32[", "f32]", "f33[2]", "f32[2,]", "f32[,2]", "f32[-1]",
        "f32[02]", "f32[2] ", "f32[9223372036854775808]"})
    EXPECT_EQ(errorOf("/classes/0/buffers/14/type", type),
              "file: classes[0].buffers[14].type: '" + std::string(type) +
                  "' is no type like f32[2,3]");
  EXPECT_EQ(errorOf("/classes/0/buffers/14/type", "f32[16777216,4294967296]"),
            "file: classes[0].buffers[14].type: is too large");
  EXPECT_EQ(errorOf("/classes/1/ranks", {2, 3}),
            "file: classes[1].ranks: must list the ranks whose class this is: "
            "[3]");
  EXPECT_EQ(errorOf("/classes/0/arena_bytes", 440),
            "file: classes[0].buffers[14].arena: the buffer's 64 bytes reach "
            "out of the arena of 440");
  EXPECT_EQ(
      errorOf("/classes/0/buffers/6/rank_constant/1/0", 1.5),
      "file: classes[0].buffers[6].rank_constant[1][0]: must be an integer");
  EXPECT_EQ(errorOf("/classes/0/instructions/6/body/0/buffers/1", 99),
            "file: classes[0].instructions[6].body[0].buffers[1]: must be an "
            "integer from 0 to 14");
  EXPECT_EQ(errorOf("/classes/0/instructions/6/trips", -1),
            "file: classes[0].instructions[6].trips: must be an integer of at "
            "least 0");
  EXPECT_EQ(errorOf("/classes/0/instructions/6/body/0/extent", 2),
            "file: classes[0].instructions[6].body[0].extent: the kernel has "
            "extent 1");
  EXPECT_EQ(errorOf("/classes/1/instructions/2/start", 3),
            "file: classes[1].instructions[2].start: there is no such "
            "channel");
  EXPECT_EQ(errorOf("/channels/2/participants", {0, 1, 2}),
            "file: channels.2.communicators: communicator 0: rank 3 is no "
            "participant");
  EXPECT_EQ(errorOf("/channels/2/communicators", json::array({1})),
            "file: communicators[0]: no channel uses it");
  EXPECT_EQ(errorOf("/channels/1/communicators", {1, 1}),
            "file: channels.1.communicators: communicator 1: rank 0 is in "
            "another communicator, too");
  EXPECT_EQ(errorOf("/channels/1/communicators", {1, 3}),
            "file: channels.1.communicators[1]: must be an integer from 0 to "
            "2");
  EXPECT_EQ(errorOf("/channels/2/kind", "local_slice"),
            "file: channels.2.communicators: ranks exchange nothing in a local "
            "slice");
  EXPECT_EQ(errorOf("/channels/1/parts/0/cells", json::object()),
            "file: channels.1.parts[0]: an all-reduce has no cells");
  EXPECT_EQ(errorOf("/channels/1/parts/0/reduction", nullptr),
            "file: channels.1.parts[0]: an all-reduce needs a reduction");
  EXPECT_EQ(
      errorOf("/communicators/0", {0, 1, 2}),
      "file: channels.2.parts[0].cells.0: rank 3 is in no communicator of the "
      "channel with rank 0");
  EXPECT_EQ(errorOf("/communicators/1", {0, 0}),
            "file: communicators[1]: must be two or more ranks, each once");
  EXPECT_EQ(errorOf("/communicators/2", {0, 1}),
            "file: communicators[2]: must come before the one before it: "
            "larger ones are first, equally large ones in the order of their "
            "ranks");
  EXPECT_EQ(errorOf("/channels/2/parts/0/cells/1/0/dst/0/0", 1),
            "file: channels.2.parts[0].cells.1: cells overlap");
  EXPECT_EQ(
      errorOf("/channels/2/parts/0/cells/0/3/dst/1", {0, 0, 0}),
      "file: channels.2.parts[0].cells.0: cells fill 24 of the 32 elements of "
      "dst");
  EXPECT_EQ(errorOf("/channels/2/parts/0/cells", json::object()),
            "file: channels.2.parts[0].cells: rank 0 has a dst buffer and no "
            "cells that fill it");
  EXPECT_EQ(errorOf("/channels/2/parts/0/cells/1/0/from/0/1/1", 1),
            "file: channels.2.parts[0].cells.1[0]: reaches out of the buffer "
            "[1, 2, 4] of rank 0");
  EXPECT_EQ(errorOf("/channels/7", {{"same_as", 3}}),
            "file: channels.7.same_as: channel 3 is not described");
  EXPECT_EQ(errorOf("/channels/7", {{"same_as", 7}}),
            "file: channels.7.same_as: channel 7 is not described");
  EXPECT_EQ(errorOf("/channels/7", {{"same_as", 2}}),
            "file: channels.2: rank 0 is a participant, but its class does not "
            "use it");
}

/// The error of the rich program with other instructions at the end of its
/// classes.
std::string errorWith(const std::vector<json> &more) {
  json manifest = richManifest();
  for (json &rankClass : manifest["classes"])
    for (const json &instruction : more)
      rankClass["instructions"].push_back(instruction);
  return errorOf(manifest.dump());
}

TEST(ReadProgramTest, TransfersAreWaitedForOnceInTheirList) {
  json start = {{"start", 1}, {"src", {7}}, {"dst", {7}}};
  json wait = {{"wait", 2}};
  EXPECT_EQ(errorWith({start, wait}), "");

  // Starts count from 0, in the order of the file.
  json last = {{"wait", 3}};
  EXPECT_EQ(errorWith({start, start, last, wait}), "");

  // A wait names an open transfer.
  const char *const notOpen =
      ".wait: no transfer 2 was started before in this list, or there was "
      "a wait for it already";
  std::string list = "file: classes[0].instructions";
  EXPECT_EQ(errorWith({wait}), list + "[14]" + notOpen);
  EXPECT_EQ(errorWith({wait, start}), list + "[14]" + notOpen);
  EXPECT_EQ(errorWith({start, wait, wait}), list + "[16]" + notOpen);

  // Each list ends with none open.
  EXPECT_EQ(errorWith({start}), list + ": nothing waits for transfer 2");
  EXPECT_EQ(errorOf("/classes/0/instructions/13", {{"wait", 0}}),
            list + "[13].wait: no transfer 0 was started before in this "
                   "list, or there was a wait for it already");

  // What a loop or a case starts it waits for, and nobody else does.
  auto nested = [](const std::vector<json> &branch) -> json {
    return {{"case", 9}, {"branches", json::array({branch})}};
  };
  EXPECT_EQ(errorWith({nested({start, wait})}), "");
  EXPECT_EQ(errorWith({nested({start}), wait}),
            list + "[14].branches[0]: nothing waits for transfer 2");
  EXPECT_EQ(errorWith({start, nested({wait}), wait}),
            list + "[15].branches[0][0]" + notOpen);
  EXPECT_EQ(errorWith({start, nested({}), wait}), "");
  json loop = {{"while", 10},
               {"cond", json::array({start})},
               {"body", json::array({wait})}};
  EXPECT_EQ(errorWith({loop}),
            list + "[14].cond: nothing waits for transfer 2");
  loop["cond"] = json::array();
  loop["body"] = {start, wait};
  EXPECT_EQ(errorWith({loop}), "");
}

TEST(ReadProgramTest, TablesMayStandInFiles) {
  json manifest = richManifest(), whole = manifest;
  manifest.erase("kernels");
  manifest.erase("constants");
  std::map<std::string, std::string> files = {
      {"one.json", json::array({manifest["classes"][0]}).dump()},
      {"two.json", json::array({manifest["classes"][1]}).dump()},
      {"channels", manifest["channels"].dump()}};
  auto entry = [](const char *name, int count) -> json {
    return {{"name", name}, {"count", count}};
  };
  json list = {entry("one.json", 1), entry("two.json", 1)};
  auto open = [&](const std::string &name) { return files.at(name); };
  auto read = [&](const json &classes, const json &channels) -> std::string {
    manifest["classes"] = {{"files", classes}};
    manifest["channels"] = {{"files", channels}};
    try {
      Program program =
          readProgram(manifest.dump(), "p.whale/manifest.json", open);
      EXPECT_EQ(program.classes.size(), 2u);
      EXPECT_EQ(program.channels.size(), 2u);
      return "";
    } catch (const whale::system::Error &error) {
      return error.what();
    }
  };
  json channels = json::array({entry("channels", 2)});
  EXPECT_EQ(read(list, channels), "");
  json tables = json::parse(readTables(manifest.dump(), "file", open));
  EXPECT_EQ(tables, json({{"functions", whole["functions"]},
                          {"classes", whole["classes"]},
                          {"channels", whole["channels"]}}));
  EXPECT_EQ(read({list[0], entry("two.json", 2)}, channels),
            "p.whale/manifest.json: classes.files[1].count: two.json has 1 "
            "elements");
  EXPECT_EQ(read({entry("a/b", 1), list[1]}, channels),
            "p.whale/manifest.json: classes.files[0].name: must be the name of "
            "a file, without folders");
  EXPECT_EQ(read(list, json::array({entry("one.json", 1)})),
            "p.whale/one.json: must be an object");
  EXPECT_EQ(read(list, {channels[0], channels[0]}),
            "p.whale/channels: 1: an earlier file has channel 1 too");
  channels[0]["last"] = 0;
  EXPECT_EQ(read(list, channels),
            "p.whale/manifest.json: channels.files[0].last: channels has "
            "number 1");
  manifest["hashes"] = {{"one.json", "0"}};
  EXPECT_EQ(read(list, channels),
            "p.whale/one.json: differs from its hash in manifest.json: it was "
            "damaged, or is another program's");
  manifest.erase("hashes");
  files["two.json"] = "[{]";
  EXPECT_EQ(read(list, channels).find("p.whale/two.json: not valid JSON"), 0u);
  // Who has no files but the manifest.
  EXPECT_EQ(errorOf(manifest.dump()),
            "file: classes.files: there are no other files");
}

TEST(ReadProgramTest, ListsMayBeShort) {
  // Copies between buffers 7 and 8, and 40 from each to the next behind it.
  auto copy = [](int64_t src, int64_t dst) -> json {
    return {{"copy", {src, dst}}};
  };
  json manifest = richManifest(), other = manifest;
  json &buffers = manifest["classes"][0]["buffers"],
       &same = other["classes"][0]["buffers"];
  manifest["classes"][0]["arena_bytes"] = 8192;
  other["classes"][0]["arena_bytes"] = 8192;
  json &list = manifest["classes"][0]["instructions"],
       &longer = other["classes"][0]["instructions"];
  for (int64_t i = 0; i <= 40; ++i) {
    buffers.push_back(arenaBuffer(512 + 64 * i, "f32", {4, 4}));
    same.push_back(buffers.back());
  }
  longer = {copy(7, 8), copy(8, 7)};
  for (int64_t i = 0; i < 40; ++i)
    longer.push_back(copy(15 + i, 16 + i));
  list = {{"elements", {copy(0, 1)}},
          {"rows",
           {{0, 7, 7},
            {0, 1, -1},
            {0, 7, 9},
            json::array({39, json::array({0, 1, 1})})}}};
  // The channels' starts are in the other class.
  other["channels"] = manifest["channels"] = json::object();
  other["communicators"] = manifest["communicators"] = json::array();
  for (json *root : {&manifest, &other}) {
    (*root)["classes"][1]["instructions"] = json::array();
    for (json &rankClass : (*root)["classes"])
      rankClass.erase("moments");
  }
  EXPECT_EQ(readProgram(manifest.dump(), "short"),
            readProgram(other.dump(), "long"));
  EXPECT_EQ(readTables(manifest.dump(), "short"),
            readTables(other.dump(), "long"));

  auto errorWith = [&](const json &row) {
    list["rows"] = json::array({row});
    return errorOf(manifest.dump());
  };
  const std::string row = "file: classes[0].instructions.rows[0]";
  EXPECT_EQ(errorWith(json::array()),
            row + ": must begin with the number of an element");
  EXPECT_EQ(errorWith({1}), row + "[0]: must be an integer from 0 to 0");
  EXPECT_EQ(errorWith({0, 1, 1, 1}),
            row + ": has more than the 2 integers of element 0");
  EXPECT_EQ(errorWith({0, 7, INT64_MAX}),
            row + "[2]: leads to an integer that does not fit in 64 bits");
  EXPECT_EQ(errorWith({0, 7, "1"}).find(row + "[2]: must be an integer"), 0u);
  EXPECT_EQ(errorWith({INT64_MAX, json::array({0})}),
            row + "[1]: the short lists stand for more than 33554432 values");
  EXPECT_EQ(errorWith({0, -1}),
            "file: classes[0].instructions[0].copy[0]: must be an integer from "
            "0 to 55");
}

TEST(ReadProgramTest, KernelsOfAGpu) {
  json manifest = richManifest();
  manifest["target"] = "cuda";
  json code = {{"arch", "sm_90"}, {"modules", {"kernels.0.ptx"}}};
  manifest["gpu"] = json::array({code});
  // 16 iterations, or 1.
  json launch = {{"module", 0}, {"blocks", 1}, {"threads", 128}};
  for (json &signature : manifest["kernel_signatures"])
    signature["gpu"] = launch;
  auto error = [&](const std::string &path, const json &value) {
    json changed = manifest;
    changed[json::json_pointer(path)] = value;
    return errorOf(changed.dump());
  };
  const std::string add = "/kernel_signatures/add/gpu";
  EXPECT_EQ(error("/name", "m"), "");
  EXPECT_EQ(error(add + "/blocks", 16), "");
  EXPECT_EQ(error(add + "/blocks", 2),
            "file: kernel_signatures.add.gpu.blocks: must be a block or a "
            "thread for each of 16 iterations");
  for (int threads : {0, 1025})
    EXPECT_NE(error(add + "/threads", threads), "");
  EXPECT_NE(error(add + "/module", 1), "");
  EXPECT_EQ(error("/kernel_signatures/add",
                  richManifest()["kernel_signatures"]["add"]),
            "file: kernel_signatures.add: has no field 'gpu'");
  // Kernels of the processor have none, where a class runs there.
  json mixed = manifest;
  mixed["classes"][0]["target"] = "cpu";
  mixed["kernel_signatures"]["add"].erase("gpu");
  EXPECT_EQ(errorOf(mixed.dump()), "");
  EXPECT_TRUE(readProgram(mixed.dump(), "file").classes[0].isForProcessor);
  mixed["classes"][0]["target"] = "cuda";
  mixed["kernel_signatures"] = manifest["kernel_signatures"];
  EXPECT_EQ(errorOf(mixed.dump()), "file: classes[0].target: must be an "
                                   "architecture such as 'sm_90'");
  mixed["classes"][0]["target"] = "sm_90";
  EXPECT_EQ(errorOf(mixed.dump()), "");
  EXPECT_EQ(readProgram(mixed.dump(), "file").classes[0].arch, "sm_90");
  // What GPUs have to be.
  json kind = {{"arch", "sm_90"}, {"memory_bytes", 1 << 30}};
  EXPECT_EQ(error("/gpu_kinds", {{"H100", kind}}), "");
  kind["arch"] = "H100";
  EXPECT_EQ(error("/gpu_kinds", {{"H100", kind}}),
            "file: gpu_kinds.H100.arch: must be an architecture such as "
            "'sm_90'");
  for (const char *arch : {"sm_", "sm_9", "sm_90a", "sm_9000", "90"})
    EXPECT_EQ(error("/gpu/0/arch", arch),
              "file: gpu[0].arch: must be an architecture such as 'sm_90'");
  EXPECT_NE(error("/gpu/0/modules", {"../kernels.0.ptx"}), "");
  EXPECT_EQ(error("/gpu/0/cubins", {"kernels.0.cubin"}), "");
  json later = {{"arch", "sm_100"}, {"modules", {"kernels.1.ptx"}}};
  EXPECT_EQ(error("/gpu", {code, later}), "");
  EXPECT_EQ(error("/gpu", {later, code}),
            "file: gpu[1].arch: must be later than that before it");
  // Modules are counted through.
  later["modules"].push_back("kernels.2.ptx");
  json several = manifest;
  several["gpu"] = {code, later};
  several["kernel_signatures"]["add"]["gpu"]["module"] = 2;
  EXPECT_EQ(errorOf(several.dump()), "");
  several["kernel_signatures"]["add"]["gpu"]["module"] = 3;
  EXPECT_NE(errorOf(several.dump()), "");
  EXPECT_NE(error("/gpu/0/cubins", {"../kernels.0.cubin"}), "");
  for (const json &cubins :
       {json::array(), json{"kernels.0.cubin", "kernels.1.cubin"}})
    EXPECT_EQ(error("/gpu/0/cubins", cubins),
              "file: gpu[0].cubins: must be one for each of 1 modules");
  EXPECT_EQ(error("/target", "cpu"),
            "file: gpu: only a program for 'cuda' has it");
}

TEST(ReadProgramTest, AnInstructionIsOfOneKind) {
  EXPECT_EQ(errorOf("/classes/0/instructions/0/copy", {7, 8}),
            "file: classes[0].instructions[0]: is both 'kernel' and 'copy'");
  EXPECT_EQ(errorOf("/classes/0/instructions/0", {{"move", {7, 8}}}),
            "file: classes[0].instructions[0]: is no instruction");
}

TEST(ReadProgramTest, LeavesToOthersWhatIsInFiles) {
  // The kernels, the size of the constants, the functions of the runtime.
  EXPECT_EQ(errorOf("/kernels", nullptr), "");
  EXPECT_EQ(errorOf("/constants", nullptr), "");
  EXPECT_EQ(errorOf("/classes/0/buffers/4/constant", 1 << 20), "");
  EXPECT_EQ(errorOf("/classes/0/instructions/11/call", "other"), "");
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
  json buffer = {{"type", "f16[]"}, {"rank_constant", {{1}, {1e6}, {1}}}};
  EXPECT_EQ(
      errorOf("/classes/0/buffers/6", buffer),
      "file: classes[0].buffers[6].rank_constant[1][0]: does not fit in its "
      "element type");
}

TEST(ReadProgramTest, ABufferHasTheTypeOfTheOneBefore) {
  json manifest = richManifest();
  Program whole = readProgram(manifest.dump(), "file");
  json &buffers = manifest["classes"][0]["buffers"];
  ASSERT_EQ(buffers[7]["type"], buffers[8]["type"]);
  buffers[8].erase("type");
  EXPECT_EQ(readProgram(manifest.dump(), "file"), whole);
  json tables = json::parse(readTables(manifest.dump(), "file"));
  EXPECT_EQ(tables["classes"], richManifest()["classes"]);
  buffers[1].erase("type");
  EXPECT_EQ(errorOf(manifest.dump()),
            "file: classes[0].buffers[1]: has 16 elements, the box of arg1 on "
            "rank 0 has 8");
  buffers[1]["type"] = nullptr;
  EXPECT_EQ(errorOf(manifest.dump()),
            "file: classes[0].buffers[1].type: must be a string");
  buffers[0].erase("type");
  EXPECT_EQ(errorOf(manifest.dump()),
            "file: classes[0].buffers[0]: has no field 'type'");
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

TEST(ReadProgramTest, Epilogues) {
  json manifest = emptyManifest(1);
  json &cls = manifest["classes"][0];
  cls["arena_bytes"] = 4096;
  cls["buffers"] = {
      /*0*/ arenaBuffer(0, "bf16", {16, 8}),
      /*1*/ arenaBuffer(256, "bf16", {8, 24}),
      /*2*/ arenaBuffer(640, "bf16", {16, 24}),
      /*3*/ arenaBuffer(1408, "bf16", {24}),
      /*4*/ arenaBuffer(1472, "bf16", {16, 24}),
      /*5*/ arenaBuffer(2240, "bf16", {16}),
      /*6*/ arenaBuffer(640, "bf16", {24}),
      /*7*/ arenaBuffer(2304, "f32", {24}),
  };
  json &op = cls["instructions"][0];
  op = {{"matmul", {0, 1, 2}},
        {"batch", json::array()},
        {"m", {16, 8, 24}},
        {"n", {24, 1, 1}},
        {"k", {8, 1, 24}}};
  json &epilogue = op["epilogue"];
  auto check = [&](json value, const std::string &error) {
    epilogue = std::move(value);
    std::string prefix = "file: classes[0].instructions[0].epilogue";
    EXPECT_EQ(errorOf(manifest.dump()), error.empty() ? "" : prefix + error);
  };
  for (const char *function : {"bias", "gelu_bias"})
    check({{"function", function}, {"bias", 3}}, "");
  for (const char *function : {"gelu_aux", "dgelu"})
    check({{"function", function}, {"aux", 4}}, "");
  for (const char *function : {"gelu_aux_bias", "dgelu_bgrad"})
    check({{"function", function}, {"aux", 4}, {"bias", 3}}, "");
  check({{"function", "relu"}}, ".function: there is no epilogue 'relu'");
  check({{"function", "bias"}}, ": has no field 'bias'");
  check({{"function", "bias"}, {"bias", 5}},
        ".bias: must have 24 elements of the product's type");
  check({{"function", "bias"}, {"bias", 7}},
        ".bias: must have 24 elements of the product's type");
  check({{"function", "bias"}, {"bias", 6}}, ".bias: overlaps buffer 2");
  check({{"function", "gelu_aux"}, {"aux", 2}}, ".aux: overlaps buffer 2");
  check({{"function", "dgelu"}, {"aux", 3}},
        ".aux: must have 384 elements of the product's type");
  check({{"function", "dgelu_bgrad"}, {"aux", 4}, {"bias", 6}},
        ".bias: overlaps buffer 2");
  op["accumulate"] = true;
  check({{"function", "gelu"}},
        ": the product can have none: it is added to another one");
}

TEST(ReadProgramTest, KernelsWriteWhereTheySayThatTheyMay) {
  const std::string increment = "/classes/0/instructions/6/body/0/buffers",
                    add = "/kernel_signatures/add/inplace";
  json manifest = richManifest();
  manifest["kernel_signatures"]["increment"].erase("inplace");
  EXPECT_EQ(errorOf(manifest.dump()),
            "file: classes[0].instructions[6].body[0].buffers[1]: overlaps "
            "buffer 9, which the kernel uses meanwhile");
  // A function learns from each of its runs what its buffers share.
  manifest = richManifest();
  manifest["functions"][0]["instructions"][0]["buffers"] = {0, 3, 1};
  manifest["classes"][0]["runs"][0]["results"] = {8};
  EXPECT_NE(errorOf(manifest.dump()).find("overlap, and the function writes"),
            std::string::npos);
  EXPECT_EQ(errorOf(add, {{0, 2}}), "");
  EXPECT_EQ(errorOf(add, {{0}}),
            "file: kernel_signatures.add.inplace[0]: must be [input, output]");
  EXPECT_EQ(errorOf(add, {{0, 1}})
                .find("file: kernel_signatures.add.inplace"
                      "[0][1]: "),
            0u);
  EXPECT_EQ(errorOf("/kernel_signatures/less/inplace", {{0, 2}}),
            "file: kernel_signatures.less.inplace[0]: buffers of unlike sizes "
            "cannot be the same memory");
}

TEST(ReadProgramTest, EveryCutOfTheManifest) {
  std::string text = richManifest().dump();
  for (size_t size = 0; size < text.size(); size += 7)
    EXPECT_TRUE(refused(text.substr(0, size)));
}

TEST(ReadProgramTest, DeepNesting) {
  json nested = json::array();
  for (int i = 0; i < 100; ++i)
    nested = json::array({{{"case", 9}, {"branches", json::array({nested})}}});
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
