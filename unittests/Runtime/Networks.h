//===- Networks.h - Emulated links for tests --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_RUNTIME_NETWORKS_H
#define WHALE_UNITTESTS_RUNTIME_NETWORKS_H

#include "whale/Runtime/Network.h"

namespace whale::runtime::test {

/// A node of ranks with these links.
inline Network
networkOf(int64_t ranks, double latency,
          double bandwidth = std::numeric_limits<double>::infinity()) {
  auto cluster = std::make_shared<Cluster>(Cluster::ofRanks(ranks));
  cluster->nodes.front().link.latency = latency;
  cluster->nodes.front().link.bandwidth = bandwidth;
  return cluster;
}

} // namespace whale::runtime::test

#endif // WHALE_UNITTESTS_RUNTIME_NETWORKS_H
