//===- WriteBuffers.cpp - Print the buffers of a program --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Writer.h"
#include "whale/ProgramFormat/Numeric.h"

#include <algorithm>
#include <cstring>

namespace whale::format {

/// Returns the elements of a dense tensor as numbers.
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

/// Converts a buffer of a class; `rankClass` is null for a function's buffers.
/// A buffer without its type is of that of the buffer before.
static Json toJson(const BufferInfo &buffer, bool hasType,
                   const Program &program, const RankClass *rankClass) {
  Json where = buffer.index;
  std::optional<int64_t> offset;
  switch (buffer.space) {
  case Space::Arena:
  case Space::Constant:
    where = buffer.offset;
    break;
  case Space::Argument:
  case Space::Result:
    if (rankClass) {
      const auto &parameters =
          buffer.space == Space::Argument ? program.arguments : program.results;
      if (buffer.offset != 0 ||
          !isWhole(buffer, parameters[buffer.index], *rankClass))
        offset = buffer.offset;
    }
    break;
  case Space::Operand:
  case Space::Local:
    break;
  case Space::RankConstant:
    where = Json::array();
    for (const std::vector<uint8_t> &bytes : buffer.values)
      where.push_back(numbersToJson(buffer.dtype, bytes));
    break;
  }
  Json json;
  addMember(json, std::string(name(buffer.space)), std::move(where));
  if (offset)
    addMember(json, "offset", *offset);
  if (hasType)
    addMember(json, "type", tensorType(buffer.dtype, buffer.shape));
  if (buffer.value)
    addMember(json, "value", *buffer.value);
  return json;
}

Json buffersToJson(const std::vector<BufferInfo> &buffers,
                   const Program &program, const RankClass *rankClass) {
  Json list = Json::array();
  const BufferInfo *before = nullptr;
  for (const BufferInfo &buffer : buffers) {
    bool isSame = before && before->dtype == buffer.dtype &&
                  before->shape == buffer.shape;
    list.push_back(toJson(buffer, !isSame, program, rankClass));
    before = &buffer;
  }
  return list;
}

} // namespace whale::format
