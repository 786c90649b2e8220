//===- ShareCost.h - What a device's share follows --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLANNER_SHARECOST_H
#define WHALE_PLANNER_SHARECOST_H

namespace whale {

/// What the size of a device's share follows, or that of a group of devices.
struct ShareCost {
  /// Seconds for a unit, up to a factor.
  double seconds = 1;
  /// Seconds that it is busy besides, for each unit that all of them share out.
  double fixed = 0;
  /// The largest part of all units that there is memory for; 1 where memory is
  /// no limit.
  double most = 1;

  bool operator==(const ShareCost &other) const = default;
};

} // namespace whale

#endif // WHALE_PLANNER_SHARECOST_H
