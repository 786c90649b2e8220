//===- Plans.h - The plan of a module ---------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A module has the plan that it is given (`whale.given_plan`, the file's name
// and text), and the plan that is made of it (`whale.plan`). A pass that
// decides something asks for the first, and adds what it has decided to the
// second.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_PLANS_H
#define WHALE_TRANSFORMS_PLANS_H

#include "mlir/IR/BuiltinOps.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Planner/Plan.h"

namespace whale {

/// On the module: the name and the text of the plan that is to be carried out.
inline constexpr llvm::StringLiteral kGivenPlanAttr = "whale.given_plan";
/// On the module: the text of what was decided so far.
inline constexpr llvm::StringLiteral kPlanAttr = "whale.plan";

/// Gives the module a plan, and the options that this has. Emits an error, at
/// its place in the file, for what is no plan of this step and cluster. Both
/// are known by what they are before anything is decided.
llvm::LogicalResult setGivenPlan(mlir::ModuleOp module, const Cluster &cluster,
                                 llvm::StringRef file, llvm::StringRef text);
/// Sets options in the module's configuration.
void setOptions(mlir::ModuleOp module, llvm::ArrayRef<Plan::Option> options);
/// Begins the plan of a module of which nothing is decided.
void beginPlan(mlir::ModuleOp module, const Cluster &cluster);

/// Returns the plan that the module is given; nothing if it has none.
std::optional<Plan> getGivenPlan(mlir::ModuleOp module);
/// Returns what was decided so far.
Plan getPlan(mlir::ModuleOp module);
/// Adds to what was decided.
void addToPlan(mlir::ModuleOp module, llvm::function_ref<void(Plan &)> add);

/// Emits an error where the given plan says which devices TaskGraphs have, but
/// not which those of one of these have.
llvm::LogicalResult checkPlannedNames(mlir::ModuleOp module,
                                      llvm::ArrayRef<llvm::StringRef> names);

/// Emits an error at a place of the given plan.
mlir::InFlightDiagnostic emitPlanError(mlir::ModuleOp module,
                                       const system::TextPlace &place);

} // namespace whale

#endif // WHALE_TRANSFORMS_PLANS_H
