//===- MemoryFit.h - What is known of the memory of a plan ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan is made with estimates of what devices need; what they do need is
// known when buffers are planned. Where that is too much, the plan is made
// again. This is what one attempt leaves for the next: the passes write their
// estimates, the driver what is to be done otherwise. Lists have an entry for
// each device, or none at all.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_MEMORYFIT_H
#define WHALE_STEP_MEMORYFIT_H

#include <cstdint>
#include <string>
#include <vector>

namespace whale {

struct MemoryFit {
  /// What a device was expected to need, in bytes.
  struct Estimate {
    std::vector<int64_t> bytes;
    /// The part of it that is certain.
    std::vector<int64_t> fixedBytes;
  };

  /// By whale-propagate, with arguments as the fixed part, and by
  /// whale-cut-task-graphs, with parameters and optimizer state.
  Estimate shares, cut;
  /// Whether this is the second attempt.
  bool isCorrected = false;
  /// Factors by which they correct what is not fixed.
  std::vector<double> shareScale, cutScale;
  /// What products and convolutions took besides buffers.
  std::vector<int64_t> scratchBytes;
  /// Where the stages of a pipeline didn't fit on the devices that they had:
  /// by stage, what a device of it needs.
  std::vector<int64_t> stageBytes;
  /// The schedule that was chosen, if another one needs less; else empty.
  std::string replaceableSchedule;
  /// Schedules, chosen before, whose buffers didn't fit.
  std::vector<std::string> misfitSchedules;
};

} // namespace whale

#endif // WHALE_STEP_MEMORYFIT_H
