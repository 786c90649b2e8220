//===- HostShares.cpp - What ranks get of their host ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostShares.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace whale {

std::vector<double> crowdingOf(const std::vector<HostLoad> &loads,
                               const SharedLinks::Host &limits) {
  double ranks = 0;
  for (const HostLoad &load : loads)
    ranks += load.ranks;
  double byCores = std::max(1.0, ranks / limits.cores);
  std::vector<double> crowding(loads.size(), byCores);
  // The least demanding first: what they leave is for the others.
  std::vector<size_t> order(loads.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](size_t i) {
    return std::pair(loads[i].bytesPerSecond, i);
  });
  double left = limits.memoryBandwidth;
  for (size_t i : order) {
    double wanted = loads[i].bytesPerSecond / byCores;
    double share = std::min(wanted, left / ranks);
    if (share < wanted)
      crowding[i] = loads[i].bytesPerSecond / share;
    left -= share * loads[i].ranks;
    ranks -= loads[i].ranks;
  }
  return crowding;
}

} // namespace whale
