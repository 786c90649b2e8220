//===- ReadNetwork.cpp - The links of a cluster file ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReadNetwork.h"

#include "whale/Cluster/Cluster.h"
#include "whale/Runtime/Types.h"

namespace whale::runtime {

ClusterLinks readNetwork(const std::string &path) {
  Cluster cluster = readCluster(path);
  size_t devices = cluster.devices.size();
  auto network = [cluster = std::move(cluster)](int64_t from, int64_t to) {
    const whale::Link &link = cluster.linkBetween(from, to);
    return Link{link.latency, 1 / link.bandwidth};
  };
  return {std::move(network), devices};
}

} // namespace whale::runtime
