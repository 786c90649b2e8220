//===- Memory.cpp - What a rank's memory holds over time ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sim/Simulate.h"

#include "whale/ProgramFormat/LiveBytes.h"

#include <algorithm>

namespace whale::sim {

/// Of longer steps neighbours become one, which holds what the fuller one does.
static constexpr size_t mostPoints = 256;

std::vector<MemoryPoint> memoryOverTime(const Simulation &simulation,
                                        const ModelledRanks &ranks) {
  const format::Program &program = simulation.program->program;
  int64_t first = ranks.ranks.front();
  const format::RankClass &rankClass =
      program.classes[program.ranks[first].rankClass];
  std::vector<int64_t> live = format::findLiveBytesOfEach(program, rankClass);
  // What isn't in the arena is there from begin to end.
  RankBytes bytes = bytesOf(program, first);
  int64_t always =
      std::max(bytes.total(), simulation.peakBytes[first]) - bytes.arena;
  std::vector<MemoryPoint> points = {{0, always}};
  for (size_t i = 0; i < ranks.items.size(); ++i) {
    const format::Instruction *instruction = ranks.instructions[i];
    if (!instruction)
      continue;
    auto number =
        static_cast<size_t>(instruction - rankClass.instructions.data());
    MemoryPoint point = {ranks.times.items[i].begin, always + live[number]};
    if (points.back().seconds == point.seconds)
      points.back().bytes = std::max(points.back().bytes, point.bytes);
    else if (points.back().bytes != point.bytes)
      points.push_back(point);
  }
  size_t together = points.size() / mostPoints + 1;
  std::vector<MemoryPoint> fewer;
  for (size_t i = 0; i < points.size(); ++i)
    if (i % together == 0)
      fewer.push_back(points[i]);
    else
      fewer.back().bytes = std::max(fewer.back().bytes, points[i].bytes);
  return fewer;
}

} // namespace whale::sim
