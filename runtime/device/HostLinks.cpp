//===- HostLinks.cpp - Emulated links between hosts and devices -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/HostLinks.h"

#include <algorithm>

namespace whale::runtime {

HostLinks::HostLinks(Network given, std::span<const int64_t> ranks)
    : network(std::move(given)) {
  std::map<unsigned, double> here, all;
  for (const whale::Device &device : network->devices)
    ++all[device.node];
  for (int64_t rank : ranks)
    ++here[network->devices[rank].node];
  for (int64_t rank : ranks) {
    unsigned node = network->devices[rank].node;
    if (const auto &host = network->nodeOf(rank).host)
      links[node].secondsPerByte = all[node] / here[node] / host->bandwidth;
  }
}

Device::Clock::time_point HostLinks::reserve(int64_t rank, int64_t bytes) {
  using Clock = Device::Clock;
  std::lock_guard lock(mutex);
  auto link = links.find(network->devices[rank].node);
  if (link == links.end())
    return Clock::time_point::min();
  // A clock has no more.
  constexpr double longest = 1e6;
  std::chrono::duration<double> seconds(std::min(
      static_cast<double>(bytes) * link->second.secondsPerByte, longest));
  auto &free = link->second.free;
  free = std::max(free, Clock::now()) +
         std::chrono::duration_cast<Clock::duration>(seconds);
  return free;
}

} // namespace whale::runtime
