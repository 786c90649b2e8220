//===- AssumedLinks.cpp - Links that no cluster file describes ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Cluster/AssumedLinks.h"

#include <cmath>

using namespace whale;

/// Bytes per second that one core of a server copies.
static constexpr double kAssumedBandwidth = 1e10;

/// Seconds: a sum of a few numbers takes two threads so long on two cores.
static constexpr double kAssumedLatency = 2e-5;

static void assume(Link &link) {
  if (!std::isfinite(link.bandwidth))
    link.bandwidth = kAssumedBandwidth;
  if (link.latency == 0)
    link.latency = kAssumedLatency;
}

Cluster whale::withAssumedLinks(Cluster cluster) {
  for (NodeGroup &node : cluster.nodes)
    assume(node.link);
  assume(cluster.network);
  return cluster;
}
