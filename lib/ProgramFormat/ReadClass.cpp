//===- ReadClass.cpp - Decode the buffers of a rank class -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the JSON of a rank class, and what the readers before have made of
// arguments, results, ranks and functions. Out: the RankClass, with its
// buffers, locals, runs and instructions; or an error that names the field.
//
// This file decodes buffers: types, offsets, per-rank constants. It checks that
// each is inside its memory and that shards match the boxes of the class's
// ranks. Locals and runs are ReadFunction.cpp's, instructions
// ReadInstructions.cpp's.
//
// Cost: linear in the size of the text; besides, each buffer in an argument or
// result is compared with the box of each rank of the class: buffers times
// ranks.
//
//===----------------------------------------------------------------------===//

#include "Reader.h"
#include "whale/ProgramFormat/Numeric.h"
#include "whale/System/Error.h"

#include <cmath>
#include <cstring>
#include <tuple>

namespace whale::format {

namespace {
/// Writes a JSON number as an element of a dtype.
struct EncodeNumber {
  const Field &field;
  uint8_t *out;

  template <typename T>
  void operator()() const {
    const nlohmann::json &value = field.json();
    if constexpr (isOpaque<T>) {
      field.fail("numbers of this element type cannot be written");
    } else {
      using Compute = typename Element<T>::Compute;
      T element;
      if constexpr (std::is_integral_v<Compute>) {
        if (value.is_boolean())
          element = Element<T>::store(static_cast<Compute>(value.get<bool>()));
        else if (value.is_number_unsigned())
          element =
              Element<T>::store(static_cast<Compute>(value.get<uint64_t>()));
        else if (value.is_number_integer())
          element =
              Element<T>::store(static_cast<Compute>(value.get<int64_t>()));
        else
          field.fail("must be an integer");
        auto back = Element<T>::load(element);
        bool same = value.is_boolean() ? back == Compute(value.get<bool>())
                    : value.is_number_unsigned()
                        ? std::cmp_equal(widen(back), value.get<uint64_t>())
                        : std::cmp_equal(widen(back), value.get<int64_t>());
        if (!same)
          field.fail("does not fit in its element type");
      } else {
        element = Element<T>::store(static_cast<Compute>(field.number()));
        // A number that is too large became an infinity or NaN.
        if (!std::isfinite(std::real(Element<T>::load(element))))
          field.fail("does not fit in its element type");
      }
      std::memcpy(out, &element, sizeof(element));
    }
  }

  /// std::cmp_equal doesn't accept bool.
  template <typename C>
  static auto widen(C value) {
    if constexpr (std::is_same_v<C, bool>)
      return static_cast<int>(value);
    else
      return value;
  }
};
} // namespace

static std::vector<std::vector<uint8_t>>
readValues(const Field &field, const BufferInfo &buffer, size_t ranks) {
  if (field.size() != ranks)
    field.fail("must have one list for each of the " + std::to_string(ranks) +
               " ranks of the class");
  std::vector<std::vector<uint8_t>> result;
  int64_t bytes = byteSize(buffer.dtype);
  for (size_t rank = 0; rank < ranks; ++rank) {
    Field list = field[rank];
    if (static_cast<int64_t>(list.size()) != elementCount(buffer.shape))
      list.fail("must have " + std::to_string(elementCount(buffer.shape)) +
                " elements");
    std::vector<uint8_t> &values = result.emplace_back(buffer.bytes);
    for (size_t i = 0; i < list.size(); ++i) {
      Field number = list[i];
      dispatch(buffer.dtype, EncodeNumber{number, &values[i * bytes]});
    }
  }
  return result;
}

/// Checks a buffer that is a shard, or a part of one if it has an offset,
/// against the boxes of the class's ranks.
static void checkShard(const Field &field, const BufferInfo &buffer,
                       const Parameter &parameter,
                       const std::vector<int64_t> &ranks) {
  std::optional<Field> offset = field.find("offset");
  if (buffer.dtype != parameter.dtype)
    typeOf(field).fail("must have the elements of " + parameter.name + ": " +
                       std::string(name(parameter.dtype)));
  for (int64_t rank : ranks) {
    const std::optional<Box> &box = parameter.layout->boxes[rank];
    int64_t elements = box ? box->elements() : 0;
    if (offset) {
      int64_t bytes = elements * byteSize(buffer.dtype);
      if (buffer.offset > bytes || buffer.bytes > bytes - buffer.offset)
        offset->fail("the buffer's " + std::to_string(buffer.bytes) +
                     " bytes reach out of the " + std::to_string(bytes) +
                     " of " + parameter.name + " on rank " +
                     std::to_string(rank));
    } else if (elements != elementCount(buffer.shape)) {
      typeOf(field).fail("has " + std::to_string(elementCount(buffer.shape)) +
                         " elements, the box of " + parameter.name +
                         " on rank " + std::to_string(rank) + " has " +
                         std::to_string(elements));
    }
  }
}

int64_t readOffset(const Field &field, const BufferInfo &buffer) {
  // The limit is low enough that sums of offsets and sizes don't overflow.
  int64_t offset = field.integer(0, int64_t(1) << 60);
  if (offset % byteSize(buffer.dtype))
    field.fail("must be a multiple of the element size");
  return offset;
}

Field typeOf(const Field &buffer) {
  return buffer.find("type").value_or(buffer);
}

BufferInfo readTensor(const Field &field, std::initializer_list<Space> spaces,
                      const std::vector<BufferInfo> &before) {
  std::string known;
  const Space *found = nullptr;
  for (const Space &space : spaces) {
    bool isLast = &space == spaces.end() - 1;
    known += std::string(known.empty() ? "'"
                         : isLast      ? " or '"
                                       : ", '") +
             std::string(name(space)) + "'";
    if (!field.find(std::string(name(space))))
      continue;
    if (found)
      field.fail("is both '" + std::string(name(*found)) + "' and '" +
                 std::string(name(space)) + "'");
    found = &space;
  }
  if (!found)
    field.fail("must have a field " + known);
  BufferInfo buffer;
  buffer.space = *found;
  if (before.empty() || field.json().contains("type")) {
    std::tie(buffer.dtype, buffer.shape) = field.at("type").tensorType();
  } else {
    buffer.dtype = before.back().dtype;
    buffer.shape = before.back().shape;
  }
  buffer.bytes = byteCount(buffer.dtype, buffer.shape);
  return buffer;
}

BufferInfo ProgramReader::readBuffer(const Field &field,
                                     const RankClass &rankClass) {
  BufferInfo buffer = readTensor(field,
                                 {Space::Arena, Space::Argument, Space::Result,
                                  Space::Constant, Space::RankConstant},
                                 rankClass.buffers);
  Field where = field.at(std::string(name(buffer.space)));
  auto readIndex = [&](const std::vector<Parameter> &parameters) {
    buffer.index =
        where.integer(0, static_cast<int64_t>(parameters.size()) - 1);
    if (auto offset = field.find("offset"))
      buffer.offset = readOffset(*offset, buffer);
    checkShard(field, buffer, parameters[buffer.index], rankClass.ranks);
  };
  if (buffer.space == Space::Arena) {
    buffer.offset = readOffset(where, buffer);
    if (buffer.offset > rankClass.arenaBytes ||
        buffer.bytes > rankClass.arenaBytes - buffer.offset)
      where.fail("the buffer's " + std::to_string(buffer.bytes) +
                 " bytes reach out of the arena of " +
                 std::to_string(rankClass.arenaBytes));
  } else if (buffer.space == Space::Argument) {
    readIndex(program.arguments);
  } else if (buffer.space == Space::Result) {
    readIndex(program.results);
  } else if (buffer.space == Space::Constant) {
    buffer.offset = readOffset(where, buffer);
  } else {
    buffer.values = readValues(where, buffer, rankClass.ranks.size());
  }
  if (auto value = field.find("value"))
    buffer.value = value->integer(0, int64_t(1) << 56);
  return buffer;
}

void ProgramReader::readClass(const Field &field, size_t number) {
  RankClass &rankClass = program.classes[number];
  if (auto target = field.find("target")) {
    if (program.target != "cuda")
      target->fail("only a program for 'cuda' has it");
    rankClass.isForProcessor = target->text() == "cpu";
    if (!rankClass.isForProcessor)
      rankClass.arch = readArchitecture(*target);
  }
  rankClass.arenaBytes = field.at("arena_bytes").integer(0, int64_t(1) << 56);
  if (auto workspace = field.find("workspace_bytes"))
    rankClass.workspaceBytes = workspace->integer(0, int64_t(1) << 56);
  Field buffers = field.at("buffers");
  for (size_t i = 0; i < buffers.size(); ++i)
    rankClass.buffers.push_back(readBuffer(buffers[i], rankClass));
  auto locals = field.find("locals");
  if (locals)
    readLocals(*locals, rankClass);
  InstructionReader reader(*this, rankClass, number);
  std::set<std::pair<int64_t, int64_t>> used;
  if (auto runs = field.find("runs")) {
    reader.readRuns(*runs);
    for (const Run &run : reader.getRuns())
      used.insert({run.function, run.layout});
  }
  for (const auto &[function, layouts] : rankClass.locals)
    for (size_t i = 0; i < layouts.size(); ++i)
      if (!used.contains({function, static_cast<int64_t>(i)}))
        locals->at(std::to_string(function))[i].fail(
            "the class does not run function " + std::to_string(function) +
            " with this layout");
  auto moments = field.find("moments");
  if (moments)
    reader.readMoments(*moments);
  rankClass.instructions = reader.readList(field.at("instructions"));
  if (moments)
    reader.finishMoments(*moments);
}

} // namespace whale::format
