//===- FitOptions.h - Options that let a step need less ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_FITOPTIONS_H
#define WHALE_LIB_PROGRAM_FITOPTIONS_H

#include "mlir/IR/BuiltinOps.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Planner/FitSearch.h"
#include "whale/Planner/Plan.h"
#include "whale/Program/MemoryNeeds.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>
#include <vector>

namespace whale {

/// A change of a step, as a user could make it.
struct StepChange {
  std::vector<Plan::Option> options;
  /// Whether the default strategy becomes 'split'.
  bool splits = false;

  /// "zero.level v1 and num_micro_batch 8".
  std::string describe() const;
  void apply(mlir::ModuleOp module) const;
};

/// What a step comes to that was planned with a change.
struct PlannedStep {
  bool hasPlan() const { return !needs.empty(); }

  /// By device; empty if there is no such plan.
  std::vector<MemoryNeed> needs;
  /// By the model of the step.
  double seconds = 0;
  /// Why there is none.
  std::string error;
};

/// Plans the step with a change; all devices have that many bytes less than
/// they have.
using PlanChange =
    llvm::function_ref<PlannedStep(const StepChange &, int64_t spareBytes)>;

/// Of a plan, which devices have most and least room.
FitOutcome findOutcome(const PlannedStep &step, const Cluster &cluster);
/// Returns the device whose memory is fullest.
int64_t findFullest(llvm::ArrayRef<MemoryNeed> needs, const Cluster &cluster);

/// The samples of a step's mini-batch; 0 if no argument carries it.
int64_t countSamples(mlir::ModuleOp input);

/// The options that let a step need less memory and compute the same: more
/// micro-batches, state that replicas share out or hosts have, recomputation.
class FitOptions {
public:
  /// `input` is the step as it was read, `without` its plan without them.
  /// Options that the step has are `kept`, or else go on from what they are.
  FitOptions(mlir::ModuleOp input, const Cluster &cluster,
             const PlannedStep &without, bool kept);

  /// By option, what its levels are expected to save and take.
  llvm::ArrayRef<FitOption> getExpected() const { return expected; }
  /// The options of a combination.
  StepChange combine(llvm::ArrayRef<unsigned> levels) const;

private:
  struct Option {
    llvm::StringLiteral key;
    std::vector<Plan::Option::Value> values;
  };

  void addMicroBatches(mlir::ModuleOp input);
  void addZero(mlir::ModuleOp input);
  void addRecomputation(mlir::ModuleOp input);
  void addOffload(mlir::ModuleOp input);

  const Cluster &cluster;
  /// Of the device that is fullest without them.
  MemoryNeed need;
  double seconds;
  bool kept;
  std::vector<Option> options;
  std::vector<FitOption> expected;
};

} // namespace whale

#endif // WHALE_LIB_PROGRAM_FITOPTIONS_H
