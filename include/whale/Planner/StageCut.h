//===- StageCut.h - Where to cut a step into stages -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cuts a program in topological order into the stages of a pipeline, so that
// the slowest stage is as fast as can be. `docs/passes/cut.md` describes the
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

/// A piece of the program that no cut divides: a forward operation and all that
/// belongs to its stage, such as the operations of its backward.
/// Amounts are for the whole mini-batch.
struct CutUnit {
  /// On one device of each speed class that takes the whole mini-batch.
  llvm::SmallVector<double, 2> seconds;
  double flops = 0;
  /// Whether it makes a stage worth having: each gets at least one of these.
  bool counts = false;
  /// Parameters and optimizer state whose first user it is.
  int64_t stateBytes = 0;
  /// Their gradients.
  int64_t gradientBytes = 0;
  /// Results that are kept for the backward.
  int64_t activationBytes = 0;
};

/// What one unit makes and later ones use.
struct CutValue {
  int64_t producer = 0;
  /// Units after the producer, in ascending order.
  llvm::SmallVector<int64_t, 2> users;
  /// Sent to each stage of a user, gradients on their way back included.
  double bytes = 0;
};

/// A device of a stage.
struct CutDevice {
  int64_t id = 0;
  /// Index into CutUnit::seconds.
  unsigned speedClass = 0;
  int64_t memoryBytes = std::numeric_limits<int64_t>::max();
  /// Corrects the estimate of what it needs besides its state.
  double memoryScale = 1;
};

/// The devices of one stage, and the way from the stage before.
struct CutStage {
  llvm::SmallVector<CutDevice, 4> devices;
  /// The devices share the parameters out (`split`); else each has all.
  bool sharesState = false;
  /// Seconds for each message from the stage before, or to it.
  double latency = 0;
  double secondsPerByte = 0;
};

struct CutProblem {
  std::vector<CutUnit> units;
  std::vector<CutValue> values;
  /// In the order of the pipeline.
  std::vector<CutStage> stages;
  int64_t microBatches = 1;
};

/// One stage of the answer.
struct StageLoad {
  /// Units [begin, end).
  int64_t begin = 0, end = 0;
  double flops = 0;
  /// For the mini-batch, communication included.
  double seconds = 0;
  /// Between this stage and those before, in both directions.
  double bytesIn = 0;
  int64_t stateBytes = 0;
  /// By how much the fullest device is over its memory with all its stages, as
  /// far as is known before buffers are planned; 0 where all fits.
  int64_t lacksBytes = 0;
};

/// What a device is expected to need for all its stages.
struct CutNeed {
  int64_t device = 0;
  /// Of parameters and optimizer state; of all else, corrected.
  double stateBytes = 0, workingBytes = 0;
};

/// The cut with the least over-full memory, of these with the fastest slowest
/// device, of these the most even one; a device of several stages takes and
/// needs what all of them do. No boundary can be moved by a unit to get a
/// better one. Where there are many positions to cut at, the search starts from
/// the best in each of some hundreds of ranges, and those where the FLOPs are
/// in proportion to the capacity of the stages. Fails if there are fewer units
/// that count than stages, or if not even the state of a stage fits its
/// devices, however it is cut.
llvm::Expected<std::vector<StageLoad>> cutStages(const CutProblem &problem);

/// What each device needs with these stages, in the order of device ids.
std::vector<CutNeed> needsOf(const CutProblem &problem,
                             llvm::ArrayRef<StageLoad> loads);

/// The cut whose FLOPs are in proportion to the stages' capacity, the speed of
/// their devices on the whole program; communication and memory don't count.
/// There must be as many counted units as stages.
std::vector<int64_t> proportionalCut(const CutProblem &problem);

} // namespace whale

#endif // WHALE_PLANNER_STAGECUT_H
