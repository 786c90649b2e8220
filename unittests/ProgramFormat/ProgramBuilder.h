//===- ProgramBuilder.h - Programs of transfers and copies ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_PROGRAMFORMAT_PROGRAMBUILDER_H
#define WHALE_UNITTESTS_PROGRAMFORMAT_PROGRAMBUILDER_H

#include "whale/ProgramFormat/CheckTransfers.h"

namespace whale::format {

/// Two ranks of one class each, or both of one; buffers of 64 bytes at offsets
/// 0, 64, ... of the arena.
class ProgramBuilder {
public:
  explicit ProgramBuilder(size_t classes) {
    program.classes.resize(classes);
    for (int64_t rank = 0; rank < 2; ++rank) {
      program.ranks.push_back({});
      program.ranks.back().rankClass = classes == 1 ? 0 : rank;
      program.classes[program.ranks.back().rankClass].ranks.push_back(rank);
    }
    starts.resize(classes);
    for (RankClass &rankClass : program.classes)
      for (int64_t i = 0; i < 8; ++i)
        rankClass.buffers.push_back(
            {Space::Arena, i * 64, 0, 64, DType::F32, {16}, {}});
  }

  ProgramBuilder &channel(int64_t number, std::string kind) {
    Collective collective;
    collective.kind = std::move(kind);
    collective.participants = {0, 1};
    program.channels[number] =
        std::make_shared<Collective>(std::move(collective));
    return *this;
  }

  std::vector<Instruction> &list(size_t number) {
    return program.classes[number].instructions;
  }
  void start(size_t number, int64_t channel, std::optional<BufferIndex> src,
             std::optional<BufferIndex> dst) {
    list(number).push_back(
        {.operation = Start{channel, starts[number]++, {{src, dst}}}});
  }
  void wait(size_t number, int64_t transfer) {
    list(number).push_back({.operation = Wait{transfer}});
  }
  void copy(size_t number, BufferIndex src, BufferIndex dst) {
    list(number).push_back({.operation = Copy{src, dst}});
  }

  Program program;
  std::vector<int64_t> starts;
};

inline Instruction makeCopy(BufferIndex src, BufferIndex dst) {
  return {.operation = Copy{src, dst}};
}

/// An instruction in loops inside of one another, in conditions and bodies by
/// turns: each reads the predicate.
inline Instruction makeDeepLoops(Instruction inner, BufferIndex predicate) {
  for (int depth = 0; depth < 128; ++depth) {
    While loop;
    loop.predicate = predicate;
    (depth % 2 ? loop.cond : loop.body).push_back(std::move(inner));
    inner = {.operation = std::move(loop)};
  }
  return inner;
}

/// Empty without a fault.
inline std::string describe(const std::optional<Fault> &fault) {
  return fault ? fault->path + ": " + fault->what : "";
}

} // namespace whale::format

#endif // WHALE_UNITTESTS_PROGRAMFORMAT_PROGRAMBUILDER_H
