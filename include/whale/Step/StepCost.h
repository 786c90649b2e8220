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

/// Returns the seconds of a step for elements of `elementBytes` bytes.
double stepSeconds(const CostModel &model, const Step &step,
                   int64_t elementBytes, const Topology &topology = {});

} // namespace whale

#endif // WHALE_STEP_STEPCOST_H
