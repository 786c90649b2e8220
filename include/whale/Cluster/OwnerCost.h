//===- OwnerCost.h - Who sends what several devices hold --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one rule of all tables of transfers, those that the compiler makes and
// those that the runtime makes for arrays in another layout.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_CLUSTER_OWNERCOST_H
#define WHALE_CLUSTER_OWNERCOST_H

#include "whale/Cluster/Topology.h"

#include <compare>

namespace whale {

/// What it costs a device to get elements from one of those that hold them. It
/// gets them from that of the least cost: itself, else one in its group, else
/// one in its node, else that which has the fewest elements to send so far,
/// else that of the lowest id. The members are compared in their order.
struct OwnerCost {
  bool isAnotherDevice, isInAnotherGroup, isInAnotherNode;
  /// Elements that the owner sends to others so far.
  int64_t sent;
  DeviceId owner;
  auto operator<=>(const OwnerCost &other) const = default;
};

} // namespace whale

#endif // WHALE_CLUSTER_OWNERCOST_H
