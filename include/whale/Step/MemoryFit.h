//===- MemoryFit.h - Feedback on the memory of a plan -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan is made with estimates of the memory that devices need; the actual
// need is known when buffers are planned. If it is too large, planning is
// repeated. This structure passes data from one attempt to the next: the passes
// store their estimates, the driver stores corrections. Lists are empty or have
// an entry for each device.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_MEMORYFIT_H
#define WHALE_STEP_MEMORYFIT_H

#include <cstdint>
#include <string>
#include <vector>

namespace whale {

struct MemoryFit {
  /// Bytes that a device was expected to need.
  struct Estimate {
    std::vector<int64_t> bytes;
    /// The part of `bytes` that is exact.
    std::vector<int64_t> fixedBytes;
    /// The part that libraries use in addition to buffers; empty where `bytes`
    /// has no such part.
    std::vector<int64_t> scratchBytes;
    /// A device needs the most of these for a number of samples, relative to
    /// the one that it has: `fixed`, and `bytes` times that number.
    struct Line {
      double fixed = 0, bytes = 0;
    };
    /// By device; empty where that is not known.
    std::vector<std::vector<Line>> bySamples;
    /// Devices of a mesh with the samples that each takes, or that all of them
    /// compute together.
    struct Group {
      std::vector<int64_t> devices;
      std::vector<int64_t> samples;
      bool isTogether = false;
    };
    /// By mesh and group.
    std::vector<std::vector<Group>> meshes;
  };

  /// Written by whale-propagate, with arguments as the fixed part, and by
  /// whale-cut-task-graphs, with parameters and optimizer state.
  Estimate shares, cut;
  /// Whether this is the second attempt.
  bool isCorrected = false;
  /// Factors by which these passes multiply the part that is not fixed.
  std::vector<double> shareScale, cutScale;
  /// What libraries are known to use in addition to buffers, for the cut, which
  /// comes before there are shards that they could be asked about.
  std::vector<int64_t> cutScratchBytes;
  /// If the stages of a pipeline didn't fit on their devices: bytes that a
  /// device of each stage needs.
  std::vector<int64_t> stageBytes;
  /// The chosen schedule if another one needs less memory; otherwise empty.
  std::string replaceableSchedule;
  /// Schedules that were chosen in earlier attempts and whose buffers didn't
  /// fit.
  std::vector<std::string> misfitSchedules;
};

} // namespace whale

#endif // WHALE_STEP_MEMORYFIT_H
