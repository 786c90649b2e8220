//===- Topology.h - Nodes of devices ----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of a cluster that the resolver uses to choose routes.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_CLUSTER_TOPOLOGY_H
#define WHALE_CLUSTER_TOPOLOGY_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace whale {

struct Cluster;

/// Global rank of a device, as the cluster numbers them; never negative.
using DeviceId = int64_t;

/// The node of each device. The default is one node.
struct Topology {
  /// The node of each device; devices beyond the end are in node 0.
  std::vector<unsigned> node;

  static Topology of(const Cluster &cluster);

  unsigned nodeOf(DeviceId device) const {
    return size_t(device) < node.size() ? node[device] : 0;
  }
};

} // namespace whale

#endif // WHALE_CLUSTER_TOPOLOGY_H
