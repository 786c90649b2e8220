//===- ReductionCost.h - Whether to divide an all-reduce --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An all-reduce over several nodes as one collective, or as three: a
// reduce-scatter inside nodes, an all-reduce of the parts across, an all-gather
// inside. Divided, each byte crosses the network once for a node rather than
// once for each of its devices; but three latencies pass instead of one, which
// is more than a few bytes are worth.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_REDUCTIONCOST_H
#define WHALE_STEP_REDUCTIONCOST_H

#include "whale/Cluster/Cluster.h"
#include "whale/Placement/GroupReduction.h"

namespace whale {

/// Seconds of an all-reduce in both forms, without what both take to start the
/// first collective. Each collective takes the faster of
/// two ways: in one round everybody sends all to all, in a ring each round
/// sends a part to the next.
struct ReductionSeconds {
  double whole = 0, divided = 0;
};

/// Returns the seconds of a reduction of elements of `elementBytes` bytes whose
/// groups have `membersByNode` devices in each node. Groups run side by side;
/// those of one node share its network. Links are the slowest ones of the
/// devices that take part.
ReductionSeconds reductionSeconds(const GroupReduction &reduction,
                                  int64_t membersByNode, int64_t elementBytes,
                                  const Cluster &cluster);

} // namespace whale

#endif // WHALE_STEP_REDUCTIONCOST_H
