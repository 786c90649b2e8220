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
#include "whale/System/Io.h"

namespace whale::runtime {

/// Throws Error with the file and the field.
static Cluster readCluster(const std::string &path) {
  system::MappedFile file(path);
  try {
    return Cluster::parse(file.text());
  } catch (const ClusterError &error) {
    throw Error(path + ":" + std::to_string(error.getLine()) + ":" +
                std::to_string(error.getColumn()) + ": " + error.what());
  }
}

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
