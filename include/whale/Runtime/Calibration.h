//===- Calibration.h - How fast this machine is -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CALIBRATION_H
#define WHALE_RUNTIME_CALIBRATION_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace whale::runtime {

/// What each of some ranks of the processor reaches while all of them do the
/// same.
struct MachineSpeed {
  int64_t ranks = 1;
  /// Of each rank.
  int64_t threads = 1;
  /// FLOP/s of large matrix products, by element type.
  std::map<std::string, double> flops;
  /// The part of that which products in f32 reach, by their FLOPs, and large
  /// ones by the smallest of their extents.
  std::vector<std::pair<double, double>> byFlops, bySmallest;
  /// The same of a convolution and its gradients together, by their FLOPs and
  /// by the places of their window; and of attention and its gradient.
  std::vector<std::pair<double, double>> convolutionByFlops,
      convolutionByWindow;
  double attention = 0;
  /// Bytes a second, read and written.
  double memoryBandwidth = 0;
  /// Seconds that a product takes which has nothing to do.
  double kernelStart = 0;
  /// Between two ranks of a process: bytes a second, and seconds of a message
  /// of a few bytes. Unlimited and none of one rank.
  double linkBandwidth = 0, linkLatency = 0;
};

/// Measures the machine with as many ranks, which share its processors evenly;
/// takes some seconds. Throws Error where there are not so many threads.
MachineSpeed measureMachine(int64_t ranks);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_CALIBRATION_H
