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
// for each link that becomes full, at each time at which transfers begin or
// end.
//
//===----------------------------------------------------------------------===//

#include "LinkFlows.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace whale {

LinkFlows::LinkFlows(const SharedLinks &links) : links(links) {
  taken.resize(links.bandwidths.size());
  wanted.resize(links.bandwidths.size());
  for (const SharedLinks::Cargo &cargo : links.cargos) {
    for (const SharedLinks::Load &load : cargo.loads) {
      double bandwidth = links.bandwidths[load.link];
      double seconds = std::isfinite(bandwidth) ? load.bytes / bandwidth : 0;
      if (seconds > 0)
        uses.push_back({load.link, seconds});
    }
    firstUse.push_back(uses.size());
  }
}

std::span<const LinkFlows::Use> LinkFlows::usesOf(size_t transfer) const {
  if (transfer + 1 >= firstUse.size())
    return {};
  return std::span(uses).subspan(firstUse[transfer],
                                 firstUse[transfer + 1] - firstUse[transfer]);
}

bool LinkFlows::carries(size_t transfer) const {
  return !usesOf(transfer).empty();
}

void LinkFlows::advance(double now) {
  for (Flow &flow : flows)
    flow.left -= flow.rate * (now - time);
  time = now;
}

void LinkFlows::share() {
  usedLinks.clear();
  for (Flow &flow : flows) {
    flow.isFixed = false;
    for (const Use &use : flow.uses)
      usedLinks.push_back(use.link);
  }
  std::ranges::sort(usedLinks);
  usedLinks.erase(std::unique(usedLinks.begin(), usedLinks.end()),
                  usedLinks.end());
  for (size_t link : usedLinks)
    taken[link] = 0;
  double part = 0;
  while (part < 1) {
    for (size_t link : usedLinks)
      wanted[link] = 0;
    for (const Flow &flow : flows)
      if (!flow.isFixed)
        for (const Use &use : flow.uses)
          wanted[use.link] += use.seconds * flow.alone;
    // The part at which the first link is full; rounding must not lower it.
    double first = 1;
    for (size_t link : usedLinks)
      if (wanted[link] > 0)
        first = std::min(first, (1 - taken[link]) / wanted[link]);
    part = std::max(part, first);
    auto isFull = [&](const Use &use) {
      return (1 - taken[use.link]) / wanted[use.link] <= part;
    };
    std::vector<Flow *> fixed;
    for (Flow &flow : flows)
      if (!flow.isFixed &&
          (part >= 1 || std::ranges::any_of(flow.uses, isFull)))
        fixed.push_back(&flow);
    for (Flow *flow : fixed) {
      flow->isFixed = true;
      flow->rate = part * flow->alone;
      for (const Use &use : flow->uses)
        taken[use.link] += use.seconds * flow->rate;
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
  flow.uses = usesOf(transfer);
  double seconds = links.cargos[transfer].secondsAlone;
  if (seconds == 0)
    for (const Use &use : flow.uses)
      seconds = std::max(seconds, use.seconds);
  flow.alone = 1 / seconds;
  changed = true;
}

std::optional<double> LinkFlows::nextEnd() {
  if (std::exchange(changed, false))
    share();
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
  changed = true;
  return ended;
}

} // namespace whale
