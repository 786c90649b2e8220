//===- Topology.cpp - Nodes and speeds of links ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Cluster/Topology.h"
#include "whale/Cluster/Cluster.h"

using namespace whale;

Topology Topology::of(const Cluster &cluster) {
  Topology topology;
  for (const Device &device : cluster.devices)
    topology.node.push_back(device.node);
  for (const NodeGroup &group : cluster.nodes)
    topology.linkBandwidth =
        std::min(topology.linkBandwidth, group.link.bandwidth);
  topology.networkBandwidth = cluster.network.bandwidth;
  return topology;
}
