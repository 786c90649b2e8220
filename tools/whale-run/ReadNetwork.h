//===- ReadNetwork.h - The links of a cluster file --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TOOLS_WHALERUN_READNETWORK_H
#define WHALE_TOOLS_WHALERUN_READNETWORK_H

#include "whale/Runtime/Network.h"

#include <string>

namespace whale::runtime {

/// The links of the devices of a cluster.
struct ClusterLinks {
  /// Devices are ranks, in the file's order.
  Network network;
  size_t devices = 0;
};

/// Reads a cluster file (docs/cluster.md). Throws Error with the file and the
/// field.
ClusterLinks readNetwork(const std::string &path);

} // namespace whale::runtime

#endif // WHALE_TOOLS_WHALERUN_READNETWORK_H
