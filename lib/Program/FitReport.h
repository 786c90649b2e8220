//===- FitReport.h - What options save and cost -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_FITREPORT_H
#define WHALE_LIB_PROGRAM_FITREPORT_H

#include "FitOptions.h"
#include "Json.h"
#include "MemoryTable.h"
#include "whale/Step/MemoryFit.h"

#include <functional>

namespace whale {

/// A step as it is: what its devices need, and who holds what where memory is
/// fullest.
struct FittedStep {
  PlannedStep planned;
  /// Whether that is what was decided first: nothing was corrected.
  bool isFirst = false;
  std::vector<MemoryRow> held;
  /// What devices were expected to need.
  MemoryFit::Estimate expected;
};

/// The largest mini-batch for which the devices are expected to have enough
/// memory, by the lines of MemoryFit::Estimate, corrected by what the devices
/// of the plan need; 0 where none is known. Devices that share out samples take
/// what each has memory for, and the stages of a pipeline take the same.
int64_t estimateLargestBatch(const FittedStep &step, const Cluster &cluster);

/// Plans a step with a change; called by several threads at a time.
using PlanApart =
    std::function<PlannedStep(const StepChange &, int64_t spareBytes)>;

/// Says what the step needs; docs/memory.md lists the members. `input` is the
/// step as it was read.
Json describeFit(mlir::ModuleOp input, const Cluster &cluster,
                 const FittedStep &step);

/// Says of each option, one after the other, what the step would need with it,
/// and with combinations that let it fit. Cost: a plan for each, as many at a
/// time as there are cores.
void priceOptions(mlir::ModuleOp input, const Cluster &cluster,
                  const FittedStep &step, const PlanApart &plan,
                  llvm::function_ref<void(const Json &)> say);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_FITREPORT_H
