//===- WriteProgram.cpp - Print a program -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prints a program as manifest.json and table files. Elements of tables are
// printed independently, possibly on several threads (ForEach). Shared
// collectives, layouts and lists of cells are recognized by address and written
// once. Linear in the size of the program, except for comparing lists of cells
// with a few others (WriteCollectives.cpp).
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/WriteProgram.h"

#include "ShortLists.h"
#include "Writer.h"
#include "whale/System/Checksum.h"
#include "whale/System/Json.h"

#include <atomic>
#include <cassert>

namespace whale::format {

void addMember(Json &object, const std::string &key, Json value) {
  // A map that grows copies its values.
  constexpr size_t usual = 4;
  if (object.is_null())
    reserveMembers(object, usual);
  object.get_ref<Json::object_t &>().emplace_back(key, std::move(value));
}

void reserveMembers(Json &object, size_t count) {
  if (object.is_null())
    object = Json::object();
  object.get_ref<Json::object_t &>().reserve(count);
}

static Json toJson(const Box &box) {
  return Json::array({box.start, box.size});
}

static Json toJson(const std::vector<Rank> &ranks) {
  Json list = Json::array();
  for (const Rank &rank : ranks)
    list.push_back({{"device", rank.device},
                    {"class", rank.rankClass},
                    {"kind", rank.kind},
                    {"node", rank.node},
                    {"slowdown", rank.slowdown}});
  return list;
}

namespace {
/// For tables: of hundreds of thousands of short lines, a tenth would be
/// indentation.
constexpr int withoutIndent = -1;
/// From so many bytes on, elements of tables have short lists, which are harder
/// to read.
constexpr size_t longElement = 4096;

class ProgramWriter {
public:
  ProgramWriter(const Program &program, const ForEach &forEach,
                size_t mostBytes)
      : program(program), forEach(forEach), mostBytes(mostBytes) {}

  ProgramText write();

private:
  void field(const char *name, const Json &value) {
    manifest.next(name);
    printJson(text, value, /*depth=*/7, /*indent=*/1);
  }
  void file(const char *name, const std::optional<File> &file) {
    field(name, file ? Json(file->name) : Json());
  }
  Json toJson(const Parameter &parameter);
  void writeParameters();
  void writeOrigins();
  void writeTaskGraphs();
  /// Must run before the channels are printed, which refer to communicators.
  void writeCommunicators();

  /// A field that may go to separate files: a list, or an object whose keys are
  /// numbers.
  struct Table {
    const char *name;
    bool isList;
    std::vector<std::string> elements = {};
    std::vector<int64_t> keys = {};
  };
  /// Prints the elements of a list separately.
  Table printList(const char *name, size_t count,
                  const std::function<Json(size_t)> &element);
  Table printFunctions();
  Table printClasses();
  Table printChannels();
  /// Prints all tables; all with short lists where they go to separate files.
  std::vector<Table> printTables(bool areShort);
  std::string printElement(Json json) {
    std::string out;
    auto print = [&] { printJson(out, json, /*depth=*/6, withoutIndent); };
    if (!hasShortLists)
      print();
    if (!hasShortLists && out.size() < longElement)
      return out;
    saved += shortenLists(json);
    out.clear();
    print();
    return out;
  }
  /// Appends a part of a table.
  static void append(std::string &out, const Table &table, size_t begin,
                     size_t end);
  void writeToFiles(const Table &table);
  void writeTables();
  void writeHashes();

  /// A collective: the number of the channel that describes it, and the start
  /// of each class there.
  struct Described {
    int64_t number;
    std::map<int64_t, const Start *> uses = {};
    std::string printed = {};
  };
  /// Records the starts of a class, and their origins by channel.
  void addUses(int64_t number, const std::vector<Instruction> &instructions);
  using Side = std::optional<BufferIndex> Start::Ends::*;
  const Shape *ownShape(const Described &described, size_t part, int64_t rank,
                        Side side) const;
  Json shapesToJson(const std::map<int64_t, Shape> &shapes,
                    const Described &described, size_t part, Side side) const;
  Json toJson(const Collective &collective, const Described &described) const;
  Json toJson(const Function &function) const;
  Json toJson(const RankClass &rankClass) const;

  const Program &program;
  const ForEach &forEach;
  const size_t mostBytes;
  /// The communicators with their indices.
  std::map<Group, int64_t, LargerFirst> communicators;
  /// The first argument or result with each layout.
  std::map<const Layout *, std::string> namedLayouts;
  std::map<const Collective *, Described> described;
  ChannelOrigins channelOrigins;
  bool hasShortLists = false;
  /// How much longer the tables are without short lists.
  std::atomic<size_t> saved = 0;
  ProgramText texts;
  std::string &text = texts.manifest;
  JsonLines manifest{text, /*isList=*/false, 0};
};
} // namespace

Json ProgramWriter::toJson(const Parameter &parameter) {
  // On many ranks a list of boxes is long, and many tensors have the same one.
  constexpr size_t manyRanks = 16;
  Json json = {{"name", parameter.name},
               {"label", parameter.label},
               {"dtype", format::name(parameter.dtype)},
               {"shape", parameter.shape},
               {"view", parameter.layout->view}};
  if (parameter.isInHost)
    json["space"] = "host";
  auto [known, isNew] =
      namedLayouts.try_emplace(parameter.layout.get(), parameter.name);
  if (!isNew && program.ranks.size() > manyRanks) {
    json["boxes"] = known->second;
    return json;
  }
  Json boxes = Json::array();
  for (const std::optional<Box> &box : parameter.layout->boxes)
    boxes.push_back(box ? format::toJson(*box) : Json());
  json["boxes"] = std::move(boxes);
  return json;
}

static Json toJson(const CallbackOperand &callback) {
  return {{"index", callback.index},
          {"operand", format::toJson(callback.operand)},
          {"has_token", callback.hasToken},
          {"order", callback.order},
          {"loops", callback.loops}};
}

void ProgramWriter::writeParameters() {
  Json arguments = Json::array(), results = Json::array();
  for (const Parameter &argument : program.arguments) {
    Json json = toJson(argument);
    json["role"] = format::name(argument.role);
    json["batch_dim"] = format::toJson(argument.batchDim);
    json["donated"] = argument.donated;
    json["fed_by"] = format::toJson(argument.fedBy);
    if (!argument.initial.empty())
      json["initial"] = argument.initial;
    arguments.push_back(std::move(json));
  }
  for (const Parameter &result : program.results) {
    Json json = toJson(result);
    json["alias"] = format::toJson(result.alias);
    if (result.callback)
      json["callback"] = format::toJson(*result.callback);
    results.push_back(std::move(json));
  }
  field("arguments", arguments);
  field("results", results);
}

Json ProgramWriter::toJson(const Function &function) const {
  return {{"operands", function.operands},
          {"results", function.results},
          {"buffers", buffersToJson(function.buffers, program, nullptr)},
          {"instructions",
           InstructionWriter{channelOrigins}.toJson(function.instructions)}};
}

Json ProgramWriter::toJson(const RankClass &rankClass) const {
  InstructionWriter writer{channelOrigins};
  Json instructions = writer.toJson(rankClass.instructions);
  Json json;
  constexpr size_t mostMembers = 9;
  reserveMembers(json, mostMembers);
  addMember(json, "ranks", rankClass.ranks);
  addMember(json, "arena_bytes", rankClass.arenaBytes);
  if (rankClass.workspaceBytes)
    addMember(json, "workspace_bytes", rankClass.workspaceBytes);
  if (rankClass.isForProcessor)
    addMember(json, "target", "cpu");
  else if (!rankClass.arch.empty())
    addMember(json, "target", rankClass.arch);
  Json locals;
  for (const auto &[number, layouts] : rankClass.locals)
    addMember(locals, std::to_string(number), layouts);
  if (!locals.is_null())
    addMember(json, "locals", std::move(locals));
  addMember(json, "buffers",
            buffersToJson(rankClass.buffers, program, &rankClass));
  if (!writer.runs.list.empty())
    addMember(json, "runs", std::move(writer.runs.list));
  if (Json moments = writer.moments.toJson(); !moments.is_null())
    addMember(json, "moments", std::move(moments));
  addMember(json, "instructions", std::move(instructions));
  return json;
}

ProgramWriter::Table
ProgramWriter::printList(const char *name, size_t count,
                         const std::function<Json(size_t)> &element) {
  Table table = {name, /*isList=*/true};
  table.elements.resize(count);
  forEach(count,
          [&](size_t i) { table.elements[i] = printElement(element(i)); });
  return table;
}

void ProgramWriter::writeOrigins() {
  if (program.origins.empty())
    return;
  Json list = Json::array();
  for (const Origin &origin : program.origins) {
    Json json = Json::object();
    if (!origin.label.empty())
      json["label"] = origin.label;
    if (!origin.lines.empty())
      json["lines"] = origin.lines;
    list.push_back(std::move(json));
  }
  field("origins", list);
}

void ProgramWriter::writeTaskGraphs() {
  if (program.taskGraphs.empty())
    return;
  Json list = Json::array();
  for (const std::string &name : program.taskGraphs)
    list.push_back({{"name", name}});
  field("task_graphs", list);
}

ProgramWriter::Table ProgramWriter::printFunctions() {
  return printList("functions", program.functions.size(),
                   [&](size_t i) { return toJson(program.functions[i]); });
}

ProgramWriter::Table ProgramWriter::printClasses() {
  return printList("classes", program.classes.size(),
                   [&](size_t i) { return toJson(program.classes[i]); });
}

void ProgramWriter::addUses(int64_t number,
                            const std::vector<Instruction> &instructions) {
  for (const Instruction &instruction : instructions) {
    if (const auto *start = std::get_if<Start>(&instruction.operation)) {
      channelOrigins.try_emplace(start->channel, instruction.origin);
      Described &channel =
          described.at(program.channels.at(start->channel).get());
      if (channel.number == start->channel)
        channel.uses.emplace(number, start);
    } else if (const auto *loop = std::get_if<While>(&instruction.operation)) {
      addUses(number, loop->cond);
      addUses(number, loop->body);
    } else if (const auto *choice = std::get_if<Case>(&instruction.operation)) {
      for (const std::vector<Instruction> &branch : choice->branches)
        addUses(number, branch);
    }
  }
}

/// Returns the shape of a rank's buffer on one side of a part of a channel;
/// null if it has none.
const Shape *ProgramWriter::ownShape(const Described &described, size_t part,
                                     int64_t rank, Side side) const {
  int64_t number = program.ranks[rank].rankClass;
  auto use = described.uses.find(number);
  if (use == described.uses.end())
    return nullptr;
  std::optional<BufferIndex> buffer = use->second->parts[part].*side;
  return buffer ? &program.classes[number].buffers[*buffer].shape : nullptr;
}

Json ProgramWriter::shapesToJson(const std::map<int64_t, Shape> &shapes,
                                 const Described &described, size_t part,
                                 Side side) const {
  Json json;
  for (const auto &[rank, shape] : shapes)
    if (const Shape *own = ownShape(described, part, rank, side);
        !own || *own != shape)
      addMember(json, std::to_string(rank), shape);
  return json;
}

Json ProgramWriter::toJson(const Collective &collective,
                           const Described &described) const {
  Json parts = Json::array();
  for (size_t i = 0; i < collective.parts.size(); ++i) {
    const ChannelPart &part = collective.parts[i];
    Json &json = parts.emplace_back(
        Json{{"reduction",
              part.reduction ? Json(format::name(*part.reduction)) : Json()},
             {"dtype", format::name(part.dtype)}});
    if (collective.isAllReduce() || collective.isHostCopy())
      continue;
    json["cells"] = cellsToJson(part);
    Json sources =
        shapesToJson(part.srcShapes, described, i, &Start::Ends::src);
    Json targets =
        shapesToJson(part.dstShapes, described, i, &Start::Ends::dst);
    if (!sources.is_null())
      json["src_shapes"] = std::move(sources);
    if (!targets.is_null())
      json["dst_shapes"] = std::move(targets);
  }
  Json json = {{"kind", collective.kind},
               {"participants", collective.participants},
               {"communicators", Json::array()},
               {"parts", std::move(parts)}};
  for (const Group &group : collective.groups)
    json["communicators"].push_back(communicators.at(group));
  return json;
}

ProgramWriter::Table ProgramWriter::printChannels() {
  std::vector<std::pair<const Collective *const, Described> *> entries;
  for (auto &entry : described)
    entries.push_back(&entry);
  auto print = [&](int64_t number, Json json) {
    auto origin = channelOrigins.find(number);
    if (origin != channelOrigins.end() && origin->second)
      json["origin"] = *origin->second;
    return printElement(std::move(json));
  };
  forEach(entries.size(), [&](size_t i) {
    auto &[collective, channel] = *entries[i];
    channel.printed = print(channel.number, toJson(*collective, channel));
  });
  Table table = {"channels", /*isList=*/false};
  for (const auto &[number, collective] : program.channels) {
    table.keys.push_back(number);
    const Described &channel = described.at(collective.get());
    table.elements.push_back(
        number == channel.number
            ? channel.printed
            : print(number, {{"same_as", channel.number}}));
  }
  return table;
}

void ProgramWriter::append(std::string &out, const Table &table, size_t begin,
                           size_t end) {
  JsonLines lines(out, table.isList, withoutIndent);
  for (size_t i = begin; i < end; ++i) {
    lines.next(table.isList ? "" : std::to_string(table.keys[i]));
    out += table.elements[i];
  }
  lines.end();
}

void ProgramWriter::writeToFiles(const Table &table) {
  Json files = Json::array();
  size_t begin = 0;
  while (begin < table.elements.size()) {
    size_t bytes = 0, end = begin;
    do
      bytes += table.elements[end++].size();
    while (end < table.elements.size() &&
           bytes + table.elements[end].size() <= mostBytes);
    std::string name =
        std::string(table.name) + "-" + std::to_string(files.size()) + ".json";
    std::string &file = texts.tables[name];
    append(file, table, begin, end);
    file += "\n";
    files.push_back({{"name", name}, {"count", end - begin}});
    if (!table.isList)
      files.back()["last"] = table.keys[end - 1];
    begin = end;
  }
  field(table.name, {{"files", std::move(files)}});
}

std::vector<ProgramWriter::Table> ProgramWriter::printTables(bool areShort) {
  hasShortLists = areShort;
  std::vector<Table> tables;
  if (!program.functions.empty())
    tables.push_back(printFunctions());
  tables.push_back(printClasses());
  tables.push_back(printChannels());
  return tables;
}

void ProgramWriter::writeCommunicators() {
  Json list = Json::array();
  for (const Group &group : communicatorsOf(program)) {
    communicators[group] = static_cast<int64_t>(list.size());
    list.push_back(group);
  }
  field("communicators", list);
}

void ProgramWriter::writeTables() {
  for (const auto &[number, collective] : program.channels)
    described.try_emplace(collective.get(), Described{number});
  for (size_t i = 0; i < program.classes.size(); ++i)
    addUses(static_cast<int64_t>(i), program.classes[i].instructions);
  std::vector<Table> tables = printTables(/*areShort=*/true);
  size_t bytes = saved;
  for (const Table &table : tables)
    for (const std::string &element : table.elements)
      bytes += element.size();
  if (bytes > mostBytes) {
    for (const Table &table : tables)
      writeToFiles(table);
    return;
  }
  for (const Table &table : printTables(/*areShort=*/false)) {
    manifest.next(table.name);
    append(text, table, 0, table.elements.size());
  }
}

void ProgramWriter::writeHashes() {
  std::map<std::string, std::string> hashes;
  bool known = true;
  for (const std::optional<File> *file : {&program.kernels, &program.constants})
    if (*file) {
      hashes[(*file)->name] = (*file)->hash;
      known &= !(*file)->hash.empty();
    }
  for (const GpuCode &code : program.gpu)
    for (const auto *files : {&code.modules, &code.cubins})
      for (const File &file : *files) {
        hashes[file.name] = file.hash;
        known &= !file.hash.empty();
      }
  for (const auto &[name, table] : texts.tables)
    hashes[name] = system::Checksum::of(table);
  if (known)
    field("hashes", hashes);
}

ProgramText ProgramWriter::write() {
  field("format", "whale");
  field("version", formatVersion);
  field("target", program.target);
  field("name", program.name);
  field("ranks", format::toJson(program.ranks));
  if (!program.gpuKinds.empty()) {
    Json kinds = Json::object();
    for (const auto &[name, kind] : program.gpuKinds) {
      Json entry = {{"memory_bytes", kind.memoryBytes}};
      if (!kind.arch.empty())
        addMember(entry, "arch", kind.arch);
      addMember(kinds, name, std::move(entry));
    }
    field("gpu_kinds", kinds);
  }
  writeParameters();
  writeOrigins();
  writeTaskGraphs();
  writeCommunicators();
  writeTables();
  file("kernels", program.kernels);
  if (!program.kernelFeatures.empty())
    field("kernel_features", program.kernelFeatures);
  if (!program.gpu.empty()) {
    auto namesOf = [](const std::vector<File> &files) {
      Json names = Json::array();
      for (const File &file : files)
        names.push_back(file.name);
      return names;
    };
    Json codes = Json::array();
    for (const GpuCode &code : program.gpu) {
      Json entry = {{"arch", code.arch}, {"modules", namesOf(code.modules)}};
      if (!code.cubins.empty())
        addMember(entry, "cubins", namesOf(code.cubins));
      codes.push_back(std::move(entry));
    }
    field("gpu", codes);
  }
  if (program.kernelSignatures) {
    Json signatures = Json::object();
    for (const auto &[symbol, signature] : *program.kernelSignatures) {
      Json entry = {{"inputs", signature.inputs},
                    {"bytes", signature.bytes},
                    {"extent", signature.extent}};
      if (signature.gpu)
        addMember(entry, "gpu",
                  {{"module", signature.gpu->module},
                   {"blocks", signature.gpu->blocks},
                   {"threads", signature.gpu->threads}});
      if (!signature.inplace.empty())
        addMember(entry, "inplace", signature.inplace);
      addMember(signatures, symbol, std::move(entry));
    }
    field("kernel_signatures", signatures);
  }
  file("constants", program.constants);
  if (!program.cluster.empty())
    field("cluster", system::parseJson<Json>(program.cluster));
  field("plan", system::parseJson<Json>(program.plan));
  writeHashes();
  manifest.end();
  text += "\n";
  return std::move(texts);
}

static void inOrder(size_t count, const std::function<void(size_t)> &function) {
  for (size_t i = 0; i < count; ++i)
    function(i);
}

ProgramText writeProgram(const Program &program, const ForEach &forEach,
                         size_t mostBytes) {
  ForEach each = forEach ? forEach : ForEach(inOrder);
  return ProgramWriter(program, each, mostBytes).write();
}

} // namespace whale::format
