//===- StepTimes.h - What a step is expected to take ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module of the last level. Out: when its devices compute, exchange and
// wait in a step, by the cost model of the cluster and the model of queues
// (QueueModel.h). Nothing is run. Devices of one rank class, kind and slowdown
// are one queue. Cost: linear in the instructions of all queues; transfers that
// are alike are priced once.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_SCHEDULE_STEPTIMES_H
#define WHALE_TRANSFORMS_SCHEDULE_STEPTIMES_H

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

namespace whale {

/// Something that goes on for a while, in seconds from the step's begin.
struct TimedPiece {
  double begin = 0, end = 0;
  /// "forward", "backward", "update", or the kind of a collective.
  std::string what;
  /// The micro-batch that is computed, where the program says.
  std::optional<int64_t> moment;
};

/// Devices that do the same in the same time.
struct DeviceTimes {
  std::vector<int64_t> ranks;
  /// These add up to the seconds of the step. A device communicates while it is
  /// blocked by a transfer that goes on, and is idle while it waits for others
  /// to begin one, or for the end of the step.
  double computeSeconds = 0, communicationSeconds = 0, idleSeconds = 0;
  /// In order; neighbours of one kind are one piece.
  std::vector<TimedPiece> computed, transferred;
};

/// What goes over links of one kind in a step.
struct LinkLoad {
  /// "network", or the node whose devices it connects.
  std::string name;
  int64_t transfers = 0;
  /// Of the values that are exchanged, in total.
  double bytes = 0;
  /// Of all transfers, each alone.
  double seconds = 0;
};

struct StepTimes {
  double seconds = 0;
  std::vector<DeviceTimes> devices;
  /// The one that takes longest first.
  std::vector<LinkLoad> links;
};

/// Returns the times of a step; nullopt if the module has no schedules.
std::optional<StepTimes> findStepTimes(mlir::ModuleOp module);

} // namespace whale

#endif // WHALE_TRANSFORMS_SCHEDULE_STEPTIMES_H
