//===- Schedule.h - The order of a pipeline's work --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order in which each stage of a pipeline computes its micro-batches. In:
// the costs of each TaskGraph for a micro-batch. Out: the schedule of a kind,
// its simulated timeline (seconds and peak memory), or the best kind. Cost:
// linear in the number of steps, but for a logarithmic factor.
// `docs/schedules.md` describes the schedules.
//
//===----------------------------------------------------------------------===//

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

/// The kinds of schedules; EPL's names, if they differ, are in quotes.
enum class ScheduleKind {
  /// All forwards, then all backwards ("PreferForward").
  GPipe,
  /// Each backward as soon as it can run: stage s of S keeps S - s
  /// micro-batches in flight ("PreferBackward").
  OneForwardOneBackward,
  /// The same with one more micro-batch in flight in all stages but the last,
  /// which hides the time of the sends ("PreferBackwardOptimizer").
  BackwardOptimizer,
  /// Several TaskGraphs on each stage's devices, as Megatron-LM interleaves
  /// them: the bubble is divided by their number.
  Interleaved,
  /// OneForwardOneBackward with the gradients of the weights separate from
  /// those of the inputs, so that they fill the bubbles (ZB-H1 of "Zero Bubble
  /// Pipeline Parallelism", Qi et al. 2023).
  ZeroBubble,
};

/// Returns the kind with this name, ignoring case: EPL's name or the usual one
/// ("gpipe", "1f1b", "backward-optimizer", "interleaved", "zero-bubble").
std::optional<ScheduleKind> parseScheduleKind(llvm::StringRef name);
/// Returns the usual name.
llvm::StringRef stringifyScheduleKind(ScheduleKind kind);
/// Returns the usual names of all kinds.
std::vector<llvm::StringRef> scheduleKindNames();

/// One forward, backward or weight gradient of a micro-batch on a stage.
struct ScheduleStep {
  enum Kind {
    Forward,
    /// The gradients of inputs and weights; of inputs alone if the schedule has
    /// WeightGradient steps for this TaskGraph.
    Backward,
    WeightGradient,
  };
  Kind kind;
  /// Index among the TaskGraphs on the stage's devices.
  int64_t chunk;
  int64_t microBatch;

  auto operator<=>(const ScheduleStep &other) const = default;
};

inline llvm::hash_code hash_value(const ScheduleStep &step) {
  return llvm::hash_combine(step.kind, step.chunk, step.microBatch);
}

/// The costs of one TaskGraph for one micro-batch, in seconds and bytes.
struct StageCost {
  double forward = 0;
  /// The gradients of the inputs, and of the weights too unless `weight` covers
  /// them.
  double backward = 0;
  /// The gradients of the weights, if they can be computed separately.
  double weight = 0;
  /// From the end of the forward until its results arrive at the next
  /// TaskGraph; gradients take as long in the other direction. The devices can
  /// compute meanwhile.
  double send = 0;
  /// Kept from a micro-batch's forward to the end of its backward (see
  /// `weightBytes`).
  int64_t activationBytes = 0;
  /// Kept during the whole step: parameters, optimizer state.
  int64_t fixedBytes = 0;
  /// The memory of a device of the stage; all TaskGraphs of a stage share it.
  int64_t memoryBytes = std::numeric_limits<int64_t>::max();
  /// Kept instead of `activationBytes` from a backward to its weight gradient,
  /// if they are separate; 0 if the backward computes both.
  int64_t weightBytes = 0;
  /// Whether a backward and the gradients of its weights right behind it need
  /// no more than both in one: nothing is exchanged on the way.
  bool joinsWeight = true;
  /// Kept from the first gradients of the weights to the end: their sums over
  /// micro-batches.
  int64_t sumBytes = 0;
  /// In how many parts, one after the other, the first gradients of the weights
  /// make these sums and free what a micro-batch kept.
  int64_t sumParts = 1;
};

/// A pipeline: micro-batches run through a sequence of TaskGraphs. If
/// `stageSequence` is empty, these are chunks * stages TaskGraphs; the v-th is
/// on stage v % stages as its chunk v / stages.
struct ScheduleProblem {
  /// Number of device groups.
  int64_t stages = 1;
  /// TaskGraphs of each stage.
  int64_t chunks = 1;
  int64_t microBatches = 1;
  /// The costs of each TaskGraph.
  std::vector<StageCost> costs;
  /// The stage of each TaskGraph, needed if some stages have more TaskGraphs
  /// than others or the order of stages varies. The chunks of a stage are its
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
  /// Returns the TaskGraphs of a stage in the order of its chunks.
  std::vector<int64_t> taskGraphsOf(int64_t stage) const;
};

/// The steps of each stage, in order.
using Schedule = std::vector<std::vector<ScheduleStep>>;

/// Returns the schedule of a kind. Each micro-batch is computed once in each
/// direction by each TaskGraph. In all kinds the micro-batches pass each
/// TaskGraph in ascending order, so that gradients are summed to the same bits,
/// and values between two TaskGraphs are received in the order in which they
/// are sent. Fails if a count or cost is out of range, or if the kind doesn't
/// fit the problem; memory isn't checked.
llvm::Expected<Schedule> makeSchedule(ScheduleKind kind,
                                      const ScheduleProblem &problem);

/// The simulated times and memory of a schedule.
struct Timeline {
  /// A step of a stage, by its position in the schedule.
  struct Position {
    int64_t stage;
    size_t step;
  };
  /// All steps ordered by start; each is after the steps that it needs.
  std::vector<Position> order;
  /// Seconds from the start of the schedule.
  struct Interval {
    double start, end;
  };
  /// The interval of each step, in the order of the schedule.
  std::vector<std::vector<Interval>> steps;
  double makespan = 0;
  /// Idle seconds of each stage.
  std::vector<double> idle;
  /// By stage, the largest number of micro-batches whose activations are kept
  /// at a time, each counted once for each of the stage's TaskGraphs.
  std::vector<int64_t> peakMicroBatches;
  /// By stage, the largest number of bytes that a device keeps, including
  /// `fixedBytes`.
  std::vector<int64_t> peakBytes;
};

/// Simulates a schedule: each stage takes its steps in order, each as soon as
/// its inputs have arrived; sends are buffered. Fails if a step is missing,
/// scheduled twice or not a step of the problem, and if stages deadlock.
llvm::Expected<Timeline> simulate(const ScheduleProblem &problem,
                                  const Schedule &schedule);

/// Returns the largest number of bytes that a device keeps that takes these
/// steps, the TaskGraphs of which have the costs `chunks`. `partOf` returns
/// how many times `activationBytes` and `weightBytes` it has of a TaskGraph
/// (its chunk) and a micro-batch; once, if it is null.
int64_t
findPeakBytes(llvm::ArrayRef<ScheduleStep> steps,
              llvm::ArrayRef<StageCost> chunks,
              llvm::function_ref<double(int64_t, int64_t)> partOf = nullptr);

/// A schedule and the reason for choosing it.
struct ScheduleChoice {
  ScheduleKind kind;
  Schedule schedule;
  Timeline timeline;
  /// In words, with the makespans of the other kinds.
  std::string reason;
  /// Whether another kind keeps less: fewer micro-batches in some stage, more
  /// in none. The memory that zero bubble keeps for the gradients of weights
  /// isn't counted.
  bool isReplaceable = false;
};

/// Returns the schedule with the smallest makespan that keeps every stage
/// within its memory; if none does, the one that exceeds it least. Ties go to
/// the least memory (and micro-batches in flight), then to the first in the
/// order of ScheduleKind. Considers only the kinds in `among`, or all if it is
/// empty. Fails if none of them fits the problem.
llvm::Expected<ScheduleChoice>
chooseSchedule(const ScheduleProblem &problem,
               llvm::ArrayRef<ScheduleKind> among = {});

} // namespace whale

#endif // WHALE_PLANNER_SCHEDULE_H
