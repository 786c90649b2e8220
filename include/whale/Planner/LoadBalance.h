//===- LoadBalance.h - Shares for unequal devices ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Computes how much of a TaskGraph each of its devices takes: Whale's Algorithm
// 1 with integer shares, with memory that does not depend on the share, and
// with an error if no shares fit.
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

/// One device that takes a share. A unit is the smallest amount that can be
/// shared out: a sample, a row, a head.
struct ShareDevice {
  /// Its id in the cluster, for errors.
  int64_t id = 0;
  /// Seconds for one unit.
  double secondsPerUnit = 1;
  /// Seconds that it is busy in addition, if its share isn't 0.
  double fixedSeconds = 0;
  /// Bytes of its memory.
  int64_t memoryBytes = std::numeric_limits<int64_t>::max();
  /// Bytes that it needs independently of its share: parameters, optimizer
  /// state.
  int64_t fixedBytes = 0;
  /// Bytes for one unit: activations, or a shard's parameters.
  double bytesPerUnit = 0;
};

/// Returns the shares of `total` units, each a multiple of `grain` (which
/// divides `total`) and possibly 0, that minimize the largest finish time
/// subject to fixedBytes + share * bytesPerUnit <= memoryBytes on each device.
/// If several are optimal, returns those that result from assigning one grain
/// at a time to the device that would finish it first, ties to the first in the
/// list. If memory is too small, the error names the device and the missing
/// bytes.
llvm::Expected<std::vector<int64_t>>
shares(int64_t total, int64_t grain, llvm::ArrayRef<ShareDevice> devices);

/// The same for any finish time: seconds(i, units) is that of the i-th device
/// with `units` > 0 units. It mustn't be negative or NaN and mustn't decrease
/// as the units grow; `secondsPerUnit` and `fixedSeconds` are ignored.
llvm::Expected<std::vector<int64_t>>
shares(int64_t total, int64_t grain, llvm::ArrayRef<ShareDevice> devices,
       llvm::function_ref<double(size_t, int64_t)> seconds);

/// Returns the shares of several consecutive moments, totals[m] units each. A
/// device that finishes a moment early takes more of the next one, so that the
/// sum is balanced even where grains are too coarse to balance each moment
/// alone. The finish times are reset every `period` moments, so equal moments a
/// period apart have equal shares, and with a period of 1 each moment is
/// balanced separately. The memory limits hold for each moment. `fixedSeconds`
/// are added in each moment.
llvm::Expected<std::vector<std::vector<int64_t>>>
sharesOfMoments(llvm::ArrayRef<int64_t> totals, int64_t period,
                llvm::ArrayRef<ShareDevice> devices);

} // namespace whale

#endif // WHALE_PLANNER_LOADBALANCE_H
