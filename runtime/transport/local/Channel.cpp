//===- Channel.cpp - Peers of the ranks in a channel ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/LinkTimes.h"
#include "transport/Slices.h"
#include "transport/local/Member.h"

#include <algorithm>
#include <set>

namespace whale::runtime::local {

Channel::Channel(const Collective &given, const Network &network)
    : collective(given) {
  for (int64_t rank : collective.participants) {
    Member &member = members[rank];
    member.collective = &collective;
    member.rank = rank;
  }
  if (collective.isAllReduce())
    addAllReduce();
  else
    addCells();
  if (network)
    for (const auto &[rank, seconds] : linkSeconds(collective, network))
      members.at(rank).linkSeconds = seconds;
}

void Channel::addCells() {
  std::map<int64_t, std::set<int64_t>> peers, sources;
  for (int64_t rank : collective.participants)
    peers[rank].insert(rank);
  for (const ChannelPart &part : collective.parts) {
    int64_t elementBytes = byteSize(part.dtype);
    for (const auto &[rank, cells] : part.cells) {
      Member &self = members.at(rank);
      for (const Cell &cell : *cells)
        for (const Cell::Contribution &from : cell.from) {
          if (from.peer == rank)
            continue;
          sources[rank].insert(from.peer);
          int64_t bytes = elementCount(cell.size) * elementBytes;
          self.traffic.received += bytes;
          members.at(from.peer).traffic.sent += bytes;
        }
      if (!cells->empty())
        self.firstStage = Member::Stage::Pull;
    }
  }
  for (const auto &[rank, others] : sources)
    for (int64_t peer : others) {
      members.at(rank).sources.push_back(&members.at(peer));
      ++members.at(peer).readers;
      peers[rank].insert(peer);
      peers[peer].insert(rank);
    }
  for (const auto &[rank, others] : peers) {
    std::vector<Member *> &list = lists.emplace_back();
    for (int64_t peer : others)
      list.push_back(&members.at(peer));
    members.at(rank).peers = &list;
  }
}

void Channel::addAllReduce() {
  std::set<int64_t> alone(collective.participants.begin(),
                          collective.participants.end());
  for (const Group &group : collective.groups) {
    addGroup(group);
    for (int64_t rank : group)
      alone.erase(rank);
  }
  for (int64_t rank : alone)
    addGroup({rank});
}

void Channel::addGroup(const Group &group) {
  auto size = static_cast<int64_t>(group.size());
  const ChannelPart &tensor = collective.parts.front();
  int64_t elementBytes = byteSize(tensor.dtype);
  std::vector<Member *> &list = lists.emplace_back();
  size_t slices = 0;
  for (int64_t position = 0; position < size; ++position) {
    Member &self = members.at(group[position]);
    list.push_back(&self);
    self.peers = &list;
    int64_t count = elementCount(tensor.dstShapes.at(self.rank));
    self.slice = sliceOf(count, size, position);
    int64_t own = self.slice.size();
    // It takes its slice from the others and gives them theirs, then gives them
    // the result and takes theirs.
    int64_t elements = own * (size - 1) + (count - own);
    self.traffic.received = self.traffic.sent = elements * elementBytes;
    bool hasSlice = own > 0;
    slices += hasSlice;
    self.readers = hasSlice ? group.size() - 1 : 0;
    self.firstStage = hasSlice ? Member::Stage::Reduce : Member::Stage::Copy;
  }
  for (Member *member : list)
    member->slices = slices;
}

void Channel::reset() {
  for (auto &[rank, member] : members)
    member.use = 0;
}

} // namespace whale::runtime::local
