//===- Steps.h - What each rank does, one thing after another ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_MUTATION_STEPS_H
#define WHALE_UNITTESTS_MUTATION_STEPS_H

#include "Symbols.h"
#include "whale/ProgramFormat/Program.h"

#include <map>

namespace whale::transfers {

/// Names of operations: equal ones, whatever their buffers, have one name.
class Names {
public:
  uint64_t of(const format::Operation &operation);

private:
  std::vector<format::Operation> known;
};

/// An instruction, in the memory of one rank.
struct Step {
  enum Kind : uint8_t { Compute, Copy, Start, Wait } kind = Compute;
  /// Compute: of the operation.
  uint64_t name = 0;
  /// Compute and copy.
  std::vector<Range> reads, writes;
  static constexpr int64_t unknown = -1;
  /// Start: how many are before it. Wait: which start it is for, the last one
  /// of the transfer before it.
  int64_t transfer = 0, channel = 0;
  /// By part of the channel.
  struct Ends {
    std::optional<Range> src, dst;
  };
  std::vector<Ends> ends;
};

/// A rank's memory is one row of blocks: the arena, its part of each argument,
/// of each result that is no alias, the constants.
class RankMemory {
public:
  RankMemory(const format::Program &program, int64_t rank);

  Range rangeOf(format::BufferIndex index) const;
  /// The rank's part of a result; nothing if it has none.
  std::optional<Range> result(size_t index) const;
  Range constants(Range bytes) const;
  /// What has decided where the rank went on.
  Range decisions() const { return decided; }
  /// As it is when the program begins.
  const Contents &contents() const { return initial; }

private:
  int64_t add(Symbol symbol, int64_t bytes);

  const format::Program &program;
  const format::RankClass &rankClass;
  int64_t rank;
  std::vector<int64_t> arguments, results;
  int64_t constantsBegin = 0;
  std::map<format::BufferIndex, int64_t> rankConstants;
  Range decided;
  Contents initial;
};

/// The number of branches of the case that has most, or one.
size_t mostBranches(const format::Program &program);

/// What a rank does if loops run twice, and cases take this branch, or their
/// last one.
std::vector<Step> expand(const format::Program &program, int64_t rank,
                         const RankMemory &memory, size_t branch, Names &names);

} // namespace whale::transfers

#endif // WHALE_UNITTESTS_MUTATION_STEPS_H
