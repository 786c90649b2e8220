//===- ClusterRanges.h - Limits of a cluster's numbers ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ranges include every real machine, and every cost within them is a finite
// number: the longest operation, of 2^63 FLOPs, takes some 1e31 s on the
// slowest device. Header-only and without LLVM, because the runtime reads it
// too.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_CLUSTER_CLUSTERRANGES_H
#define WHALE_CLUSTER_CLUSTERRANGES_H

#include <cstdint>

namespace whale {

/// A larger number of devices is rejected as a mistake.
inline constexpr int64_t kMostDevices = int64_t(1) << 15;

/// The same of the cores of a node.
inline constexpr int64_t kMostCores = int64_t(1) << 15;

/// The least and the greatest number that a field may have.
struct NumberRange {
  double least, most;

  /// Returns false for NaN.
  constexpr bool contains(double number) const {
    return number >= least && number <= most;
  }
};

/// FLOP/s, or bytes per second of a memory or a link.
inline constexpr NumberRange kRateRange = {1, 1e24};
/// Bytes of a memory; the maximum fits in int64_t.
inline constexpr NumberRange kMemoryRange = {1, 1e18};
/// The fraction of the peak that is reached.
inline constexpr NumberRange kEfficiencyRange = {1e-6, 1};
/// For convolutions, which may exceed 1: fast algorithms need fewer FLOPs than
/// are counted.
inline constexpr NumberRange kConvolutionEfficiencyRange = {1e-6, 4};
/// FLOPs of an operation.
inline constexpr NumberRange kFlopsRange = {1, 1e24};
/// An extent of a matrix product.
inline constexpr NumberRange kExtentRange = {1, 1e18};
/// Seconds before a kernel begins.
inline constexpr NumberRange kKernelStartRange = {0, 1};
/// How much longer a device computes while it sends or receives.
inline constexpr NumberRange kOverlapTaxRange = {0, 10};
/// Watts of a device.
inline constexpr NumberRange kPowerRange = {1e-3, 1e6};
/// Seconds before the first byte arrives.
inline constexpr NumberRange kLatencyRange = {0, 1e3};
/// How many times slower than its kind a device runs.
inline constexpr NumberRange kSlowdownRange = {1, 1e6};

} // namespace whale

#endif // WHALE_CLUSTER_CLUSTERRANGES_H
