//===- WriteProgram.cpp - Print a program -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/WriteProgram.h"

#include "Writer.h"
#include "whale/ProgramFormat/Numeric.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace whale::format {

void addMember(Json &object, const std::string &key, Json value) {
  if (object.is_null())
    object = Json::object();
  object.get_ref<Json::object_t &>().emplace_back(key, std::move(value));
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
class ProgramWriter {
public:
  ProgramWriter(const Program &program, const ForEach &forEach)
      : program(program), forEach(forEach) {}

  std::string write();

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
  void writeFunctions();
  void writeClasses();
  /// Prints the elements of a list, each on its own.
  void writeList(const char *name, size_t count,
                 const std::function<Json(size_t)> &element);
  void writeChannels();
  void writeHashes();

  /// A collective, where it is described, and how each class takes part there.
  struct Described {
    int64_t number;
    std::map<int64_t, const Start *> uses = {};
    std::string printed = {};
  };
  void addUses(int64_t number, const std::vector<Instruction> &instructions);
  const Shape *ownShape(const Described &described, int64_t rank,
                        std::optional<BufferIndex> Start::*side) const;
  Json shapesToJson(const std::map<int64_t, Shape> &shapes,
                    const Described &described,
                    std::optional<BufferIndex> Start::*side) const;
  Json toJson(const Collective &collective, const Described &described) const;

  const Program &program;
  const ForEach &forEach;
  /// The first argument or result of a layout.
  std::map<const Layout *, std::string> namedLayouts;
  std::map<const Collective *, Described> described;
  std::string text;
  JsonLines manifest{text, /*isList=*/false, 0};
};
} // namespace

/// An element of a list or object that is a field.
static std::string printElement(const Json &json) {
  std::string out;
  printJson(out, json, /*depth=*/6, /*indent=*/2);
  return out;
}

Json ProgramWriter::toJson(const Parameter &parameter) {
  // On many ranks a list is long, and the same for many tensors.
  constexpr size_t manyRanks = 16;
  Json json = {{"name", parameter.name},
               {"label", parameter.label},
               {"dtype", format::name(parameter.dtype)},
               {"shape", parameter.shape},
               {"view", parameter.layout->view}};
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

void ProgramWriter::writeParameters() {
  Json arguments = Json::array(), results = Json::array();
  for (const Parameter &argument : program.arguments) {
    Json json = toJson(argument);
    json["role"] = format::name(argument.role);
    json["batch_dim"] = format::toJson(argument.batchDim);
    json["donated"] = argument.donated;
    json["fed_by"] = format::toJson(argument.fedBy);
    arguments.push_back(std::move(json));
  }
  for (const Parameter &result : program.results) {
    Json json = toJson(result);
    json["alias"] = format::toJson(result.alias);
    results.push_back(std::move(json));
  }
  field("arguments", arguments);
  field("results", results);
}

/// The elements of a dense tensor, as numbers.
static Json numbersToJson(DType dtype, const std::vector<uint8_t> &bytes) {
  return dispatch(dtype, [&]<typename T>() {
    Json list = Json::array();
    if constexpr (!isOpaque<T>)
      for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
        T element;
        std::memcpy(&element, &bytes[at], sizeof(T));
        auto value = Element<T>::load(element);
        using Compute = decltype(value);
        if constexpr (std::is_same_v<Compute, bool>)
          list.push_back(static_cast<int>(value));
        else if constexpr (std::is_arithmetic_v<Compute>)
          list.push_back(value);
        else
          list.push_back(value.real());
      }
    return list;
  });
}

/// Whether a buffer is all that the ranks of a class hold of an argument or a
/// result.
static bool isWhole(const BufferInfo &buffer, const Parameter &parameter,
                    const RankClass &rankClass) {
  return std::all_of(
      rankClass.ranks.begin(), rankClass.ranks.end(), [&](int64_t rank) {
        const std::optional<Box> &box = parameter.layout->boxes[rank];
        return (box ? box->elements() : 0) == elementCount(buffer.shape);
      });
}

/// Of a class; null for a function's buffers.
static Json toJson(const BufferInfo &buffer, const Program &program,
                   const RankClass *rankClass) {
  Json json = {{"space", name(buffer.space)}};
  switch (buffer.space) {
  case Space::Arena:
  case Space::Constant:
    json["offset"] = buffer.offset;
    break;
  case Space::Argument:
  case Space::Result:
    json["index"] = buffer.index;
    if (rankClass) {
      const auto &parameters =
          buffer.space == Space::Argument ? program.arguments : program.results;
      if (buffer.offset != 0 ||
          !isWhole(buffer, parameters[buffer.index], *rankClass))
        json["offset"] = buffer.offset;
    }
    break;
  case Space::Operand:
  case Space::Local:
    json["index"] = buffer.index;
    break;
  case Space::RankConstant: {
    Json values = Json::array();
    for (const std::vector<uint8_t> &bytes : buffer.values)
      values.push_back(numbersToJson(buffer.dtype, bytes));
    json["values"] = std::move(values);
    break;
  }
  }
  json["type"] = tensorType(buffer.dtype, buffer.shape);
  return json;
}

/// Adds what classes and functions both have.
static void addBody(Json &json, const Body &body, const Program &program,
                    const RankClass *rankClass) {
  Json buffers = Json::array();
  for (const BufferInfo &buffer : body.buffers)
    buffers.push_back(toJson(buffer, program, rankClass));
  json["buffers"] = std::move(buffers);
  json["instructions"] = toJson(body.instructions);
}

static Json toJson(const Function &function, const Program &program) {
  Json json = {{"operands", function.operands}, {"results", function.results}};
  addBody(json, function, program, /*rankClass=*/nullptr);
  return json;
}

static Json toJson(const RankClass &rankClass, const Program &program) {
  Json json = {{"ranks", rankClass.ranks},
               {"arena_bytes", rankClass.arenaBytes}};
  Json locals;
  for (const auto &[number, offsets] : rankClass.locals)
    addMember(locals, std::to_string(number), offsets);
  if (!locals.is_null())
    json["locals"] = std::move(locals);
  addBody(json, rankClass, program, &rankClass);
  return json;
}

void ProgramWriter::writeList(const char *name, size_t count,
                              const std::function<Json(size_t)> &element) {
  std::vector<std::string> printed(count);
  forEach(count, [&](size_t i) { printed[i] = printElement(element(i)); });
  manifest.next(name);
  JsonLines lines(text, /*isList=*/true, 1);
  for (const std::string &element : printed) {
    lines.next();
    text += element;
  }
  lines.end();
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

void ProgramWriter::writeFunctions() {
  if (!program.functions.empty())
    writeList("functions", program.functions.size(), [&](size_t i) {
      return format::toJson(program.functions[i], program);
    });
}

void ProgramWriter::writeClasses() {
  writeList("classes", program.classes.size(), [&](size_t i) {
    return format::toJson(program.classes[i], program);
  });
}

void ProgramWriter::addUses(int64_t number,
                            const std::vector<Instruction> &instructions) {
  for (const Instruction &instruction : instructions) {
    if (const auto *start = std::get_if<Start>(&instruction.operation)) {
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

/// The shape of a rank's buffer on one side of a channel; null if it has none.
const Shape *
ProgramWriter::ownShape(const Described &described, int64_t rank,
                        std::optional<BufferIndex> Start::*side) const {
  int64_t number = program.ranks[rank].rankClass;
  auto use = described.uses.find(number);
  if (use == described.uses.end() || !(use->second->*side))
    return nullptr;
  return &program.classes[number].buffers[*(use->second->*side)].shape;
}

Json ProgramWriter::shapesToJson(
    const std::map<int64_t, Shape> &shapes, const Described &described,
    std::optional<BufferIndex> Start::*side) const {
  Json json;
  for (const auto &[rank, shape] : shapes)
    if (const Shape *own = ownShape(described, rank, side);
        !own || *own != shape)
      addMember(json, std::to_string(rank), shape);
  return json;
}

static Json toJson(const std::vector<Cell> &cells) {
  Json list = Json::array();
  for (const Cell &cell : cells) {
    Json from = Json::array();
    for (const Cell::Contribution &part : cell.from)
      from.push_back(Json::array({part.peer, part.start}));
    list.push_back({{"dst", Json::array({cell.dstStart, cell.size})},
                    {"from", std::move(from)}});
  }
  return list;
}

/// How much further on in their sources than the cells of `base` those of
/// `list` begin, if that is all they differ in.
static std::optional<Shape> findMove(const std::vector<Cell> &base,
                                     const std::vector<Cell> &list) {
  std::optional<Shape> move;
  if (base.size() != list.size())
    return std::nullopt;
  for (size_t i = 0; i < base.size(); ++i) {
    const Cell &a = base[i], &b = list[i];
    if (a.dstStart != b.dstStart || a.size != b.size ||
        a.from.size() != b.from.size())
      return std::nullopt;
    for (size_t j = 0; j < a.from.size(); ++j) {
      if (a.from[j].peer != b.from[j].peer)
        return std::nullopt;
      Shape difference = b.from[j].start;
      for (size_t dim = 0; dim < difference.size(); ++dim)
        difference[dim] -= a.from[j].start[dim];
      if (move && *move != difference)
        return std::nullopt;
      move = std::move(difference);
    }
  }
  return move;
}

/// The cells of each rank. In an all-to-all of n ranks there are n times n,
/// and what differs between two ranks is mostly one number.
static Json cellsToJson(const Collective &collective) {
  // Where shares are uneven there are some kinds of lists. Comparing with more
  // would take longer than it can win.
  constexpr size_t mostBases = 4;
  Json cells = Json::object();
  std::map<const std::vector<Cell> *, int64_t> told;
  std::vector<std::pair<int64_t, const std::vector<Cell> *>> bases;
  for (const auto &[rank, list] : collective.cells) {
    Json entry;
    auto [it, isNew] = told.try_emplace(list.get(), rank);
    if (!isNew) {
      entry = it->second;
    } else {
      for (const auto &[other, base] : bases)
        if (std::optional<Shape> move = findMove(*base, *list)) {
          bool isSame = std::all_of(move->begin(), move->end(),
                                    [](int64_t by) { return by == 0; });
          entry =
              isSame ? Json(other) : Json{{"like", other}, {"moved", *move}};
          told.erase(it);
          break;
        }
      if (entry.is_null()) {
        entry = toJson(*list);
        if (bases.size() < mostBases)
          bases.emplace_back(rank, list.get());
      }
    }
    addMember(cells, std::to_string(rank), std::move(entry));
  }
  return cells;
}

Json ProgramWriter::toJson(const Collective &collective,
                           const Described &described) const {
  Json json = {{"kind", collective.kind},
               {"reduction", collective.reduction
                                 ? Json(format::name(*collective.reduction))
                                 : Json()},
               {"dtype", format::name(collective.dtype)},
               {"participants", collective.participants}};
  if (!collective.groups.empty()) {
    json["groups"] = collective.groups;
    return json;
  }
  json["cells"] = cellsToJson(collective);
  Json sources = shapesToJson(collective.srcShapes, described, &Start::src);
  Json targets = shapesToJson(collective.dstShapes, described, &Start::dst);
  if (!sources.is_null())
    json["src_shapes"] = std::move(sources);
  if (!targets.is_null())
    json["dst_shapes"] = std::move(targets);
  return json;
}

void ProgramWriter::writeChannels() {
  for (const auto &[number, collective] : program.channels)
    described.try_emplace(collective.get(), Described{number});
  for (size_t i = 0; i < program.classes.size(); ++i)
    addUses(static_cast<int64_t>(i), program.classes[i].instructions);
  std::vector<std::pair<const Collective *const, Described> *> told;
  for (auto &entry : described)
    told.push_back(&entry);
  forEach(told.size(), [&](size_t i) {
    auto &[collective, channel] = *told[i];
    channel.printed = printElement(toJson(*collective, channel));
  });
  manifest.next("channels");
  JsonLines lines(text, /*isList=*/false, 1);
  for (const auto &[number, collective] : program.channels) {
    lines.next(std::to_string(number));
    const Described &channel = described.at(collective.get());
    text += number == channel.number
                ? channel.printed
                : printElement({{"same_as", channel.number}});
  }
  lines.end();
}

void ProgramWriter::writeHashes() {
  std::map<std::string, std::string> hashes;
  bool known = true;
  for (const std::optional<File> *file : {&program.kernels, &program.constants})
    if (*file) {
      hashes[(*file)->name] = (*file)->hash;
      known &= !(*file)->hash.empty();
    }
  if (known)
    field("hashes", hashes);
}

std::string ProgramWriter::write() {
  field("format", "whale");
  field("version", formatVersion);
  field("target", program.target);
  field("name", program.name);
  field("ranks", format::toJson(program.ranks));
  writeParameters();
  writeOrigins();
  writeFunctions();
  writeClasses();
  writeChannels();
  file("kernels", program.kernels);
  if (program.kernelSignatures) {
    Json signatures = Json::object();
    for (const auto &[symbol, signature] : *program.kernelSignatures)
      addMember(signatures, symbol,
                {{"inputs", signature.inputs},
                 {"bytes", signature.bytes},
                 {"extent", signature.extent}});
    field("kernel_signatures", signatures);
  }
  file("constants", program.constants);
  field("plan", Json::parse(program.plan));
  writeHashes();
  manifest.end();
  return std::move(text) + "\n";
}

static void inOrder(size_t count, const std::function<void(size_t)> &function) {
  for (size_t i = 0; i < count; ++i)
    function(i);
}

std::string writeProgram(const Program &program, const ForEach &forEach) {
  ForEach each = forEach ? forEach : ForEach(inOrder);
  return ProgramWriter(program, each).write();
}

} // namespace whale::format
