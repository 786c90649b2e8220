//===- Program.cpp - Names in programs --------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Program.h"

#include <algorithm>
#include <array>

namespace whale::format {

std::string_view name(Reduction reduction) {
  static constexpr std::array<std::string_view, 6> names = {
      "sum", "product", "min", "max", "and", "or"};
  return names[static_cast<size_t>(reduction)];
}

std::string_view name(Space space) {
  static constexpr std::array<std::string_view, 7> names = {
      "arena",         "argument", "result", "constant",
      "rank_constant", "operand",  "local"};
  return names[static_cast<size_t>(space)];
}

std::string_view name(Role role) {
  static constexpr std::array<std::string_view, 3> names = {"state", "batch",
                                                            "input"};
  return names[static_cast<size_t>(role)];
}

std::pair<size_t, size_t> findModule(const std::vector<GpuCode> &codes,
                                     int64_t module) {
  auto rest = static_cast<size_t>(module);
  size_t code = 0;
  while (rest >= codes[code].modules.size())
    rest -= codes[code++].modules.size();
  return {code, rest};
}

std::vector<Extent> extentsOf(const Function &function, Space space) {
  std::vector<Extent> extents;
  for (const BufferInfo &buffer : function.buffers) {
    if (buffer.space != space)
      continue;
    auto count = static_cast<size_t>(buffer.index) + 1;
    extents.resize(std::max(extents.size(), count));
    Extent &extent = extents[buffer.index];
    extent.bytes = buffer.bytes;
    extent.alignment = std::max(extent.alignment, byteSize(buffer.dtype));
  }
  return extents;
}

std::string tensorType(DType dtype, const Shape &shape) {
  std::string text(name(dtype));
  text += '[';
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(shape[i]);
  return text + ']';
}

Groups communicatorsOf(const Program &program) {
  Groups groups;
  std::set<const Collective *> seen;
  for (const auto &[number, collective] : program.channels)
    if (seen.insert(collective.get()).second)
      groups.insert(collective->groups.begin(), collective->groups.end());
  return groups;
}

int64_t byteCount(DType dtype, const Shape &shape) {
  return elementCount(shape) * byteSize(dtype);
}

} // namespace whale::format
