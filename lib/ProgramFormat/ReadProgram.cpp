//===- ReadProgram.cpp - Decode the top of a program ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the text of a manifest, a function that reads the other files of the
// program, and, if not all are wanted, the ranks that are. Out: a Program that
// is safe to run; or an error that names the file and field.
//
// This file decodes the top level: arguments, results, ranks, origins and
// kernels. It expands short lists, and calls the readers of channels, functions
// and classes, in an order in which each finds what it refers to. A program
// that is read whole is checked at last for transfers that wait for one another
// (CheckTransfers.cpp).
//
// Cost: linear in the size of the text, with short lists as long as what they
// stand for. A layout that is given by name is searched among all arguments and
// results before it: quadratic in these. The checks of transfers state their
// own cost.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/ReadProgram.h"

#include "Reader.h"
#include "whale/ProgramFormat/CheckSpaces.h"
#include "whale/ProgramFormat/CheckTransfers.h"
#include "whale/System/Error.h"
#include "whale/System/Json.h"

#include <algorithm>
#include <iterator>

namespace whale::format {

/// Reads a box of `view`; checks that it is inside.
static Box readBox(const Field &field, const Shape &view) {
  if (field.size() != 2)
    field.fail("must be [start, size]");
  Box box = {field[0].integers(), field[1].integers()};
  if (box.start.size() != view.size() || box.size.size() != view.size())
    field.fail("must have the " + std::to_string(view.size()) +
               " dimensions of the view");
  for (size_t i = 0; i < view.size(); ++i)
    if (box.start[i] > view[i] || box.size[i] > view[i] - box.start[i])
      field.fail("reaches out of the view " + toString(view));
  return box;
}

/// Returns the layout of the earlier argument or result with that name.
static Shared<Layout> findLayout(const Field &boxes, const Program &program,
                                 const Shape &view) {
  for (const auto *list : {&program.arguments, &program.results})
    for (const Parameter &parameter : *list)
      if (parameter.name == boxes.text()) {
        if (parameter.layout->view != view)
          boxes.fail("'" + parameter.name + "' has another view");
        return parameter.layout;
      }
  boxes.fail("no earlier argument or result is called '" + boxes.text() + "'");
}

static Shared<Layout> readLayout(const Field &field, const Shape &shape,
                                 const Program &program) {
  size_t ranks = program.ranks.size();
  auto layout = std::make_shared<Layout>();
  Field view = field.at("view");
  layout->view = view.shape();
  if (elementCount(layout->view) != elementCount(shape))
    view.fail("must have as many elements as the shape " + toString(shape));
  Field boxes = field.at("boxes");
  if (boxes.json().is_string())
    return findLayout(boxes, program, layout->view);
  if (boxes.size() != ranks)
    boxes.fail("must have one entry for each of the " + std::to_string(ranks) +
               " ranks");
  bool held = false;
  for (size_t rank = 0; rank < ranks; ++rank) {
    Field box = boxes[rank];
    if (box.json().is_null()) {
      layout->boxes.emplace_back();
      continue;
    }
    layout->boxes.push_back(readBox(box, layout->view));
    held = true;
  }
  bool covered = false;
  try {
    covered = covers(layout->view, layout->boxes);
  } catch (const system::Error &error) {
    boxes.fail(error.what());
  }
  // An argument that no rank reads need not be held by any.
  if (held && !covered)
    boxes.fail("must cover the whole view " + toString(layout->view));
  return layout;
}

static Parameter readParameter(const Field &field, const std::string &kind,
                               size_t index, const Program &program) {
  Parameter parameter;
  parameter.name = field.at("name").text();
  if (parameter.name != kind + std::to_string(index))
    field.at("name").fail("must be '" + kind + std::to_string(index) + "'");
  parameter.label = field.at("label").text();
  parameter.dtype = field.at("dtype").dtype();
  parameter.shape = field.at("shape").shape();
  parameter.layout = readLayout(field, parameter.shape, program);
  if (auto space = field.find("space")) {
    parameter.isInHost = space->text() == "host";
    if (!parameter.isInHost && space->text() != "device")
      space->fail("must be 'device' or 'host'");
  }
  return parameter;
}

static Role readRole(const Field &field) {
  for (Role role : {Role::State, Role::Batch, Role::Input})
    if (name(role) == field.text())
      return role;
  field.fail("must be 'state', 'batch' or 'input'");
}

static CallbackOperand readCallback(const Field &field) {
  CallbackOperand callback;
  constexpr int64_t mostFunctions = INT32_MAX;
  callback.index = field.at("index").integer(-2, mostFunctions);
  if (std::optional<Field> operand = field.find("operand"))
    callback.operand = operand->integer();
  callback.hasToken = field.at("has_token").boolean();
  callback.order = field.at("order").integer();
  Field loops = field.at("loops");
  for (size_t i = 0; i < loops.size(); ++i)
    callback.loops.emplace_back(loops[i][0].integer(), loops[i][1].integer());
  return callback;
}

/// The first value of an argument that is the program's own.
static void readInitial(const Field &field, Parameter &parameter) {
  std::optional<Field> initial = field.find("initial");
  if (!initial)
    return;
  // As many as f32 tells apart.
  constexpr int64_t most = 1 << 24;
  parameter.initial = initial->integers(-most, most);
  if (parameter.initial.empty() || parameter.dtype != DType::F32 ||
      parameter.shape !=
          Shape{static_cast<int64_t>(parameter.initial.size())} ||
      !parameter.fedBy)
    initial->fail("must be the elements of an argument of f32 that is fed");
}

/// What is the program's own stands behind what is the user's, before what is
/// for callbacks.
static void checkInitials(const Program &program, const Field &arguments) {
  auto isOwn = [](const Parameter &argument) {
    return !argument.initial.empty();
  };
  size_t first = std::ranges::find_if(program.arguments, isOwn) -
                 program.arguments.begin();
  size_t count = program.arguments.size() - first;
  size_t results =
      std::ranges::count_if(program.results, [](const Parameter &result) {
        return !result.callback;
      });
  for (size_t i = first; i < program.arguments.size(); ++i) {
    if (!isOwn(program.arguments[i]))
      arguments[i].fail("must have 'initial', as arguments before it have");
    if (size_t(*program.arguments[i].fedBy) + count != results + i - first)
      arguments[i].at("fed_by").fail(
          "must be one of the last results, as the argument has 'initial'");
  }
}

void ProgramReader::readParameters() {
  Field arguments = root.at("arguments"), results = root.at("results");
  size_t resultCount = results.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    Field field = arguments[i];
    Parameter parameter = readParameter(field, "arg", i, program);
    parameter.role = readRole(field.at("role"));
    parameter.donated = field.at("donated").boolean();
    if (auto dim = field.find("batch_dim"))
      parameter.batchDim =
          dim->integer(0, static_cast<int64_t>(parameter.shape.size()) - 1);
    if (auto fedBy = field.find("fed_by"))
      parameter.fedBy =
          fedBy->integer(0, static_cast<int64_t>(resultCount) - 1);
    readInitial(field, parameter);
    program.arguments.push_back(std::move(parameter));
  }

  aliased.resize(program.arguments.size());
  for (size_t i = 0; i < resultCount; ++i) {
    Field field = results[i];
    Parameter parameter = readParameter(field, "result", i, program);
    bool held = std::any_of(parameter.layout->boxes.begin(),
                            parameter.layout->boxes.end(),
                            [](const auto &box) { return box.has_value(); });
    if (!held)
      field.at("boxes").fail("no rank holds the result");
    if (auto alias = field.find("alias")) {
      parameter.alias =
          alias->integer(0, static_cast<int64_t>(program.arguments.size()) - 1);
      const Parameter &argument = program.arguments[*parameter.alias];
      if (!argument.donated)
        alias->fail(argument.name + " is not donated");
      if (argument.dtype != parameter.dtype ||
          *argument.layout != *parameter.layout)
        alias->fail(argument.name + " has another dtype, view or boxes");
      if (argument.isInHost != parameter.isInHost)
        alias->fail(argument.name + " is in another memory");
      if (aliased[*parameter.alias])
        alias->fail("another result is an alias of " + argument.name);
      aliased[*parameter.alias] = true;
    }
    if (std::optional<Field> callback = field.find("callback"))
      parameter.callback = readCallback(*callback);
    program.results.push_back(std::move(parameter));
  }
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    const Parameter &argument = program.arguments[i];
    if (!argument.fedBy)
      continue;
    Parameter &result = program.results[*argument.fedBy];
    if (result.dtype != argument.dtype || result.shape != argument.shape)
      arguments[i].at("fed_by").fail(result.name +
                                     " has another dtype or shape");
    if (result.isInHost != argument.isInHost)
      arguments[i].at("fed_by").fail(result.name + " is in another memory");
    // One object, so that a step need not compare them to take what the step
    // before gave.
    if (*result.layout == *argument.layout)
      result.layout = argument.layout;
  }
  checkInitials(program, arguments);
}

void ProgramReader::readRanks() {
  Field ranks = root.at("ranks");
  if (ranks.size() == 0)
    ranks.fail("must not be empty");
  int64_t classes = countOf("classes");
  program.classes.resize(static_cast<size_t>(classes));
  for (size_t i = 0; i < ranks.size(); ++i) {
    Field field = ranks[i];
    Rank rank;
    rank.rankClass = field.at("class").integer(0, classes - 1);
    auto device = field.find("device"), kind = field.find("kind"),
         node = field.find("node"), slowdown = field.find("slowdown");
    rank.device = device ? device->integer() : static_cast<int64_t>(i);
    if (kind)
      rank.kind = kind->text();
    if (node)
      rank.node = node->integer();
    if (slowdown)
      rank.slowdown = slowdown->number();
    program.classes[rank.rankClass].ranks.push_back(static_cast<int64_t>(i));
    program.ranks.push_back(std::move(rank));
  }
  if (!wanted)
    return;
  needed.emplace();
  for (int64_t rank : wanted(program))
    needed->classes.insert(program.ranks.at(rank).rankClass);
}

void ProgramReader::readClasses() {
  const Table &classes = tables.at("classes");
  for (size_t i = 0; i < classes.size(); ++i)
    if (isNeeded(&Needed::classes, static_cast<int64_t>(i)))
      readClass(classes[i].second, i);
}

void ProgramReader::checkRanks() const {
  const Table &classes = tables.at("classes");
  for (size_t i = 0; i < classes.size(); ++i) {
    if (!isNeeded(&Needed::classes, static_cast<int64_t>(i)))
      continue;
    Field field = classes[i].second.at("ranks");
    const std::vector<int64_t> &expected = program.classes[i].ranks;
    if (field.integers() != expected)
      field.fail("must list the ranks whose class this is: " +
                 toString(expected));
  }
}

static std::optional<File> readFile(const Field &root, const std::string &key) {
  std::optional<Field> field = root.find(key);
  if (!field)
    return std::nullopt;
  File file{readFileName(*field), ""};
  if (std::optional<Field> hashes = root.find("hashes"))
    file.hash = hashes->at(file.name).text();
  return file;
}

std::string readArchitecture(const Field &field) {
  std::string arch(field.text());
  bool isNumber = arch.starts_with("sm_") && arch.size() <= 6;
  for (size_t i = 3; isNumber && i < arch.size(); ++i)
    isNumber = arch[i] >= '0' && arch[i] <= '9';
  if (!isNumber || arch.size() < 5)
    field.fail("must be an architecture such as 'sm_90'");
  return arch;
}

static std::map<std::string, GpuKind> readGpuKinds(const Field &field) {
  std::map<std::string, GpuKind> kinds;
  for (const auto &[name, entry] : field.members()) {
    GpuKind &kind = kinds[name];
    kind.memoryBytes = entry.at("memory_bytes").integer(0, int64_t(1) << 56);
    if (std::optional<Field> arch = entry.find("arch"))
      kind.arch = readArchitecture(*arch);
  }
  return kinds;
}

static GpuCode readGpuCode(const Field &root, const Field &field) {
  GpuCode code;
  code.arch = readArchitecture(field.at("arch"));
  std::optional<Field> hashes = root.find("hashes");
  auto readFiles = [&](const Field &names, std::vector<File> &files) {
    for (size_t i = 0; i < names.size(); ++i) {
      File file{readFileName(names[i]), ""};
      if (hashes)
        file.hash = hashes->at(file.name).text();
      files.push_back(std::move(file));
    }
  };
  readFiles(field.at("modules"), code.modules);
  if (std::optional<Field> cubins = field.find("cubins")) {
    readFiles(*cubins, code.cubins);
    if (code.cubins.size() != code.modules.size())
      cubins->fail("must be one for each of " +
                   std::to_string(code.modules.size()) + " modules");
  }
  return code;
}

static std::vector<GpuCode> readGpuCodes(const Field &root,
                                         const Field &field) {
  std::vector<GpuCode> codes;
  for (size_t i = 0; i < field.size(); ++i) {
    GpuCode code = readGpuCode(root, field[i]);
    if (i > 0 && code.capability() <= codes.back().capability())
      field[i].at("arch").fail("must be later than that before it");
    codes.push_back(std::move(code));
  }
  return codes;
}

/// `modules`: how many there are.
static GpuLaunch readGpuLaunch(const Field &field, int64_t extent,
                               size_t modules) {
  // What every GPU takes.
  constexpr int64_t mostBlocks = INT32_MAX, mostThreads = 1024;
  GpuLaunch launch;
  launch.module =
      field.at("module").integer(0, static_cast<int64_t>(modules) - 1);
  launch.blocks = field.at("blocks").integer(1, mostBlocks);
  launch.threads = field.at("threads").integer(1, mostThreads);
  int64_t least = std::max<int64_t>(extent, 1);
  if (launch.blocks != least &&
      launch.blocks != (least - 1) / launch.threads + 1)
    field.at("blocks").fail("must be a block or a thread for each of " +
                            std::to_string(extent) + " iterations");
  return launch;
}

static std::set<std::pair<size_t, size_t>>
readInPlacePairs(const Field &field, const KernelSignature &signature) {
  std::set<std::pair<size_t, size_t>> pairs;
  auto inputs = static_cast<int64_t>(signature.inputs);
  auto buffers = static_cast<int64_t>(signature.bytes.size());
  for (size_t i = 0; i < field.size(); ++i) {
    if (field[i].size() != 2)
      field[i].fail("must be [input, output]");
    int64_t input = field[i][0].integer(0, inputs - 1);
    int64_t output = field[i][1].integer(inputs, buffers - 1);
    if (signature.bytes[input] != signature.bytes[output])
      field[i].fail("buffers of unlike sizes cannot be the same memory");
    pairs.emplace(input, output);
  }
  return pairs;
}

static std::map<std::string, KernelSignature>
readSignatures(const Field &field, const std::vector<GpuCode> &codes,
               bool isMixed) {
  std::map<std::string, KernelSignature> result;
  size_t modules = 0;
  for (const GpuCode &code : codes)
    modules += code.modules.size();
  for (const auto &[symbol, entry] : field.members()) {
    std::vector<int64_t> bytes = entry.at("bytes").integers();
    auto inputs = static_cast<size_t>(
        entry.at("inputs").integer(0, static_cast<int64_t>(bytes.size())));
    KernelSignature &signature = result[symbol];
    signature = {inputs, std::move(bytes), entry.at("extent").integer()};
    if (!codes.empty() && (!isMixed || entry.find("gpu")))
      signature.gpu = readGpuLaunch(entry.at("gpu"), signature.extent, modules);
    if (auto pairs = entry.find("inplace"))
      signature.inplace = readInPlacePairs(*pairs, signature);
  }
  return result;
}

/// Returns the text, without spaces, of the last member `key` of the top-level
/// object; empty if there is none. Read from the text because a parsed object
/// loses the order of its members.
static std::string findMember(std::string_view text, std::string_view key) {
  std::string value;
  std::string_view name;
  size_t depth = 0;
  bool inValue = false, wanted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t begin = i;
    char c = text[i];
    if (c == '"')
      for (++i; text[i] != '"'; ++i)
        i += text[i] == '\\';
    else if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
      continue;
    std::string_view token = text.substr(begin, i + 1 - begin);
    depth -= c == ']' || c == '}';
    if (depth == 1 && !inValue && c == '"') {
      name = token.substr(1, token.size() - 2);
    } else if (depth == 1 && !inValue && c == ':') {
      inValue = true;
      wanted = name == key;
      if (wanted)
        value.clear();
    } else if (depth == 0 || (depth == 1 && c == ',')) {
      inValue = false;
    } else if (inValue && wanted) {
      value += token;
    }
    depth += c == '[' || c == '{';
  }
  return value;
}

void ProgramReader::readOrigins() {
  auto origins = root.find("origins");
  if (!origins)
    return;
  for (size_t i = 0; i < origins->size(); ++i) {
    Field field = (*origins)[i];
    Origin &origin = program.origins.emplace_back();
    if (auto label = field.find("label"))
      origin.label = label->text();
    if (auto lines = field.find("lines"))
      for (size_t k = 0; k < lines->size(); ++k)
        origin.lines.push_back((*lines)[k].text());
  }
}

void ProgramReader::readTaskGraphs() {
  auto graphs = root.find("task_graphs");
  for (size_t i = 0; graphs && i < graphs->size(); ++i)
    program.taskGraphs.push_back((*graphs)[i].at("name").text());
}

int64_t readOrigin(const Field &field, const Program &program) {
  return field.integer(0, static_cast<int64_t>(program.origins.size()) - 1);
}

void ProgramReader::read() {
  if (root.at("format").text() != "whale")
    root.at("format").fail("must be 'whale'");
  int64_t version = root.at("version").integer(1);
  if (version != formatVersion)
    root.at("version").fail(
        "the program has version " + std::to_string(version) +
        ", this Whale reads " + "version " + std::to_string(formatVersion) +
        (version < formatVersion ? ": compile it anew"
                                 : ": it needs a newer Whale"));
  if (auto features = root.find("features"))
    for (size_t i = 0; i < features->size(); ++i)
      (*features)[i].fail("unknown feature '" + (*features)[i].text() +
                          "': the program needs a newer Whale");
  for (const char *table : {"functions", "classes", "channels"})
    if (document.root.contains(table))
      shortLists.expand(document, document.root[table]);
  program.target = root.at("target").text();
  program.name = root.at("name").text();
  readRanks();
  const Table &classes = readTable("classes", &Needed::classes);
  checkRanks();
  if (needed)
    findNeeded();
  program.kernels = readFile(root, "kernels");
  if (auto features = root.find("kernel_features"))
    for (size_t i = 0; i < features->size(); ++i)
      program.kernelFeatures.push_back((*features)[i].text());
  program.constants = readFile(root, "constants");
  if (auto gpu = root.find("gpu"))
    program.gpu = readGpuCodes(root, *gpu);
  if (!program.gpu.empty() && program.target != "cuda")
    root.at("gpu").fail("only a program for 'cuda' has it");
  if (auto kinds = root.find("gpu_kinds"))
    program.gpuKinds = readGpuKinds(*kinds);
  bool isMixed = needed || std::ranges::any_of(classes, [](const auto &entry) {
                   auto target = entry.second.find("target");
                   return target && target->text() == "cpu";
                 });
  if (auto signatures = root.find("kernel_signatures"))
    program.kernelSignatures =
        readSignatures(*signatures, program.gpu, isMixed);
  else if (!program.gpu.empty())
    root.at("kernel_signatures"); // says that it is missing
  readParameters();
  readOrigins();
  readTaskGraphs();
  readCommunicators();
  readChannels();
  readFunctions();
  readClasses();
  finishChannels();
}

static Program read(std::string_view text, const std::string &file,
                    const ReadFile &readFile, const WantedRanks &wanted,
                    nlohmann::json *tables) {
  Document document = parseDocument(text, file);
  Program program;
  ProgramReader reader(document, readFile, wanted, program);
  reader.read();
  if (std::string plan = findMember(text, "plan"); !plan.empty())
    program.plan = std::move(plan);
  program.cluster = findMember(text, "cluster");
  if (wanted)
    return program;
  std::optional<Fault> fault = checkSpaces(program);
  if (!fault)
    fault = checkTransfers(program);
  if (fault)
    throw system::Error(file + ": " + fault->path + ": " + fault->what);
  if (tables)
    *tables = reader.tablesAtLength();
  return program;
}

Program readProgram(std::string_view text, const std::string &file,
                    const ReadFile &readFile, const WantedRanks &wanted) {
  return read(text, file, readFile, wanted, nullptr);
}

/// Gives each buffer of a list its type.
static void addTypes(nlohmann::json &buffers) {
  const nlohmann::json *before = nullptr;
  for (nlohmann::json &buffer : buffers) {
    nlohmann::json &type = buffer["type"];
    if (type.is_null() && before)
      type = *before;
    before = &type;
  }
}

std::string readTables(std::string_view text, const std::string &file,
                       const ReadFile &readFile) {
  nlohmann::json tables;
  read(text, file, readFile, {}, &tables);
  for (const char *name : {"functions", "classes"})
    if (tables.contains(name))
      for (nlohmann::json &body : tables[name])
        addTypes(body["buffers"]);
  return system::printJson(tables);
}

} // namespace whale::format
