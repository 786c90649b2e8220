//===- Memory.h - Where the buffers of a class lie --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAMFORMAT_MEMORY_H
#define WHALE_LIB_PROGRAMFORMAT_MEMORY_H

#include "whale/ProgramFormat/Program.h"

namespace whale::format {

/// Bytes of one block of a rank's memory.
struct Range {
  Space space = Space::Arena;
  int64_t index = 0;
  int64_t begin = 0, end = 0;
  auto operator<=>(const Range &) const = default;

  bool overlaps(const Range &other) const {
    return space == other.space && index == other.index && begin < other.end &&
           other.begin < end && begin < end && other.begin < other.end;
  }
};

/// A buffer of a class; a result shares the memory of the argument that it is
/// an alias of.
Range rangeOf(const Program &program, const RankClass &rankClass,
              BufferIndex number);

} // namespace whale::format

#endif // WHALE_LIB_PROGRAMFORMAT_MEMORY_H
