//===- Memory.cpp - Memory ranges of a class's buffers ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

namespace whale::format {

Range rangeOf(const Program &program, const RankClass &rankClass,
              BufferIndex number) {
  const BufferInfo &buffer = rankClass.buffers[number];
  Range range = {buffer.space, buffer.index, buffer.offset,
                 buffer.offset + buffer.bytes};
  if (buffer.space == Space::RankConstant)
    range.index = number;
  if (buffer.space == Space::Result)
    if (auto alias = program.results[buffer.index].alias)
      range.space = Space::Argument, range.index = *alias;
  return range;
}

Range rangeOf(const Program &program, const RankClass &rankClass,
              const Run *run, BufferIndex number) {
  if (!run)
    return rangeOf(program, rankClass, number);
  const BufferInfo &info = program.functions[run->function].buffers[number];
  switch (info.space) {
  case Space::Operand:
    return rangeOf(program, rankClass, run->operands[info.index]);
  case Space::Result:
    return rangeOf(program, rankClass, run->results[info.index]);
  case Space::Local: {
    int64_t offset =
        rankClass.locals.at(run->function)[run->layout][info.index];
    return {Space::Arena, 0, offset, offset + info.bytes};
  }
  default:
    return {info.space, 0, info.offset, info.offset + info.bytes};
  }
}

} // namespace whale::format
