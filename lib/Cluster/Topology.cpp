//===- Topology.cpp - Nodes of devices ------------------------------------===//
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
  return topology;
}
