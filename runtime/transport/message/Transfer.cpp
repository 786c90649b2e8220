//===- Transfer.cpp - One use of a channel by a rank ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a rank's part of a channel, its buffers, and staging memory. Out: its
// messages, and the destination complete.
//
// An all-reduce moves the bytes that its lower bound names: each member reduces
// a slice. It receives the others' parts of it chunk by chunk, reduces a chunk
// in the group's order (the same bits as in one process) while the next one
// arrives, and sends the result to the others. In a small one each member
// receives all from all others, and reduces all. Other channels send to each
// peer one message of all that is small, straight from and to the buffers where
// these have its elements in one run. Such messages are synchronous: a sender
// does not run ahead of its receivers. In an all-reduce what the others send is
// the proof that they have begun.
//
// Costs: staging memory for two chunks from each peer, or for one use of the
// channel of other kinds that needs most.
//
//===----------------------------------------------------------------------===//

#include "transport/message/Transfer.h"

#include "transport/Reduce.h"

#include <algorithm>
#include <bit>

namespace whale::runtime::message {

Addresses::Addresses(std::vector<int64_t> processOfRank, Mover::Tag maxTag)
    : process(std::move(processOfRank)) {
  std::map<int64_t, Mover::Tag> counts;
  Mover::Tag most = 0;
  for (int64_t each : process)
    most = std::max(most, local.emplace_back(counts[each]++));
  rankBits = std::bit_width(most);
  channelTags = (int64_t(maxTag) + 1) >> (2 * rankBits + kindBits);
  if (channelTags == 0)
    throw Error("messages cannot name " + std::to_string(most + 1) +
                " ranks in a process");
}

void Transfer::send(int64_t to, MessageKind kind, const void *data,
                    int64_t bytes, bool isSynchronous, int64_t &count) {
  mover.send(addresses.processOf(to),
             addresses.tagOf(part->channel, kind, part->rank, to), data, bytes,
             isSynchronous, count);
}

void Transfer::receive(int64_t from, MessageKind kind, void *data,
                       int64_t bytes, int64_t &count) {
  mover.receive(addresses.processOf(from),
                addresses.tagOf(part->channel, kind, from, part->rank), data,
                bytes, count);
}

void Transfer::begin(const Part &given, Part::Buffers from, char *memory) {
  part = &given;
  buffers.assign(from.begin(), from.end());
  staging = memory;
  if (part->collective.isAllReduce()) {
    src = static_cast<const char *>(buffers.front().src);
    dst = static_cast<char *>(buffers.front().dst);
    elementBytes = byteSize(part->collective.parts.front().dtype);
  }
  sending = receiving = 0;
  if (part->isSmall)
    beginSmallReduction();
  else if (part->collective.isAllReduce())
    beginReduction();
  else
    beginCells();
}

bool Transfer::advance() {
  if (!part)
    return false;
  if (part->isSmall)
    return finishSmallReduction();
  return part->collective.isAllReduce() ? advanceReduction() : finishCells();
}

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

void Transfer::beginCells() {
  for (const Part::Message &message : part->receives) {
    char *data = message.data ? message.data : staging + message.staging;
    if (message.direct)
      data = static_cast<char *>(buffers[message.directPart()].dst) +
             *message.direct;
    receive(message.peer, MessageKind::Data, data, message.bytes, receiving);
  }
  for (const Part::Message &message : part->sends) {
    const char *data = message.data ? message.data : staging + message.staging;
    if (message.direct)
      data = static_cast<const char *>(buffers[message.directPart()].src) +
             *message.direct;
    else if (!message.data)
      part->pack(message, buffers, staging + message.staging);
    send(message.peer, MessageKind::Data, data, message.bytes,
         /*isSynchronous=*/true, sending);
  }
}

bool Transfer::finishCells() {
  if (sending || receiving)
    return false;
  part->assemble(buffers, [&](const Part::Message &message) {
    return staging + message.staging;
  });
  part = nullptr;
  return true;
}

//===----------------------------------------------------------------------===//
// All-reduces
//===----------------------------------------------------------------------===//

void Transfer::beginSmallReduction() {
  int64_t bytes = part->slices.back().end * elementBytes;
  int64_t slot = part->stagingBytes / static_cast<int64_t>(part->peers.size());
  for (size_t i = 0; i < part->peers.size(); ++i)
    receive(part->peers[i], MessageKind::Data,
            staging + static_cast<int64_t>(i) * slot, bytes, receiving);
  for (int64_t peer : part->peers)
    send(peer, MessageKind::Data, src, bytes, /*isSynchronous=*/false, sending);
}

bool Transfer::finishSmallReduction() {
  // The result may lie where the source does.
  if (sending || receiving)
    return false;
  int64_t slot = part->stagingBytes / static_cast<int64_t>(part->peers.size());
  part->reduceSources(src, dst, [&](size_t peer) {
    return staging + static_cast<int64_t>(peer) * slot;
  });
  part = nullptr;
  return true;
}

int64_t Transfer::chunksIn(const Slice &slice) const {
  return (slice.size() * elementBytes + chunkBytes - 1) / chunkBytes;
}

Slice Transfer::chunkOf(const Slice &slice, int64_t chunk) const {
  int64_t elements = chunkBytes / elementBytes;
  int64_t begin = slice.begin + chunk * elements;
  return {begin, std::min(begin + elements, slice.end)};
}

char *Transfer::slotOf(int64_t chunk, size_t member) const {
  int64_t slots = part->stagingBytes / chunksAtOnce;
  return staging + chunk % chunksAtOnce * slots +
         static_cast<int64_t>(member) *
             (slots / static_cast<int64_t>(members.size()));
}

void Transfer::receiveChunk(int64_t chunk) {
  const Slice &own = part->slices[part->position];
  if (chunk >= chunksIn(own))
    return;
  int64_t bytes = chunkOf(own, chunk).size() * elementBytes;
  for (size_t i = 0; i < members.size(); ++i)
    receive(members[i].rank, MessageKind::Data, slotOf(chunk, i), bytes,
            chunks[chunk % chunksAtOnce]);
}

void Transfer::beginReduction() {
  chunks = {};
  reduced = 0;
  members.clear();
  for (size_t i = 0; i < part->group.size(); ++i)
    if (i != part->position)
      members.push_back({part->group[i], i});
  for (int64_t chunk = 0; chunk < chunksAtOnce; ++chunk)
    receiveChunk(chunk);
  for (Member &member : members) {
    const Slice &slice = part->slices[member.position];
    for (int64_t chunk = 0; chunk < chunksIn(slice); ++chunk) {
      Slice piece = chunkOf(slice, chunk);
      send(member.rank, MessageKind::Data, src + piece.begin * elementBytes,
           piece.size() * elementBytes, /*isSynchronous=*/false, member.toIt);
    }
  }
}

/// Reduces a chunk of the rank's own slice and sends it to all others.
void Transfer::reduceChunk(int64_t chunk) {
  Slice piece = chunkOf(part->slices[part->position], chunk);
  int64_t offset = piece.begin * elementBytes;
  std::vector<const void *> sources(part->group.size());
  sources[part->position] = src + offset;
  for (size_t i = 0; i < members.size(); ++i)
    sources[members[i].position] = slotOf(chunk, i);
  const ChannelPart &tensor = part->collective.parts.front();
  reduce(tensor.dtype, *tensor.reduction, dst + offset, sources, piece.size());
  for (const Member &member : members)
    send(member.rank, MessageKind::Result, dst + offset,
         piece.size() * elementBytes,
         /*isSynchronous=*/false, sending);
}

bool Transfer::advanceReduction() {
  bool isMoved = false;
  int64_t count = chunksIn(part->slices[part->position]);
  while (reduced < count && chunks[reduced % chunksAtOnce] == 0) {
    reduceChunk(reduced);
    receiveChunk(reduced + chunksAtOnce);
    ++reduced;
    isMoved = true;
  }
  // The result may lie where the source did: it is received once that is sent.
  bool isComplete = reduced == count && sending == 0;
  for (Member &member : members) {
    if (!member.isAwaited && member.toIt == 0) {
      const Slice &slice = part->slices[member.position];
      for (int64_t chunk = 0; chunk < chunksIn(slice); ++chunk) {
        Slice piece = chunkOf(slice, chunk);
        receive(member.rank, MessageKind::Result,
                dst + piece.begin * elementBytes, piece.size() * elementBytes,
                receiving);
      }
      member.isAwaited = isMoved = true;
    }
    isComplete &= member.isAwaited;
  }
  if (!isComplete || receiving)
    return isMoved;
  if (members.empty() && dst != src)
    std::copy_n(src, part->slices[0].size() * elementBytes, dst);
  part = nullptr;
  return true;
}

} // namespace whale::runtime::message
