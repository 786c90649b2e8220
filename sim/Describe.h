//===- Describe.h - Parts of a simulated step as JSON -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_SIM_DESCRIBE_H
#define WHALE_SIM_DESCRIBE_H

#include "whale/Sim/Simulate.h"
#include "whale/System/Json.h"

namespace whale::sim {

using Json = nlohmann::ordered_json;

/// Lists of `what` and `seconds`, and of `what` and `step_time_s`.
Json describePath(const Simulation &simulation);
Json describeChanges(const Simulation &simulation);
/// A list as docs/simulator.md has it.
Json describeTaskGraphUses(const Simulation &simulation);

} // namespace whale::sim

#endif // WHALE_SIM_DESCRIBE_H
