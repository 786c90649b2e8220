//===- Memory.h - Memory ranges of a class's buffers ------------*- C++ -*-===//
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

/// A range of bytes of one block of a rank's memory.
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

/// Returns the memory of a buffer of a class; a result that is an alias has the
/// memory of its argument.
Range rangeOf(const Program &program, const RankClass &rankClass,
              BufferIndex number);

/// The same for a buffer of the function that `run` runs; if it is null, for
/// one of the class.
Range rangeOf(const Program &program, const RankClass &rankClass,
              const Run *run, BufferIndex number);

} // namespace whale::format

#endif // WHALE_LIB_PROGRAMFORMAT_MEMORY_H
