//===- LinkFlows.cpp - Transfers that share links -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Progressive filling: all transfers get the same part of the rate that they
// would have alone, until a link is full; those that use it keep this part, and
// the others get more. Cost: a look at the loads of all transfers that go on
// for each link that becomes full, whenever a transfer begins or ends.
//
//===----------------------------------------------------------------------===//

#include "LinkFlows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace whale {

/// Seconds that a load takes alone; 0 on a link that is free.
static double secondsOf(const SharedLinks &links,
                        const SharedLinks::Load &load) {
  double bandwidth = links.bandwidths[load.link];
  return std::isfinite(bandwidth) ? load.bytes / bandwidth : 0;
}

bool LinkFlows::carries(size_t transfer) const {
  return transfer < links.cargos.size() &&
         std::ranges::any_of(
             links.cargos[transfer].loads,
             [&](const SharedLinks::Load &load) {
               return secondsOf(links, load) > 0;
             });
}

void LinkFlows::advance(double now) {
  for (Flow &flow : flows)
    flow.left -= flow.rate * (now - time);
  time = now;
}

void LinkFlows::share() {
  taken.assign(links.bandwidths.size(), 0);
  for (Flow &flow : flows)
    flow.isFixed = false;
  double part = 0;
  while (part < 1) {
    wanted.assign(links.bandwidths.size(), 0);
    for (const Flow &flow : flows)
      if (!flow.isFixed)
        for (const SharedLinks::Load &load : links.cargos[flow.transfer].loads)
          wanted[load.link] += secondsOf(links, load) * flow.alone;
    // The part at which the first link is full; rounding must not lower it.
    double first = 1;
    for (size_t link = 0; link < wanted.size(); ++link)
      if (wanted[link] > 0)
        first = std::min(first, (1 - taken[link]) / wanted[link]);
    part = std::max(part, first);
    auto isFull = [&](const SharedLinks::Load &load) {
      return secondsOf(links, load) > 0 &&
             (1 - taken[load.link]) / wanted[load.link] <= part;
    };
    std::vector<Flow *> fixed;
    for (Flow &flow : flows)
      if (!flow.isFixed &&
          (part >= 1 ||
           std::ranges::any_of(links.cargos[flow.transfer].loads, isFull)))
        fixed.push_back(&flow);
    for (Flow *flow : fixed) {
      flow->isFixed = true;
      flow->rate = part * flow->alone;
      for (const SharedLinks::Load &load : links.cargos[flow->transfer].loads)
        taken[load.link] += secondsOf(links, load) * flow->rate;
    }
    if (std::ranges::all_of(flows, &Flow::isFixed))
      break;
  }
  for (Flow &flow : flows)
    flow.end = time + std::max(0.0, flow.left) / flow.rate;
}

void LinkFlows::begin(size_t transfer, double now) {
  advance(now);
  Flow &flow = flows.emplace_back();
  flow.transfer = transfer;
  double seconds = links.cargos[transfer].secondsAlone;
  if (seconds == 0)
    for (const SharedLinks::Load &load : links.cargos[transfer].loads)
      seconds = std::max(seconds, secondsOf(links, load));
  flow.alone = 1 / seconds;
  share();
}

std::optional<double> LinkFlows::nextEnd() const {
  if (flows.empty())
    return std::nullopt;
  return std::ranges::min(flows, {}, &Flow::end).end;
}

std::vector<size_t> LinkFlows::takeEnded(double now) {
  std::vector<size_t> ended;
  for (const Flow &flow : flows)
    if (flow.end <= now)
      ended.push_back(flow.transfer);
  std::erase_if(flows, [&](const Flow &flow) { return flow.end <= now; });
  advance(now);
  share();
  return ended;
}

} // namespace whale
