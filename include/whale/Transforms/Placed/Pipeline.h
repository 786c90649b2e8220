//===- Pipeline.h - The stages that micro-batches run through ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_PLACED_PIPELINE_H
#define WHALE_TRANSFORMS_PLACED_PIPELINE_H

#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Planner/Schedule.h"
#include "llvm/ADT/StringMap.h"

namespace whale {

/// The pipeline that the task graphs of one `whale.micro_batches` make. Those
/// whose virtual devices share a device in the first replica are one stage; in
/// a smaller last replica several stages can share one. Micro-batches pass a
/// sequence of slots, each on the devices of a stage. A stage to which they
/// come back after others have computed has several slots.
class Pipeline {
public:
  struct Slot {
    int64_t stage;
    /// Numbers the slots that share devices, in order: those of one device have
    /// different chunks.
    int64_t chunk = 0;
    /// Of its task graphs.
    llvm::SmallVector<int64_t> devices = {};
  };

  Pipeline(MicroBatchesOp loop, const Cluster &cluster);

  int64_t getNumStages() const { return numStages; }
  llvm::ArrayRef<Slot> getSlots() const { return slots; }
  /// Whether there is a backward.
  bool goesBack() const { return hasBackward; }
  /// The index of the slot of a task graph of one of the loop's regions; -1 if
  /// all devices compute it.
  int64_t getSlot(TaskGraphOp graph) const;
  /// The slots of the forwards of a name.
  llvm::SmallVector<int64_t> getSlots(llvm::StringRef name) const {
    return slotsOfName.lookup(name);
  }
  /// The task graphs of the loop's first region.
  llvm::SmallVector<TaskGraphOp> graphs() const;

  /// How many micro-batches a task graph keeps at a time under the schedule
  /// that the configuration names, 1F1B if none.
  int64_t getInFlight(llvm::StringRef graph);

  /// What each slot costs: the time of its slowest device on its shares, by
  /// the cost model, and of the sends to other stages; the most bytes that one
  /// of its devices keeps. Values must have been placed.
  ScheduleProblem getProblem();

  /// Replaces the bytes that devices are expected to need, which were estimated
  /// with `getInFlight` micro-batches, by what they need under a schedule.
  /// Where it has gradients of weights apart, the loop must have them too.
  void correctBytes(const Schedule &schedule,
                    llvm::MutableArrayRef<int64_t> bytes);

private:
  ScheduleProblem emptyProblem();
  void joinDevices();
  void addForward(TaskGraphOp graph);
  int64_t findBackwardSlot(TaskGraphOp graph);
  void numberChunks();
  std::optional<int64_t> stageOf(TaskGraphOp graph);

  MicroBatchesOp loop;
  const Cluster &cluster;
  llvm::DenseMap<int64_t, int64_t> stageOfDevice;
  llvm::SmallVector<Slot> slots;
  llvm::DenseMap<mlir::Operation *, int64_t> slotOf;
  /// The slots of the forwards of a name.
  llvm::StringMap<llvm::SmallVector<int64_t>> slotsOfName;
  int64_t numStages = 0;
  bool hasBackward = false;
  /// Of each stage; empty until it is asked for.
  std::vector<int64_t> inFlight;
};

/// The virtual device of a task graph; null if it names none.
VirtualDeviceOp devicesOf(TaskGraphOp graph);

/// The value that was moved, however often.
mlir::Value lookThroughReshards(mlir::Value value);

/// The task graphs whose results `graph` uses, moved or not, in its own region
/// of a `whale.micro_batches`.
llvm::SmallVector<TaskGraphOp> findProducers(TaskGraphOp graph);

} // namespace whale

#endif // WHALE_TRANSFORMS_PLACED_PIPELINE_H
