//===- WriteProgramTest.cpp - What is written is what is read -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The writer of manifests, by way of the reader: what is written must be read
// as the same program, in one file or with tables in files of their own. Valid
// programs are generated at random, of up to 20 ranks in 3 classes, with 300
// seeds; another 30 are written with a file for each element, and each rank
// must be read from the files that it needs alone.
//
// What the generator does not make is not tested, so a new field of the format
// must be added to it. Manifests that use references and other short forms are
// written by hand.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/WriteProgram.h"

#include "Manifests.h"
#include "whale/ProgramFormat/ReadProgram.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace whale::format;
using namespace whale::format::test;
using nlohmann::json;

namespace {

/// Makes a valid program of random size and contents.
class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  Program make();

private:
  int64_t pick(int64_t count) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  }
  Shared<Layout> makeLayout();
  void addParameters();
  void addChannels();
  RankClass &classOf(int64_t rank) {
    return program.classes[program.ranks[rank].rankClass];
  }
  BufferIndex addBuffer(RankClass &rankClass, BufferInfo buffer);
  BufferIndex addArena(RankClass &rankClass, DType dtype, Shape shape);
  void addEpilogue(RankClass &rankClass, Matmul &matmul);
  void addConstants(RankClass &rankClass);
  void addFunctions();
  void addRuns(RankClass &rankClass);
  Instruction makeInstruction(RankClass &rankClass, int depth);
  std::vector<Instruction> makeList(RankClass &rankClass, int depth);

  std::mt19937 random;
  Program program;
  /// The shape of every parameter: a multiple of the ranks, 3.
  Shape shape;
};

Shared<Layout> Generator::makeLayout() {
  Layout layout;
  auto ranks = static_cast<int64_t>(program.ranks.size());
  layout.view = pick(2) ? shape : Shape{ranks, 2, 3};
  bool split = layout.view.size() == 3;
  for (int64_t rank = 0; rank < ranks; ++rank)
    layout.boxes.push_back(split ? Box{{rank, 0, 0}, {1, 2, 3}}
                                 : Box::whole(shape));
  if (!split && ranks > 1)
    layout.boxes[pick(ranks)].reset();
  return std::make_shared<Layout>(std::move(layout));
}

void Generator::addParameters() {
  std::vector<Shared<Layout>> layouts = {makeLayout(), makeLayout()};
  for (int64_t i = pick(4); i >= 0; --i) {
    Parameter argument;
    argument.name = "arg" + std::to_string(program.arguments.size());
    argument.label = pick(2) ? "params['ü\"']" : "";
    argument.shape = shape;
    argument.dtype = static_cast<DType>(pick(30));
    argument.layout = pick(3) ? layouts[pick(2)] : makeLayout();
    argument.role = static_cast<Role>(pick(3));
    if (pick(2))
      argument.batchDim = pick(2);
    Parameter result = argument;
    argument.donated = pick(2);
    if (pick(2))
      argument.fedBy = static_cast<int64_t>(program.results.size());
    result.name = "result" + std::to_string(program.results.size());
    result.role = Role::Input;
    result.batchDim.reset();
    if (argument.donated)
      result.alias = static_cast<int64_t>(program.arguments.size());
    program.arguments.push_back(std::move(argument));
    program.results.push_back(std::move(result));
  }
}

BufferIndex Generator::addBuffer(RankClass &rankClass, BufferInfo buffer) {
  buffer.bytes = byteCount(buffer.dtype, buffer.shape);
  rankClass.buffers.push_back(std::move(buffer));
  return static_cast<BufferIndex>(rankClass.buffers.size()) - 1;
}

/// A buffer that no other one overlaps.
BufferIndex Generator::addArena(RankClass &rankClass, DType dtype,
                                Shape shape) {
  BufferInfo buffer;
  buffer.offset = rankClass.arenaBytes;
  buffer.dtype = dtype;
  buffer.shape = std::move(shape);
  rankClass.arenaBytes += (byteCount(dtype, buffer.shape) + 63) / 64 * 64;
  return addBuffer(rankClass, std::move(buffer));
}

void Generator::addConstants(RankClass &rankClass) {
  BufferInfo constant;
  constant.space = Space::Constant;
  constant.offset = 64 * pick(100);
  constant.dtype = DType::BF16;
  constant.shape = {2};
  addBuffer(rankClass, constant);
  constant.space = Space::RankConstant;
  constant.offset = 0;
  for (DType dtype : {DType::I1, DType::I4, DType::UI64, DType::I32,
                      DType::F8E4M3FN, DType::BF16, DType::F32, DType::F64}) {
    constant.dtype = dtype;
    constant.values.clear();
    for (size_t i = 0; i < rankClass.ranks.size(); ++i) {
      // Zeros and ones, and for wide types more: no type has a NaN among them.
      std::vector<uint8_t> bytes(2 * byteSize(dtype));
      for (uint8_t &byte : bytes)
        byte = static_cast<uint8_t>(pick(isInteger(dtype) ? 2 : 60));
      constant.values.push_back(std::move(bytes));
    }
    addBuffer(rankClass, constant);
  }
}

/// Each copies its operands by way of locals.
void Generator::addFunctions() {
  for (int64_t count = pick(3); count > 0; --count) {
    Function &function = program.functions.emplace_back();
    function.operands = function.results = pick(6);
    auto add = [&](Space space, int64_t index, Shape shape) {
      function.buffers.push_back(
          {space, 0, index, 24, DType::F32, std::move(shape), {}});
      return static_cast<BufferIndex>(function.buffers.size()) - 1;
    };
    add(Space::Constant, 0, {6});
    for (int64_t i = 0; i < function.operands; ++i) {
      BufferIndex operand = add(Space::Operand, i, {2, 3}),
                  local = add(Space::Local, i, {6}),
                  result = add(Space::Result, i, {6});
      function.instructions.push_back({.operation = Copy{operand, local}});
      function.instructions.push_back(
          {.origin = 0, .operation = Copy{local, result}});
    }
  }
}

void Generator::addRuns(RankClass &rankClass) {
  for (size_t number = 0; number < program.functions.size(); ++number) {
    Run run;
    run.function = static_cast<int64_t>(number);
    for (int64_t count = pick(3); count > 0; --count) {
      std::vector<std::vector<int64_t>> &layouts =
          rankClass.locals[run.function];
      run.layout = static_cast<int64_t>(layouts.size());
      std::vector<int64_t> &locals = layouts.emplace_back();
      run.operands.clear();
      run.results.clear();
      for (int64_t i = 0; i < program.functions[number].operands; ++i) {
        run.operands.push_back(addArena(rankClass, DType::F32, {6}));
        locals.push_back(rankClass.arenaBytes);
        rankClass.arenaBytes += 64;
      }
      for (int64_t i = 0; i < program.functions[number].results; ++i)
        run.results.push_back(addArena(rankClass, DType::F32, {3, 2}));
      if (pick(2))
        run.moment = pick(9);
      rankClass.instructions.push_back({.operation = run});
    }
  }
}

/// Makes it the product that has any epilogue.
void Generator::addEpilogue(RankClass &rankClass, Matmul &matmul) {
  auto add = [&](Shape shape) {
    return addArena(rankClass, matmul.outType, std::move(shape));
  };
  matmul = {};
  matmul.lhsType = matmul.rhsType = matmul.outType =
      pick(2) ? DType::BF16 : DType::F32;
  matmul.m = 8, matmul.n = 16, matmul.k = 24;
  matmul.lhs = add({8, 24}), matmul.rhs = add({24, 16});
  matmul.out = add({8, 16});
  matmul.mLhs = 24, matmul.kLhs = 1;
  matmul.kRhs = 16, matmul.nRhs = 1;
  matmul.mOut = 16, matmul.nOut = 1;
  constexpr int kinds = static_cast<int>(Epilogue::GeluGradientBias);
  matmul.epilogue = static_cast<Epilogue>(1 + pick(kinds));
  if (usesBias(matmul.epilogue))
    matmul.bias = add({16});
  if (usesAux(matmul.epilogue))
    matmul.aux = add({8, 16});
}

Instruction Generator::makeInstruction(RankClass &rankClass, int depth) {
  Instruction instruction;
  if (pick(2))
    instruction.origin = pick(3);
  if (pick(2))
    instruction.flops = pick(2) ? INT64_MAX : pick(1 << 30);
  if (pick(2))
    instruction.bytes = pick(1000);
  if (pick(2))
    instruction.opClass = whale::OpClass(pick(whale::kNumOpClasses));
  if (pick(2))
    instruction.computesIn = pick(2) ? DType::BF16 : DType::C64;
  if (pick(2))
    instruction.taskGraph = pick(2);
  switch (pick(depth ? 7 : 5)) {
  case 0: {
    Kernel kernel{"k" + std::to_string(pick(2)), {}, 8};
    for (int i = 0; i < 2; ++i)
      kernel.buffers.push_back(addArena(rankClass, DType::F32, {2}));
    instruction.operation = std::move(kernel);
    break;
  }
  case 1:
    instruction.operation = Copy{addArena(rankClass, DType::I8, {4}),
                                 addArena(rankClass, DType::F32, {1})};
    break;
  case 2: {
    Matmul matmul;
    matmul.lhsType = matmul.rhsType = matmul.outType = DType::F32;
    matmul.m = 1 + pick(3), matmul.n = 1 + pick(3), matmul.k = 1 + pick(3);
    int64_t batch = 1 + pick(2);
    matmul.lhs = addArena(rankClass, DType::F32, {batch, matmul.m, matmul.k});
    matmul.rhs = addArena(rankClass, DType::F32, {matmul.k, matmul.n});
    matmul.out = addArena(rankClass, DType::F32, {batch, matmul.m, matmul.n});
    matmul.batch = {{batch, matmul.m * matmul.k, 0, matmul.m * matmul.n}};
    matmul.mLhs = matmul.k, matmul.kLhs = 1;
    matmul.kRhs = matmul.n, matmul.nRhs = 1;
    matmul.mOut = matmul.n, matmul.nOut = 1;
    matmul.accumulate = pick(2);
    if (pick(2))
      addEpilogue(rankClass, matmul);
    instruction.operation = std::move(matmul);
    break;
  }
  case 3: {
    Convolution conv;
    conv.lhsType = conv.rhsType = conv.outType = DType::F16;
    int64_t stride = 1 + pick(2);
    conv.lhsShape = {2, 9, 3};
    conv.rhsShape = {4, 3, 5};
    conv.outShape = {2, (9 + 1 - 4) / stride + 1, 5};
    conv.lhsDims = conv.outDims = {0, 2, {1}};
    conv.rhsDims = {1, 2, {0}};
    conv.windows = {{.stride = stride, .low = 1, .reversed = pick(2) == 1}};
    conv.lhs = addArena(rankClass, DType::F16, conv.lhsShape);
    conv.rhs = addArena(rankClass, DType::F16, conv.rhsShape);
    conv.out = addArena(rankClass, DType::F16, conv.outShape);
    instruction.operation = std::move(conv);
    break;
  }
  case 4:
    instruction.operation = Call{"lapack.any",
                                 {addArena(rankClass, DType::F32, {2, 2})},
                                 {addArena(rankClass, DType::F32, {2, 2}),
                                  addArena(rankClass, DType::I32, {})},
                                 R"({"a":[1,{"b":-0.1}],"c":"x y"})"};
    break;
  case 5:
    instruction.operation = While{makeList(rankClass, depth - 1),
                                  addArena(rankClass, DType::I1, {}),
                                  makeList(rankClass, depth - 1)};
    break;
  default: {
    Case choice;
    choice.index = addArena(rankClass, DType::I32, {});
    for (int64_t i = pick(3); i >= 0; --i)
      choice.branches.push_back(makeList(rankClass, depth - 1));
    instruction.operation = std::move(choice);
  }
  }
  return instruction;
}

std::vector<Instruction> Generator::makeList(RankClass &rankClass, int depth) {
  std::vector<Instruction> list;
  for (int64_t i = pick(5); i > 0; --i)
    list.push_back(makeInstruction(rankClass, depth));
  return list;
}

/// All-gathers and all-reduces of a row of each rank, described once for
/// several channels.
void Generator::addChannels() {
  auto ranks = static_cast<int64_t>(program.ranks.size());
  std::vector<int64_t> all;
  for (int64_t rank = 0; rank < ranks; ++rank)
    all.push_back(rank);
  std::vector<std::pair<BufferIndex, BufferIndex>> gathers, reduces;
  bool viewed = pick(2);
  DType reducedType = pick(2) ? DType::F32 : DType::I1;
  for (RankClass &rankClass : program.classes) {
    Shape part = viewed ? Shape{6} : Shape{1, 6};
    gathers.emplace_back(addArena(rankClass, DType::F32, part),
                         addArena(rankClass, DType::F32, {ranks, 6}));
    BufferIndex reduced = addArena(rankClass, reducedType, {6});
    reduces.emplace_back(reduced, reduced);
  }
  std::vector<std::vector<Instruction>> waits(program.classes.size());
  for (int64_t described = pick(3); described > 0; --described) {
    bool gather = pick(2);
    Collective collective;
    collective.parts[0].dtype = gather ? DType::F32 : reducedType;
    collective.participants = all;
    if (ranks > 1)
      collective.groups = {all};
    for (int64_t rank : all) {
      collective.parts[0].srcShapes[rank] = gather ? Shape{1, 6} : Shape{6};
      collective.parts[0].dstShapes[rank] = gather ? Shape{ranks, 6} : Shape{6};
    }
    if (gather) {
      collective.kind = "all_gather";
      std::vector<Cell> rows;
      for (int64_t peer : all)
        rows.push_back({{peer, 0}, {1, 6}, {{peer, {0, 0}}}});
      Shared<std::vector<Cell>> shared =
          std::make_shared<std::vector<Cell>>(rows);
      for (int64_t rank : all)
        collective.parts[0].cells[rank] =
            pick(4) ? shared : std::make_shared<std::vector<Cell>>(rows);
    } else {
      collective.kind = "all_reduce";
      collective.parts[0].reduction = static_cast<Reduction>(
          reducedType == DType::F32 ? pick(4) : 4 + pick(2));
    }
    Shared<Collective> shared =
        std::make_shared<Collective>(std::move(collective));
    for (int64_t same = pick(3); same >= 0; --same) {
      auto number = static_cast<int64_t>(program.channels.size()) * 5;
      program.channels[number] = shared;
      for (size_t i = 0; i < program.classes.size(); ++i) {
        auto [src, dst] = gather ? gathers[i] : reduces[i];
        auto transfer = static_cast<int64_t>(waits[i].size());
        program.classes[i].instructions.push_back(
            {.operation = Start{number, transfer, {{src, dst}}}});
        waits[i].push_back({.operation = Wait{transfer}});
      }
    }
  }
  for (size_t i = 0; i < program.classes.size(); ++i) {
    std::shuffle(waits[i].begin(), waits[i].end(), random);
    for (Instruction &wait : waits[i])
      program.classes[i].instructions.push_back(std::move(wait));
  }
}

Program Generator::make() {
  int64_t ranks = 1 + pick(20), classes = std::min<int64_t>(ranks, 1 + pick(3));
  shape = {ranks * 2, 3};
  program.target = pick(2) ? "cpu" : "none";
  program.name = "name\n";
  program.origins = {{"op \\", {"a.py:1", "ü\".py:2"}}, {"", {"a.py:3"}}, {}};
  program.taskGraphs = {"encoder", "ü\"\n"};
  program.classes.resize(classes);
  for (int64_t i = 0; i < ranks; ++i) {
    Rank rank;
    rank.rankClass = i < classes ? i : pick(classes);
    rank.device = i + pick(2);
    rank.kind = pick(2) ? "cpu" : "A100";
    rank.node = i / 8;
    rank.slowdown = 1 + static_cast<double>(pick(3)) / 10;
    program.classes[rank.rankClass].ranks.push_back(i);
    program.ranks.push_back(rank);
  }
  addParameters();
  addFunctions();
  program.kernelSignatures = {{"k0", {1, {8, 8}, 8}}, {"k1", {2, {8, 8}, 8}}};
  for (RankClass &rankClass : program.classes) {
    addConstants(rankClass);
    rankClass.instructions = makeList(rankClass, 2);
    addRuns(rankClass);
  }
  addChannels();
  bool hashes = pick(2);
  if (pick(2))
    program.kernels = {"kernels.so", hashes ? "0123" : ""};
  if (pick(2))
    program.constants = {"constants.bin", hashes ? "4567" : ""};
  if (pick(2)) {
    program.target = "cuda";
    program.gpu = {{"sm_90", {}}};
    for (const char *name : {"kernels.0.ptx", "kernels.1.ptx"})
      program.gpu[0].modules.push_back({name, hashes ? "89ab" : ""});
    if (pick(2))
      for (const char *name : {"kernels.0.cubin", "kernels.1.cubin"})
        program.gpu[0].cubins.push_back({name, hashes ? "cdef" : ""});
    if (pick(2)) {
      program.gpu.push_back(program.gpu[0]);
      program.gpu[1].arch = "sm_100";
    }
    if (pick(2))
      program.gpuKinds = {{"new", {"sm_90", 1 << 30}}, {"any", {"", 5}}};
    if (pick(2)) {
      program.classes[0].isForProcessor = true;
      return program;
    }
    if (pick(2))
      program.classes[0].arch = "sm_90";
    for (auto &[symbol, signature] : *program.kernelSignatures)
      signature.gpu =
          pick(2) ? GpuLaunch{1, 8, 1 + pick(1024)} : GpuLaunch{pick(2), 3, 3};
  }
  if (pick(2))
    program.plan = R"({"z":[{"a":1.5}],"b":{}})";
  return program;
}

TEST(WriteProgramTest, GeneratedProgramsAreReadAsTheyWere) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Program program = Generator(seed).make();
    std::string text = writeProgram(program).manifest;
    Program again = readProgram(text, "written");
    ASSERT_EQ(again, program) << text;
    ProgramText parts = writeProgram(program, {}, /*mostBytes=*/100);
    auto readPart = [&](const std::string &name) {
      return parts.tables.at(name);
    };
    ASSERT_EQ(readProgram(parts.manifest, "parts", readPart), program);
    // What is shared stays shared.
    ASSERT_EQ(writeProgram(again).manifest, text);
  }
}

/// What a class uses, as the index of a table's files names it.
struct Used {
  std::set<int64_t> functions, channels;

  void add(const std::vector<Instruction> &list) {
    for (const Instruction &each : list)
      if (const auto *start = std::get_if<Start>(&each.operation)) {
        channels.insert(start->channel);
      } else if (const auto *run = std::get_if<Run>(&each.operation)) {
        functions.insert(run->function);
      } else if (const auto *loop = std::get_if<While>(&each.operation)) {
        add(loop->cond);
        add(loop->body);
      } else if (const auto *choice = std::get_if<Case>(&each.operation)) {
        for (const auto &branch : choice->branches)
          add(branch);
      }
  }
};

TEST(WriteProgramTest, RanksAreReadWithoutTheOthers) {
  size_t opened = 0, unopened = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Program program = Generator(seed).make();
    // A file for each element.
    ProgramText parts = writeProgram(program, {}, /*mostBytes=*/1);
    for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
      std::set<std::string> files;
      Program part = readProgram(
          parts.manifest, "parts",
          [&](const std::string &name) {
            files.insert(name);
            return parts.tables.at(name);
          },
          [&](const Program &top) {
            EXPECT_EQ(top.ranks, program.ranks);
            return std::vector<int64_t>{static_cast<int64_t>(rank)};
          });
      opened += files.size();
      unopened += parts.tables.size() - files.size();

      int64_t own = program.ranks[rank].rankClass;
      Used used;
      used.add(program.classes[own].instructions);
      for (size_t i = 0; i < program.classes.size(); ++i) {
        bool isOwn = static_cast<int64_t>(i) == own;
        ASSERT_EQ(part.classes[i].ranks, program.classes[i].ranks);
        ASSERT_EQ(files.contains("classes-" + std::to_string(i) + ".json"),
                  isOwn);
        if (isOwn)
          ASSERT_EQ(part.classes[i], program.classes[i]);
        else
          ASSERT_TRUE(part.classes[i].instructions.empty());
      }
      for (size_t i = 0; i < program.functions.size(); ++i) {
        bool isUsed = used.functions.contains(static_cast<int64_t>(i));
        ASSERT_EQ(files.contains("functions-" + std::to_string(i) + ".json"),
                  isUsed);
        if (isUsed)
          ASSERT_EQ(part.functions[i], program.functions[i]);
      }
      for (int64_t number : used.channels) {
        const Collective &whole = *program.channels.at(number),
                         &found = *part.channels.at(number);
        ASSERT_EQ(found.kind, whole.kind);
        ASSERT_EQ(found.participants, whole.participants);
        ASSERT_EQ(found.groups, whole.groups);
        ASSERT_EQ(found.parts[0].cells.size(), whole.parts[0].cells.size());
        auto at = static_cast<int64_t>(rank);
        ASSERT_EQ(found.parts[0].srcShapes.contains(at),
                  whole.parts[0].srcShapes.contains(at));
        if (whole.parts[0].dstShapes.contains(at))
          ASSERT_EQ(found.parts[0].dstShapes.at(at),
                    whole.parts[0].dstShapes.at(at));
      }
      // One more file for each channel that describes others, at most.
      ASSERT_LE(part.channels.size(), 2 * used.channels.size());
      if (!program.channels.empty())
        ASSERT_EQ(part.unreadChannelEnd, program.channels.rbegin()->first + 1);
    }
  }
  EXPECT_GT(opened, 0u);
  EXPECT_GT(unopened, 0u);
}

TEST(WriteProgramTest, HandWrittenManifestsMeanTheSame) {
  json manifest = richManifest();
  // The gathered batch for a second time, by reference.
  manifest["channels"]["7"] = {{"same_as", 2}};
  for (json &rankClass : manifest["classes"]) {
    json again = rankClass["instructions"][2];
    again["start"] = 7;
    rankClass["instructions"].push_back(again);
    rankClass["instructions"].push_back({{"wait", 2}});
  }
  Program program = readProgram(manifest.dump(), "file");
  EXPECT_EQ(program.channels.at(7).get(), program.channels.at(2).get());
  std::string text = writeProgram(program).manifest;
  EXPECT_EQ(readProgram(text, "written"), program);
  EXPECT_EQ(json::parse(text)["channels"]["7"], json({{"same_as", 2}}));
}

TEST(WriteProgramTest, AReferenceMayUseOtherBuffers) {
  // An all-reduce of larger buffers under the description of another one.
  json manifest = richManifest();
  manifest["channels"]["7"] = {{"same_as", 1}};
  for (json &rankClass : manifest["classes"]) {
    rankClass["buffers"].push_back(arenaBuffer(448, "f32", {16}));
    rankClass["instructions"].push_back(
        {{"start", 7}, {"src", {15}}, {"dst", {15}}});
    rankClass["instructions"].push_back({{"wait", 2}});
  }
  Program program = readProgram(manifest.dump(), "file");
  EXPECT_EQ(program.channels.at(7)->parts[0].dstShapes.at(0), Shape({16}));
  EXPECT_EQ(program.channels.at(1)->parts[0].dstShapes.at(0), Shape({4, 4}));
  EXPECT_EQ(readProgram(writeProgram(program).manifest, "written"), program);
}

TEST(WriteProgramTest, PartsMayBePrintedInAnyOrder) {
  Program program = Generator(3).make();
  size_t parts = 0;
  auto backwards = [&](size_t count, const auto &function) {
    parts += count;
    while (count-- > 0)
      function(count);
  };
  EXPECT_EQ(writeProgram(program, backwards).manifest,
            writeProgram(program).manifest);
  EXPECT_GE(parts, program.classes.size());
}

} // namespace
