//===- RankMemory.cpp - What a rank keeps from run to run -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a rank's class, and its device. Out: constants in the device's memory,
// where each buffer of the class is in these and in the rank's arena, and the
// stretches of instructions that the device may record. All of it is given back
// where another program needs the memory, and made again in the next run.
//
//===----------------------------------------------------------------------===//

#include "executor/Executor.h"

#include "whale/ProgramFormat/ConstantBytes.h"

#include <algorithm>
#include <limits>

namespace whale::runtime {

/// How many operations a run of an instruction has, in loops that are counted,
/// too; infinite where that depends on data, or other ranks have a part in it.
static double countStraight(const Instruction &instruction) {
  constexpr double never = std::numeric_limits<double>::infinity();
  auto countAll = [](const std::vector<Instruction> &instructions) {
    double count = 0;
    for (const Instruction &each : instructions)
      count += countStraight(each);
    return count;
  };
  const auto &operation = instruction.operation;
  if (const auto *loop = std::get_if<While>(&operation))
    return loop->trips ? static_cast<double>(*loop->trips) *
                             std::max(countAll(loop->body), 1.0)
                       : never;
  if (const auto *run = std::get_if<Run>(&operation))
    return countAll(run->function->instructions);
  return std::holds_alternative<Case>(operation) ||
                 std::holds_alternative<Start>(operation) ||
                 std::holds_alternative<Wait>(operation)
             ? never
             : 1;
}

/// Calls `add` with each longest stretch of instructions that does the same in
/// each run, of as many operations as are worth it and a device may record.
static void
forEachStretch(const std::vector<Instruction> &instructions,
               const std::function<void(size_t begin, size_t end)> &add) {
  constexpr double least = 3, most = 1 << 14;
  double count = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= instructions.size(); ++i) {
    double more = i < instructions.size()
                      ? countStraight(instructions[i])
                      : std::numeric_limits<double>::infinity();
    if (count + more <= most) {
      count += more;
      continue;
    }
    if (count >= least)
      add(begin, i);
    begin = more <= most ? i : i + 1;
    count = more <= most ? more : 0;
  }
}

void Executor::bindConstants(int64_t rank) {
  Rank &self = states[rank];
  const format::RankClass &rankClass = program.classOf(rank);
  const std::vector<Instruction> &instructions =
      program.boundClassOf(rank).instructions;
  // There may have been no memory for all of it before.
  self.stretches.clear();
  self.rankConstants.clear();
  forEachStretch(instructions, [&](size_t begin, size_t end) {
    self.stretches.push_back({begin, end});
  });
  self.isStraight =
      self.stretches.size() == 1 &&
      self.stretches[0].end - self.stretches[0].begin == instructions.size();
  self.fixedBytes =
      rankClass.arenaBytes + format::constantBytes(program.program, rankClass);
  auto position =
      std::lower_bound(rankClass.ranks.begin(), rankClass.ranks.end(), rank) -
      rankClass.ranks.begin();
  for (size_t i = 0; i < rankClass.buffers.size(); ++i)
    if (const BufferInfo &buffer = rankClass.buffers[i];
        buffer.space == Space::RankConstant)
      self.rankConstants[i] = self.device->adoptConstants(
          buffer.values[position].data(), buffer.bytes);
  // Last: it says that they are there.
  self.constants = self.device->adoptConstants(
      constants.data(), static_cast<int64_t>(constants.size()));
}

/// Allocates what the rank keeps from run to run, and says where all is but
/// arguments and results, unless it is where it was.
void Executor::bindFixed(int64_t rank) {
  Rank &self = states[rank];
  const format::RankClass &rankClass = program.classOf(rank);
  const Ranks::Rank &memory =
      shared->reserve(rank, *self.device, rankClass.arenaBytes);
  if (!self.constants)
    bindConstants(rank);
  if (self.version == memory.version)
    return;
  self.version = memory.version;
  self.regions.clear();
  for (size_t i = 0; i < rankClass.buffers.size(); ++i) {
    const BufferInfo &buffer = rankClass.buffers[i];
    Region &region = self.regions.emplace_back();
    if (buffer.space == Space::Arena)
      region = {memory.arena.get(), buffer.offset};
    else if (buffer.space == Space::Constant)
      region = {self.constants.get(), buffer.offset};
    else if (buffer.space == Space::RankConstant)
      region = {self.rankConstants.at(i).get(), 0};
  }
  for (const FunctionBuffer &buffer :
       program.boundClassOf(rank).functionBuffers)
    self.regions.push_back({buffer.space == Space::Arena ? memory.arena.get()
                                                         : self.constants.get(),
                            buffer.offset});
}

bool Executor::giveBack(int64_t rank) {
  return shared->whileNotRunning(*this, [&](bool areIdle) {
    Rank &self = states[rank];
    bool hasAny = self.constants != nullptr;
    if (hasAny) {
      self.device->giveBack();
      self.constants.reset();
      self.rankConstants.clear();
      self.regions.clear();
      self.stretches.clear();
      self.version = 0;
    }
    return (areIdle && shared->dropMemory(rank)) || hasAny;
  });
}

void Executor::giveBackArena(int64_t rank) {
  shared->whileNotRunning(*this, [&](bool areIdle) {
    const std::shared_ptr<Buffer> &arena = shared->rank(rank).arena;
    return areIdle && arena &&
           arena->bytes <= program.classOf(rank).arenaBytes &&
           shared->dropMemory(rank);
  });
}

} // namespace whale::runtime
