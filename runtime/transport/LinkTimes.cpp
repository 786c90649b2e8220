//===- LinkTimes.cpp - How long a transfer takes on links -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/LinkTimes.h"

#include <algorithm>

namespace whale::runtime {

static void slower(Link &link, const Link &other) {
  link.latency = std::max(link.latency, other.latency);
  link.secondsPerByte = std::max(link.secondsPerByte, other.secondsPerByte);
}

static double ringSeconds(const Group &group, int64_t bytes,
                          const Network &network) {
  Link link;
  for (size_t i = 0; i < group.size(); ++i)
    if (int64_t next = group[(i + 1) % group.size()]; next != group[i])
      slower(link, network(group[i], next));
  auto ranks = static_cast<double>(group.size());
  double step =
      link.latency + static_cast<double>(bytes) / ranks * link.secondsPerByte;
  return 2 * (ranks - 1) * step;
}

namespace {
/// What goes out of a rank, or into it.
struct Side {
  Link link;
  int64_t bytes = 0;

  void add(const Link &other, int64_t more) {
    slower(link, other);
    bytes += more;
  }
  double seconds() const {
    return link.latency + static_cast<double>(bytes) * link.secondsPerByte;
  }
};
} // namespace

std::map<int64_t, double> linkSeconds(const Collective &collective,
                                      const Network &network) {
  std::map<int64_t, double> seconds;
  for (int64_t rank : collective.participants)
    seconds[rank] = 0;
  int64_t elementBytes = byteSize(collective.dtype);
  if (collective.isAllReduce())
    for (const Group &group : collective.groups)
      for (int64_t rank : group)
        seconds[rank] = ringSeconds(
            group, elementCount(collective.dstShapes.at(rank)) * elementBytes,
            network);
  // By sender and receiver.
  std::map<std::pair<int64_t, int64_t>, int64_t> exchanged;
  for (const auto &[rank, cells] : collective.cells)
    for (const Cell &cell : *cells)
      for (const Cell::Contribution &from : cell.from)
        if (from.peer != rank)
          exchanged[{from.peer, rank}] +=
              elementCount(cell.size) * elementBytes;
  std::map<int64_t, Side> sends, receives;
  for (const auto &[pair, bytes] : exchanged) {
    Link link = network(pair.first, pair.second);
    sends[pair.first].add(link, bytes);
    receives[pair.second].add(link, bytes);
  }
  for (const auto &[pair, bytes] : exchanged)
    for (int64_t rank : {pair.first, pair.second})
      for (int64_t other : {pair.first, pair.second})
        for (auto *sides : {&sends, &receives})
          if (auto side = sides->find(other); side != sides->end())
            seconds[rank] = std::max(seconds[rank], side->second.seconds());
  return seconds;
}

} // namespace whale::runtime
