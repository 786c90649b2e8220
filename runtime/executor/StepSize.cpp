//===- StepSize.cpp - How much a step does --------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the instructions of a class. Out: bounds that hold whatever the values
// are. A loop counts as often as it is run; one that runs as often as its
// values want has no bound, and counts once. Of a case the branches count
// together. Cost: once for a program, linear in its instructions and in the
// runs of its functions.
//
//===----------------------------------------------------------------------===//

#include "executor/StepSize.h"

#include "device/cpu/Work.h"

#include <algorithm>

namespace whale::runtime {

namespace {
struct Total {
  double work = 0;
  bool isSerial = true, isBounded = true;

  void add(const std::vector<Instruction> &instructions, double times = 1) {
    for (const Instruction &each : instructions)
      add(each, times);
  }
  void add(const Instruction &instruction, double times);
};
} // namespace

void Total::add(const Instruction &instruction, double times) {
  const auto &operation = instruction.operation;
  if (const auto *loop = std::get_if<While>(&operation)) {
    double trips = static_cast<double>(loop->trips.value_or(1));
    isBounded &= loop->trips.has_value();
    // Even an empty one asks in each turn whether to go on.
    constexpr double turn = 1000;
    work += times * trips * turn;
    add(loop->cond, times * trips);
    add(loop->body, times * trips);
  } else if (const auto *choice = std::get_if<Case>(&operation)) {
    for (const std::vector<Instruction> &branch : choice->branches)
      add(branch, times);
  } else if (const auto *run = std::get_if<Run>(&operation)) {
    add(run->function->instructions, times);
  } else {
    double own = workOf(operation);
    // A copy never takes more than the thread that makes it.
    if (!std::holds_alternative<Copy>(operation))
      isSerial &= threadsFor(own, std::numeric_limits<int64_t>::max()) == 1;
    // No instruction is for nothing: what gathers its operands takes a while.
    constexpr double leastWork = 1000;
    work += times * std::max(own, leastWork);
  }
}

StepSize findSize(const BoundClass &rankClass) {
  // Any machine does a tenth of what this one does, a few 1e9 a second.
  constexpr double mostWork = 1e8;
  Total total;
  total.add(rankClass.instructions);
  return {total.work <= mostWork, total.isBounded, total.isSerial};
}

} // namespace whale::runtime
