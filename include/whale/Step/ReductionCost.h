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

#include <limits>

namespace whale {

/// Seconds of an all-reduce in both forms, without what both take to start the
/// first collective.
struct ReductionSeconds {
  double whole = 0;
  /// Infinite if some node has another number of its devices than others or
  /// only one of them, or all are in one.
  double divided = std::numeric_limits<double>::infinity();
};

/// Returns the seconds of a reduction of elements of `elementBytes` bytes,
/// whose groups run side by side. What doesn't divide evenly is filled up.
ReductionSeconds reductionSeconds(const GroupReduction &reduction,
                                  int64_t elementBytes, const Cluster &cluster);

} // namespace whale

#endif // WHALE_STEP_REDUCTIONCOST_H
