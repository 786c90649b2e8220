//===- AssumedLinks.h - Links that no cluster file describes ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Transfers over links that a cluster file leaves out are free, whatever they
// move. Where prices are compared, such links are what they are between threads
// of one processor.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_CLUSTER_ASSUMEDLINKS_H
#define WHALE_CLUSTER_ASSUMEDLINKS_H

#include "whale/Cluster/Cluster.h"

namespace whale {

/// Returns the cluster with a bandwidth and a latency for each link that has
/// none.
Cluster withAssumedLinks(Cluster cluster);

} // namespace whale

#endif // WHALE_CLUSTER_ASSUMEDLINKS_H
