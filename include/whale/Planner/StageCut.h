//===- StageCut.h - Cutting a step into stages ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cuts a program in topological order into the stages of a pipeline, so that
// the slowest stage is as fast as possible. `docs/passes/cut.md` describes the
// model.
//

#ifndef WHALE_PLANNER_STAGECUT_H
#define WHALE_PLANNER_STAGECUT_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <limits>
#include <vector>

namespace whale {

/// A piece of the program that no cut divides: a forward operation and
/// everything that belongs to its stage, such as the operations of its
/// backward. Amounts are for the whole mini-batch.
struct CutUnit {
  /// By speed class, on one device that takes the whole mini-batch.
  llvm::SmallVector<double, 2> seconds;
  /// Of these, on a device of the first class, what is left when operations
  /// have become kernels.
  double fusedSeconds = 0;
  double flops = 0;
  /// Whether it has enough work for a stage: each stage gets at least one such
  /// unit.
  bool counts = false;
  /// Parameters and optimizer state of which this unit is the first user.
  int64_t stateBytes = 0;
  /// Their gradients.
  int64_t gradientBytes = 0;
  /// Results that are kept for the backward.
  int64_t activationBytes = 0;
};

/// A result of one unit that later units use.
struct CutValue {
  int64_t producer = 0;
  /// Units after the producer, in ascending order.
  llvm::SmallVector<int64_t, 2> users;
  /// Sent to each stage of a user, including the gradients sent back.
  double bytes = 0;
};

/// A device of a stage.
struct CutDevice {
  int64_t id = 0;
  /// Index into CutUnit::seconds.
  unsigned speedClass = 0;
  int64_t memoryBytes = std::numeric_limits<int64_t>::max();
  /// Corrects the estimate of the memory that it needs besides its state.
  double memoryScale = 1;
  /// What it needs in addition, whatever it computes.
  int64_t scratchBytes = 0;
};

/// The devices of one stage, and the link from the previous stage.
struct CutStage {
  llvm::SmallVector<CutDevice, 4> devices;
  /// Whether the devices share the parameters out (`split`); otherwise each has
  /// all.
  bool sharesState = false;
  /// Seconds for each message between this and the previous stage.
  double latency = 0;
  double secondsPerByte = 0;
};

struct CutProblem {
  std::vector<CutUnit> units;
  std::vector<CutValue> values;
  /// In the order of the pipeline.
  std::vector<CutStage> stages;
  int64_t microBatches = 1;
  /// The least part that each stage has of what an even cut would give it, both
  /// of the fused seconds and of the FLOPs: with less to do, it is not worth
  /// its devices.
  double leastShare = 0;
};

/// One stage of the result.
struct StageLoad {
  /// Units [begin, end).
  int64_t begin = 0, end = 0;
  double flops = 0;
  /// For the mini-batch, including communication.
  double seconds = 0;
  /// Between this stage and the previous ones, in both directions.
  double bytesIn = 0;
  int64_t stateBytes = 0;
  /// By how much the fullest device exceeds its memory with all its stages, as
  /// far as can be estimated before buffers are planned; 0 if everything fits.
  int64_t lacksBytes = 0;
};

/// The memory that a device is expected to need for all its stages.
struct CutNeed {
  int64_t device = 0;
  /// For parameters and optimizer state; for everything else, corrected.
  double stateBytes = 0, workingBytes = 0;
};

/// Returns the cut that exceeds memory the least; of these, the one whose
/// slowest device is fastest; of these, the most even one. A device with
/// several stages takes the time and memory of all of them. Moving any boundary
/// by one unit doesn't improve the result. If there are many positions to cut
/// at, the search starts from the best one in each of some hundreds of ranges
/// and from the positions at which the FLOPs are in proportion to the capacity
/// of the stages. Fails if fewer units count than there are stages, or if in
/// any cut some stage has too little to do, or its state doesn't fit its
/// devices.
llvm::Expected<std::vector<StageLoad>> cutStages(const CutProblem &problem);

/// Returns the loads of the stages that begin with these units, the first of
/// which is 0, in ascending order.
std::vector<StageLoad> loadsOfCut(const CutProblem &problem,
                                  llvm::ArrayRef<int64_t> begins);

/// Returns the most stages, at most as many as the problem has, that can all
/// have a part of `share` of what an even cut into as many would give them.
int64_t mostStagesOf(const CutProblem &problem, double share);

/// Returns the memory that each device needs with these stages, in the order of
/// device ids.
std::vector<CutNeed> needsOf(const CutProblem &problem,
                             llvm::ArrayRef<StageLoad> loads);

/// Returns the cut whose FLOPs are in proportion to the stages' capacity (the
/// speed of their devices on the whole program), ignoring communication and
/// memory. There must be at least as many counted units as stages.
std::vector<int64_t> proportionalCut(const CutProblem &problem);

} // namespace whale

#endif // WHALE_PLANNER_STAGECUT_H
