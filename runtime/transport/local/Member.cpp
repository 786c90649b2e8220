//===- Member.cpp - Moving the data of a transfer -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/local/Member.h"

#include "CopyBox.h"
#include "transport/Reduce.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace whale::runtime::local {

void Member::move() const {
  switch (stage) {
  case Stage::Pull:
    return pull();
  case Stage::Reduce:
    return reduceSlice();
  case Stage::Copy:
    return copySlices();
  case Stage::Nothing:
    return;
  }
}

Member messagesOf(int64_t rank, std::span<const RankMessage> sends,
                  std::span<const RankMessage> receives) {
  Member member;
  member.rank = rank;
  auto add = [&](std::span<const RankMessage> given,
                 std::vector<RankMessage> &list, int64_t &bytes) {
    std::set<int64_t> peers;
    for (const RankMessage &message : given) {
      if (message.bytes == 0)
        continue;
      list.push_back(message);
      bytes += message.bytes;
      member.partners[message.peer] = nullptr;
      peers.insert(message.peer);
    }
    return peers.size();
  };
  member.readers = add(sends, member.sends, member.traffic.sent);
  if (add(receives, member.receives, member.traffic.received))
    member.firstStage = Member::Stage::Pull;
  return member;
}

/// Each takes what the other has for it, in the order of both lists.
void Member::pullMessages() const {
  std::map<int64_t, std::vector<const RankMessage *>> given;
  for (const RankMessage &message : receives)
    given[message.peer];
  for (auto &[peer, list] : given)
    for (const RankMessage &message : partners.at(peer)->sends)
      if (message.peer == rank)
        list.push_back(&message);
  std::map<int64_t, size_t> taken;
  for (const RankMessage &message : receives) {
    size_t number = taken[message.peer]++;
    const auto &list = given[message.peer];
    if (number >= list.size() || list[number]->bytes != message.bytes)
      throw Error("rank " + std::to_string(message.peer) +
                  " sends other messages than rank " + std::to_string(rank) +
                  " receives");
    std::memcpy(message.data, list[number]->data,
                static_cast<size_t>(message.bytes));
  }
}

void Member::pull() const {
  if (!collective)
    return pullMessages();
  for (size_t part = 0; part < collective->parts.size(); ++part)
    pull(part);
}

void Member::pull(size_t number) const {
  const ChannelPart &part = collective->parts[number];
  auto cells = part.cells.find(rank);
  if (cells == part.cells.end())
    return;
  std::map<int64_t, const void *> given{{rank, buffers[number].src}};
  for (const Member *source : sources)
    given[source->rank] = source->buffers[number].src;
  void *dst = buffers[number].dst;
  const Shape &dstShape = part.dstShapes.at(rank);
  int64_t elementBytes = byteSize(part.dtype);
  std::vector<BoxSource> boxes;
  for (const Cell &cell : *cells->second) {
    boxes.clear();
    for (const Cell::Contribution &from : cell.from)
      boxes.push_back(
          {given.at(from.peer), &part.srcShapes.at(from.peer), &from.start});
    if (boxes.size() == 1)
      copyBox(dst, dstShape, cell.dstStart, boxes[0].data, *boxes[0].shape,
              *boxes[0].start, cell.size, elementBytes);
    else
      reduceBox(part.dtype, *part.reduction, dst, dstShape, cell.dstStart,
                cell.size, boxes);
  }
}

// An all-reduce has two stages. In between nobody writes what another still
// reads, even where source and destination are one buffer.

void Member::reduceSlice() const {
  const ChannelPart &tensor = collective->parts.front();
  int64_t offset = slice.begin * byteSize(tensor.dtype);
  std::vector<const void *> terms;
  for (const Member *member : *peers)
    terms.push_back(static_cast<const char *>(member->buffers.front().src) +
                    offset);
  reduce(tensor.dtype, *tensor.reduction,
         static_cast<char *>(buffers.front().dst) + offset, terms,
         slice.size());
}

void Member::copySlices() const {
  int64_t elementBytes = byteSize(collective->parts.front().dtype);
  auto *dst = static_cast<char *>(buffers.front().dst);
  // A peer without a slice may have left already.
  for (const Member *member : *peers)
    if (member != this && member->slice.size() > 0)
      std::copy_n(static_cast<const char *>(member->buffers.front().dst) +
                      member->slice.begin * elementBytes,
                  member->slice.size() * elementBytes,
                  dst + member->slice.begin * elementBytes);
}

} // namespace whale::runtime::local
