//===- HostShares.h - What ranks get of their host --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks that compute on one host at once, with its cores and its memory. Cost:
// a sort of the loads.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_STEP_HOSTSHARES_H
#define WHALE_LIB_STEP_HOSTSHARES_H

#include "whale/Step/QueueModel.h"

namespace whale {

/// Ranks that compute alike.
struct HostLoad {
  double ranks = 1;
  /// That each of them moves in a second, alone.
  double bytesPerSecond = 0;
};

/// Returns how many times longer each takes than alone, at least 1: where there
/// are fewer cores than ranks, all get the same part of these; what is left of
/// their bytes is served max-min fair by the memory.
std::vector<double> crowdingOf(const std::vector<HostLoad> &loads,
                               const SharedLinks::Host &limits);

} // namespace whale

#endif // WHALE_LIB_STEP_HOSTSHARES_H
