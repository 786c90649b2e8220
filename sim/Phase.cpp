//===- Phase.cpp - What part of training an instruction is for ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Describe.h"
#include "whale/Report/TraceNames.h"

#include <algorithm>
#include <map>

namespace whale::sim {

std::string phaseOf(const format::Program &program,
                    const format::Instruction &instruction) {
  if (instruction.origin)
    return showLabel(program.origins[*instruction.origin].label, "").phase;
  const auto *run = std::get_if<format::Run>(&instruction.operation);
  if (!run)
    return "";
  const format::Function &function = program.functions[run->function];
  std::map<std::string, double> work;
  for (const format::Instruction &inner : function.instructions)
    if (inner.origin)
      if (std::optional<OpCost> cost = workOf(inner, function, program))
        work[phaseOf(program, inner)] += cost->flops + cost->bytes;
  auto most = std::ranges::max_element(
      work, {}, [](const auto &entry) { return entry.second; });
  return most == work.end() ? "" : most->first;
}

} // namespace whale::sim
