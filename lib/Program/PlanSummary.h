//===- PlanSummary.h - What the compiler decided ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_PLANSUMMARY_H
#define WHALE_LIB_PROGRAM_PLANSUMMARY_H

#include "Json.h"
#include "mlir/IR/BuiltinOps.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Program/MemoryNeeds.h"
#include "whale/Step/ProgramModel.h"
#include "whale/System/Json.h"

namespace whale {

/// Collects the manifest's `plan` from the levels that a module goes through:
/// TaskGraphs with strategies and devices, the placement of each argument,
/// collectives by kind, and what each device needs and spends its time with.
class PlanSummary {
public:
  /// From a module as it is read.
  void addInput(mlir::ModuleOp module);
  /// From a placed module (level 3).
  void addPlacement(mlir::ModuleOp module);
  /// The plan itself, from a module whose order of work is decided (level 4).
  void addDecisions(mlir::ModuleOp module);
  /// From a partitioned module (level 4).
  void addCollectives(mlir::ModuleOp module);
  /// From the program and a step of it, and what its devices need.
  void addDevices(const format::Program &program, const ModelledStep &step,
                  const Cluster &cluster, llvm::ArrayRef<MemoryNeed> needs);

  /// With a checksum for each member that follows from the decisions.
  std::string str() const;

private:
  Json plan = Json::object();
};

} // namespace whale

#endif // WHALE_LIB_PROGRAM_PLANSUMMARY_H
