//===- ClusterRanges.h - What a cluster's numbers may be --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// No machine is outside of these ranges, and inside of them every cost is a
// finite number: the longest operation, of 2^63 FLOPs, takes some 1e31 s on the
// slowest device. Header-only and without LLVM: the runtime reads it, too.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_CLUSTER_CLUSTERRANGES_H
#define WHALE_CLUSTER_CLUSTERRANGES_H

#include <cstdint>

namespace whale {

/// More devices than this are taken for a mistake.
inline constexpr int64_t kMostDevices = int64_t(1) << 15;

/// The least and the greatest number that a field may have.
struct NumberRange {
  double least, most;

  /// False of NaN.
  constexpr bool contains(double number) const {
    return number >= least && number <= most;
  }
};

/// FLOP/s, and bytes per second of a memory or a link.
inline constexpr NumberRange kRateRange = {1, 1e24};
/// Bytes of a memory: a number of 64 bits.
inline constexpr NumberRange kMemoryRange = {1, 1e18};
/// The part of the peak that is reached.
inline constexpr NumberRange kEfficiencyRange = {1e-6, 1};
/// Of convolutions: fast algorithms need fewer FLOPs than are counted.
inline constexpr NumberRange kConvolutionEfficiencyRange = {1e-6, 4};
/// Seconds before the first byte arrives.
inline constexpr NumberRange kLatencyRange = {0, 1e3};
/// How many times slower than its kind a device runs.
inline constexpr NumberRange kSlowdownRange = {1, 1e6};

} // namespace whale

#endif // WHALE_CLUSTER_CLUSTERRANGES_H
