//===- CutCosts.h - What the units of a step cost ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_CUTTASKGRAPHS_CUTCOSTS_H
#define WHALE_LIB_TRANSFORMS_IMPORT_CUTTASKGRAPHS_CUTCOSTS_H

#include "StepUnits.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Planner/StageCut.h"
#include "whale/Planner/VirtualDevices.h"

namespace whale {

/// The problem of cutting a step into one stage for each of the virtual
/// devices. The optimizer's operations aren't counted: they take little, and
/// are in the stages of their parameters.
CutProblem makeCutProblem(const Step &step, const StepUnits &units,
                          mlir::func::FuncOp main, const Cluster &cluster,
                          llvm::ArrayRef<VirtualDevice> devices,
                          bool sharesState, int64_t microBatches);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_CUTTASKGRAPHS_CUTCOSTS_H
