//===- Pipeline.h - The stages that micro-batches run through ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_SCHEDULEMICROBATCHES_PIPELINE_H
#define WHALE_TRANSFORMS_SCHEDULEMICROBATCHES_PIPELINE_H

#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Planner/Cluster.h"
#include "whale/Planner/Schedule.h"
#include "llvm/ADT/StringMap.h"

namespace whale {

/// The pipeline that the task graphs of one `whale.micro_batches` make: those
/// whose virtual devices share a device are one stage.
class Pipeline {
public:
  /// Where a task graph stands.
  struct Place {
    int64_t stage, chunk;
  };

  Pipeline(MicroBatchesOp loop, const Cluster &cluster);

  /// A TaskGraph that the samples come back to from another stage, if there is
  /// one: then there are no places.
  TaskGraphOp getRevisited() const { return revisited; }
  int64_t getNumStages() const { return numStages; }
  /// Whether there is a backward.
  bool goesBack();
  /// Whether every stage is as often in line, in the same order.
  bool isRegular() const;
  std::optional<Place> getPlace(llvm::StringRef graph) const;
  /// The devices of each stage.
  llvm::SmallVector<llvm::SmallVector<int64_t>> getDevices() const;

  /// How many micro-batches a task graph keeps at a time under the schedule
  /// that the configuration names, 1F1B if none.
  int64_t getInFlight(llvm::StringRef graph);

  /// What each place costs: the time of its slowest device on its shares, by
  /// the cost model, and of the sends to other stages; the most bytes that one
  /// of its devices keeps. Values must have been placed.
  ScheduleProblem getProblem();

private:
  ScheduleProblem emptyProblem();
  void joinDevices();
  int64_t stageOf(TaskGraphOp graph);
  llvm::SmallVector<int64_t> devicesOf(TaskGraphOp graph);
  llvm::SmallVector<TaskGraphOp> graphs();

  MicroBatchesOp loop;
  const Cluster &cluster;
  llvm::DenseMap<int64_t, int64_t> stageOfDevice;
  llvm::SmallVector<Place> virtualStages;
  llvm::StringMap<Place> placeOf;
  int64_t numStages = 0;
  TaskGraphOp revisited;
  /// Of each stage; empty until it is asked for.
  std::vector<int64_t> inFlight;
};

} // namespace whale

#endif // WHALE_TRANSFORMS_SCHEDULEMICROBATCHES_PIPELINE_H
