//===- LoadBalance.h - Shares for unequal devices ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How much of a TaskGraph each of its devices takes: Whale's Algorithm 1 with
// integer shares, fixed memory besides that of the share, and an error where no
// share fits.
//

#ifndef WHALE_PLANNER_LOADBALANCE_H
#define WHALE_PLANNER_LOADBALANCE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <limits>
#include <vector>

namespace whale {

/// One device that takes a share. A unit is the smallest thing to share out: a
/// sample, a row, a head.
struct ShareDevice {
  /// Its number in the cluster: names it in errors.
  int64_t id = 0;
  /// Seconds for one unit.
  double secondsPerUnit = 1;
  /// Seconds that it is busy besides, if it takes any unit.
  double fixedSeconds = 0;
  /// Bytes that it has.
  int64_t memoryBytes = std::numeric_limits<int64_t>::max();
  /// Bytes that it needs whatever its share: parameters, optimizer state.
  int64_t fixedBytes = 0;
  /// Bytes for one unit: activations, or a shard's parameters.
  double bytesPerUnit = 0;
};

/// Shares of `total` units, each a multiple of `grain` (which divides `total`)
/// and perhaps 0, that minimise the largest finish time subject to
/// fixedBytes + share * bytesPerUnit <= memoryBytes on each device. Among such
/// shares these are the ones that handing out grain by grain gives, each to the
/// device that would finish it first, ties to the first in the list. Fails
/// with a message that names the device which lacks memory, and how much.
llvm::Expected<std::vector<int64_t>>
shares(int64_t total, int64_t grain, llvm::ArrayRef<ShareDevice> devices);

/// The same for any finish time: seconds(i, units) is that of the i-th device
/// with `units` > 0 units. It mustn't be negative or NaN and mustn't fall as
/// the units grow; `secondsPerUnit` and `fixedSeconds` don't count.
llvm::Expected<std::vector<int64_t>>
shares(int64_t total, int64_t grain, llvm::ArrayRef<ShareDevice> devices,
       llvm::function_ref<double(size_t, int64_t)> seconds);

/// Shares of several moments, totals[m] units each, that follow one another: a
/// device that has finished early takes more of the next moment, so that all of
/// them together are balanced, where each alone would be too coarse. Devices
/// start even every `period` moments; so equal moments a period apart have
/// equal shares, and with a period of 1 each moment is balanced for itself. The
/// memory limits hold for each moment. `fixedSeconds` count in each moment.
llvm::Expected<std::vector<std::vector<int64_t>>>
sharesOfMoments(llvm::ArrayRef<int64_t> totals, int64_t period,
                llvm::ArrayRef<ShareDevice> devices);

} // namespace whale

#endif // WHALE_PLANNER_LOADBALANCE_H
