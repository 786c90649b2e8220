//===- Schedule.h - The order of a pipeline's work --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In which order each stage of a pipeline computes its micro-batches, how long
// that takes and what it keeps in memory. `docs/schedules.md` shows the
// schedules.
//

#ifndef WHALE_PLANNER_SCHEDULE_H
#define WHALE_PLANNER_SCHEDULE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace whale {

/// Where the words differ, the names in quotes are those of EPL.
enum class ScheduleKind {
  /// All forwards, then all backwards ("PreferForward").
  GPipe,
  /// A backward as soon as there is one: stage s of S keeps S - s micro-batches
  /// in flight ("PreferBackward").
  OneForwardOneBackward,
  /// The same with one more micro-batch in flight in all stages but the last,
  /// which hides the time of the sends ("PreferBackwardOptimizer").
  BackwardOptimizer,
  /// Several TaskGraphs on each stage's devices, as Megatron-LM interleaves
  /// them: the bubble is divided by their number.
  Interleaved,
  /// As OneForwardOneBackward, with the gradients of the weights apart from
  /// those of the inputs: they fill the bubbles (ZB-H1 of "Zero Bubble Pipeline
  /// Parallelism", Qi et al. 2023).
  ZeroBubble,
};

/// The kind of this name, whatever its case: that of EPL or the usual one
/// ("gpipe", "1f1b", "backward-optimizer", "interleaved", "zero-bubble").
std::optional<ScheduleKind> parseScheduleKind(llvm::StringRef name);
/// The usual name.
llvm::StringRef stringifyScheduleKind(ScheduleKind kind);
/// The usual names of all kinds.
std::vector<llvm::StringRef> scheduleKindNames();

/// One piece of work of a stage.
struct ScheduleStep {
  enum Kind {
    Forward,
    /// The gradients of inputs and weights; of inputs alone where the schedule
    /// has WeightGradient steps for this TaskGraph.
    Backward,
    WeightGradient,
  };
  Kind kind;
  /// Which of the TaskGraphs on the stage's devices.
  int64_t chunk;
  int64_t microBatch;

  auto operator<=>(const ScheduleStep &other) const = default;
};

inline llvm::hash_code hash_value(const ScheduleStep &step) {
  return llvm::hash_combine(step.kind, step.chunk, step.microBatch);
}

/// What one TaskGraph costs, for each micro-batch in seconds and bytes.
struct StageCost {
  double forward = 0;
  /// Of the gradients of the inputs, and of the weights too unless `weight`
  /// counts them.
  double backward = 0;
  /// Of the gradients of the weights, where they can be computed apart.
  double weight = 0;
  /// Until what it computed reaches the next TaskGraph; gradients take as long
  /// to come back. The devices compute meanwhile.
  double send = 0;
  /// Kept from a micro-batch's forward to the end of its backward.
  int64_t activationBytes = 0;
  /// Kept all the time: parameters, gradients, optimizer state.
  int64_t fixedBytes = 0;
  /// What a device of the stage has; all TaskGraphs of a stage share it.
  int64_t memoryBytes = std::numeric_limits<int64_t>::max();
  /// Kept besides `activationBytes` from a backward to the gradients of its
  /// weights, where they are computed apart.
  int64_t weightBytes = 0;
};

/// A pipeline: micro-batches run through a sequence of TaskGraphs. Where
/// `stageSequence` is empty these are chunks * stages, of which the v-th is on
/// stage v % stages as its chunk v / stages.
struct ScheduleProblem {
  /// Groups of devices in the order of the pipeline.
  int64_t stages = 1;
  /// TaskGraphs of each group.
  int64_t chunks = 1;
  int64_t microBatches = 1;
  /// Of each TaskGraph.
  std::vector<StageCost> costs;
  /// The stage of each TaskGraph, where some stages have more TaskGraphs than
  /// others or the order of stages varies. The chunks of a stage are its
  /// TaskGraphs in the order of the sequence.
  std::vector<int64_t> stageSequence = {};

  int64_t getNumTaskGraphs() const {
    return stageSequence.empty() ? stages * chunks
                                 : int64_t(stageSequence.size());
  }
  int64_t stageOf(int64_t taskGraph) const {
    return stageSequence.empty() ? taskGraph % stages
                                 : stageSequence[taskGraph];
  }
  /// The TaskGraphs of a stage, the chunk-th first.
  std::vector<int64_t> taskGraphsOf(int64_t stage) const;
};

/// What each stage does, in order.
using Schedule = std::vector<std::vector<ScheduleStep>>;

/// The schedule of a kind. Each micro-batch is computed once in each direction
/// by each TaskGraph; the micro-batches pass each TaskGraph in ascending order
/// in all kinds, so that gradients sum up to the same bits and between two
/// TaskGraphs the first value sent is the first received. Fails where a count
/// or cost is out of range, or the kind doesn't fit the problem; memory isn't
/// checked.
llvm::Expected<Schedule> makeSchedule(ScheduleKind kind,
                                      const ScheduleProblem &problem);

/// When a schedule does what.
struct Timeline {
  /// A step of a stage, by its position in the schedule.
  struct Position {
    int64_t stage;
    size_t step;
  };
  /// All steps as they start, each after those that it needs.
  std::vector<Position> order;
  /// In seconds from the start.
  struct Interval {
    double start, end;
  };
  /// Of each step, in the order of the schedule.
  std::vector<std::vector<Interval>> steps;
  double makespan = 0;
  /// Seconds of each stage without work.
  std::vector<double> idle;
  /// The most micro-batches of which each stage keeps activations at a time,
  /// each counted once for each of the stage's TaskGraphs.
  std::vector<int64_t> peakMicroBatches;
  /// The most bytes that a device of each stage keeps, those that are always
  /// there included.
  std::vector<int64_t> peakBytes;
};

/// Runs a schedule: each stage takes its steps in order, each as soon as what
/// it needs has arrived; sends are buffered. Fails at a step that is missing,
/// doubled or no step of the problem, and where stages wait for each other for
/// ever.
llvm::Expected<Timeline> simulate(const ScheduleProblem &problem,
                                  const Schedule &schedule);

/// A schedule and why it was chosen.
struct ScheduleChoice {
  ScheduleKind kind;
  Schedule schedule;
  Timeline timeline;
  /// In words, with the makespans of the others.
  std::string reason;
  /// Whether another one keeps less: fewer micro-batches in some stage, more in
  /// none. Zero bubble also keeps what gradients of weights need, which isn't
  /// counted.
  bool isReplaceable = false;
};

/// The schedule of the least makespan that keeps every stage within its memory,
/// or else the one that lacks the least; of equals that with the least memory
/// (and micro-batches in flight), then the first in the order of ScheduleKind.
/// Only the kinds in `among` count, all if it is empty. Fails if the problem
/// has none of them.
llvm::Expected<ScheduleChoice>
chooseSchedule(const ScheduleProblem &problem,
               llvm::ArrayRef<ScheduleKind> among = {});

} // namespace whale

#endif // WHALE_PLANNER_SCHEDULE_H
