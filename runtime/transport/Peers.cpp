//===- Peers.cpp - Who exchanges data in a channel ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/Peers.h"

#include <algorithm>
#include <set>

namespace whale::runtime {

std::vector<int64_t> peersOf(const Collective &collective, int64_t rank) {
  std::set<int64_t> peers;
  if (collective.isAllReduce())
    for (const Group &group : collective.groups)
      if (std::ranges::count(group, rank))
        peers.insert(group.begin(), group.end());
  for (const ChannelPart &part : collective.parts)
    for (const auto &[receiver, cells] : part.cells)
      for (const Cell &cell : *cells)
        for (const Cell::Contribution &from : cell.from)
          if (receiver == rank)
            peers.insert(from.peer);
          else if (from.peer == rank)
            peers.insert(receiver);
  peers.erase(rank);
  return {peers.begin(), peers.end()};
}

static bool isListOfMessages(const Collective &collective) {
  return collective.kind == "send_recv" || collective.kind == "broadcast";
}

std::vector<int64_t> receiversOf(const Collective &collective, int64_t rank) {
  std::set<int64_t> receivers;
  if (!isListOfMessages(collective))
    return {};
  for (const ChannelPart &part : collective.parts)
    for (const auto &[receiver, cells] : part.cells)
      for (const Cell &cell : *cells)
        for (const Cell::Contribution &from : cell.from)
          if (from.peer == rank && receiver != rank)
            receivers.insert(receiver);
  return {receivers.begin(), receivers.end()};
}

std::vector<int64_t> sendersOf(const Collective &collective, int64_t rank) {
  std::set<int64_t> senders;
  if (!isListOfMessages(collective))
    return {};
  for (const ChannelPart &part : collective.parts)
    if (auto cells = part.cells.find(rank); cells != part.cells.end())
      for (const Cell &cell : *cells->second)
        for (const Cell::Contribution &from : cell.from)
          if (from.peer != rank)
            senders.insert(from.peer);
  return {senders.begin(), senders.end()};
}

} // namespace whale::runtime
