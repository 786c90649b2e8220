//===- StepCost.h - Time of a resolver step ---------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Converts a step of the resolver to exchanges of the cost model.
//

#ifndef WHALE_STEP_STEPCOST_H
#define WHALE_STEP_STEPCOST_H

#include "whale/Placement/Cells.h"
#include "whale/Step/CostModel.h"

namespace whale {

/// What a rank takes for a collective besides its links, in seconds: to start
/// it and to be woken when it ends. One that is divided into several takes it
/// as often.
inline constexpr double kCollectiveStart = 2e-5;

/// Returns the seconds of a step for elements of `elementBytes` bytes.
double stepSeconds(const CostModel &model, const Step &step,
                   int64_t elementBytes, const Topology &topology = {});

} // namespace whale

#endif // WHALE_STEP_STEPCOST_H
