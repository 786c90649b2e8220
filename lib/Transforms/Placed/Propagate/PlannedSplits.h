//===- PlannedSplits.h - Splits that plans name -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_PLANNEDSPLITS_H
#define WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_PLANNEDSPLITS_H

#include "whale/Planner/Plan.h"
#include "whale/Sharding/ParameterSplits.h"

namespace whale {

/// Returns what a plan says where each group is split along this one of its
/// pieces.
std::vector<Plan::Split> planOf(llvm::ArrayRef<ParameterGroup> groups,
                                llvm::ArrayRef<unsigned> pieces);

/// Finds the piece of each group that a given plan names. Emits an error at the
/// line of the plan where it says nothing of a parameter, or what cannot be.
llvm::LogicalResult takeSplits(const Plan &given, mlir::func::FuncOp function,
                               llvm::ArrayRef<ParameterGroup> groups,
                               llvm::SmallVectorImpl<unsigned> &pieces);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_PROPAGATE_PLANNEDSPLITS_H
