//===- InstructionCosts.h - What instructions take --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_SCHEDULE_INSTRUCTIONCOSTS_H
#define WHALE_LIB_TRANSFORMS_SCHEDULE_INSTRUCTIONCOSTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Step/StepCost.h"

#include <memory>
#include <vector>

namespace whale {

/// The model of the program's cluster, and what instructions refer to.
class ProgramCosts {
public:
  /// Of a module without a cluster the `numRanks` ranks are equal.
  ProgramCosts(mlir::ModuleOp module, int64_t numRanks);

  /// Seconds of each of the transfers. Those that are alike are priced once.
  std::vector<double> secondsOf(llvm::ArrayRef<CollectiveOp> transfers) const;

  /// Seconds of a copy between host and device, while all devices of the node
  /// copy as much.
  double hostCopySeconds(CollectiveOp op, int64_t device) const;

  const CostModel &getModel() const { return *model; }
  /// Several threads may ask it.
  mlir::LockedSymbolTableCollection &symbols() { return lockedSymbols; }

private:
  mlir::MLIRContext *context;
  Cluster cluster;
  Topology topology;
  std::unique_ptr<CostModel> model;
  mlir::SymbolTableCollection allSymbols;
  mlir::LockedSymbolTableCollection lockedSymbols{allSymbols};
};

/// Seconds of instructions on one device. For one thread.
class InstructionCosts {
public:
  InstructionCosts(ProgramCosts &program, int64_t device)
      : program(program), device(device) {}

  /// An instruction with all that it calls and holds: a loop as often as it is
  /// known to turn (else once), of a choice the branch that takes longest.
  /// Transfers, and what is no instruction, take 0.
  double secondsOf(mlir::Operation *op);

private:
  double secondsOf(mlir::Region &region);

  ProgramCosts &program;
  int64_t device;
  llvm::DenseMap<mlir::Attribute, double> segmentSeconds;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_SCHEDULE_INSTRUCTIONCOSTS_H
