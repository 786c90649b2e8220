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

} // namespace whale::format
