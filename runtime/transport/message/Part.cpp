//===- Part.cpp - A rank's messages in a channel --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a collective and a rank. Out: the messages that the rank sends and
// receives, and what it does with them. In an all-reduce each member reduces
// one slice and sends that to all others; in a small one each reduces
// everything. In all other kinds a rank has one message for each peer. A
// message goes directly from or to the buffer if it is one run there, and is no
// term of a sum; else through staging memory. Cost: linear in the cells of all
// receivers.
//
//===----------------------------------------------------------------------===//

#include "transport/message/Part.h"

#include "CopyBox.h"

#include <algorithm>

namespace whale::runtime::message {

/// The first element of a box in a buffer of these extents if the box is one
/// run of elements.
static std::optional<int64_t> runOf(const Shape &extents, const Shape &start,
                                    const Shape &size) {
  int64_t first = 0;
  // Dimensions before the first one that is longer than 1 in the box may be
  // cut; those behind it may not.
  bool isLong = false;
  for (size_t d = 0; d < extents.size(); ++d) {
    first = first * extents[d] + start[d];
    if (isLong && size[d] != extents[d])
      return std::nullopt;
    isLong |= size[d] != 1;
  }
  return first;
}

static constexpr int64_t alignment = 64;
static int64_t aligned(int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

Part::Part(const Collective &collective, int64_t channel, int64_t rank)
    : collective(collective), channel(channel), rank(rank) {
  if (collective.isAllReduce())
    addAllReduce();
  else
    addCells();
}

/// What is said of messages without a channel.
static const Collective &noChannel() {
  static const Collective none = [] {
    Collective made;
    made.kind = "exchange";
    return made;
  }();
  return none;
}

Part::Part(int64_t rank, std::span<const RankMessage> given,
           std::span<const RankMessage> taken)
    : collective(noChannel()), channel(Ticket::ofMessages), rank(rank) {
  std::set<int64_t> others;
  auto add = [&](std::vector<Message> &list, const RankMessage &message) {
    if (message.bytes == 0)
      return;
    Message &added = list.emplace_back();
    added.peer = message.peer;
    added.bytes = message.bytes;
    added.data = static_cast<char *>(message.data);
    others.insert(message.peer);
  };
  for (const RankMessage &message : given) {
    add(sends, message);
    traffic.sent += message.bytes;
  }
  for (const RankMessage &message : taken) {
    add(receives, message);
    traffic.received += message.bytes;
  }
  peers.assign(others.begin(), others.end());
}

bool Part::hasChannel() const { return channel != Ticket::ofMessages; }

void Part::addAllReduce() {
  group = {rank};
  for (const Group &each : collective.groups)
    if (std::ranges::count(each, rank))
      group = each;
  int64_t bytes = byteSize(collective.dtype);
  int64_t count = elementCount(collective.dstShapes.at(rank));
  auto members = static_cast<int64_t>(group.size());
  for (int64_t i = 0; i < members; ++i) {
    slices.push_back(sliceOf(count, members, i));
    if (group[i] == rank)
      position = i;
    else
      peers.push_back(group[i]);
  }
  isSmall = members > 1 && count > 0 && count * bytes <= smallBytes;
  if (isSmall) {
    traffic.sent = traffic.received = count * bytes * (members - 1);
    stagingBytes = (members - 1) * aligned(count * bytes);
    return;
  }
  int64_t own = slices[position].size();
  traffic.sent = traffic.received =
      (own * (members - 1) + (count - own)) * bytes;
  if (own > 0)
    stagingBytes = (members - 1) * chunksAtOnce *
                   aligned(std::min(own * bytes, chunkBytes));
}

void Part::addCells() {
  addMessages();
  planStaging(sends, collective.srcShapes, {});
  planStaging(receives, collective.dstShapes, findTerms());
  for (const Message &message : sends)
    traffic.sent += message.bytes;
  for (const Message &message : receives)
    traffic.received += message.bytes;
  addAssemblies();
}

const Part::Cells *Part::ownCells() const {
  auto it = collective.cells.find(rank);
  return it == collective.cells.end() ? nullptr : &*it->second;
}

/// Collects what the rank exchanges with each peer.
void Part::addMessages() {
  std::map<int64_t, Message> from, to;
  auto add = [&](std::map<int64_t, Message> &list, int64_t peer,
                 const Shape &start, const Shape &size) {
    if (elementCount(size) == 0)
      return;
    Message &message = list[peer];
    message.peer = peer;
    message.pieces.push_back({&start, &size, message.bytes});
    message.bytes += elementCount(size) * byteSize(collective.dtype);
  };
  for (const auto &[receiver, cells] : collective.cells)
    for (const Cell &cell : *cells)
      for (const Cell::Contribution &part : cell.from) {
        if (part.peer == receiver)
          continue;
        if (receiver == rank)
          add(from, part.peer, cell.dstStart, cell.size);
        else if (part.peer == rank)
          add(to, receiver, part.start, cell.size);
      }
  std::set<int64_t> others;
  auto move = [&](std::map<int64_t, Message> &list,
                  std::vector<Message> &messages) {
    for (auto &[peer, message] : list) {
      others.insert(peer);
      messages.push_back(std::move(message));
    }
  };
  move(to, sends);
  move(from, receives);
  peers.assign(others.begin(), others.end());
}

/// The peers from which the rank receives terms of sums.
std::set<int64_t> Part::findTerms() const {
  std::set<int64_t> terms;
  if (const Cells *cells = ownCells())
    for (const Cell &cell : *cells)
      if (cell.from.size() != 1)
        for (const Cell::Contribution &part : cell.from)
          terms.insert(part.peer);
  return terms;
}

/// Finds the messages that are one run of the buffer, and gives the others
/// staging memory. What is a term of a sum is not received into the result.
void Part::planStaging(std::vector<Message> &messages,
                       const std::map<int64_t, Shape> &extents,
                       const std::set<int64_t> &terms) {
  for (Message &message : messages) {
    if (message.pieces.size() == 1 && !terms.contains(message.peer))
      if (auto first = runOf(extents.at(rank), *message.pieces[0].start,
                             *message.pieces[0].size))
        message.direct = *first * byteSize(collective.dtype);
    if (!message.direct) {
      message.staging = stagingBytes;
      stagingBytes += aligned(message.bytes);
    }
  }
}

/// Adds the cells that no direct message fills.
void Part::addAssemblies() {
  const Cells *cells = ownCells();
  if (!cells)
    return;
  std::map<int64_t, std::pair<const Message *, size_t>> read;
  for (const Message &message : receives)
    read[message.peer] = {&message, 0};
  for (const Cell &cell : *cells) {
    Assembly assembly{&cell, {}};
    bool isThere = cell.from.size() == 1;
    for (const Cell::Contribution &part : cell.from) {
      Source &source = assembly.sources.emplace_back();
      source.start = &part.start;
      if (part.peer == rank) {
        isThere = false;
        continue;
      }
      if (elementCount(cell.size) == 0)
        continue;
      auto &[message, next] = read.at(part.peer);
      source.message = message;
      source.offset = message->pieces[next++].offset;
      isThere &= message->direct.has_value();
    }
    if (!isThere && elementCount(cell.size) > 0)
      assemblies.push_back(std::move(assembly));
  }
}

void Part::pack(const Message &message, const char *src, char *to) const {
  if (message.direct) {
    std::copy_n(src + *message.direct, message.bytes, to);
    return;
  }
  const Shape &extents = collective.srcShapes.at(rank);
  for (const Piece &piece : message.pieces)
    copyBox(to + piece.offset, *piece.size, Shape(extents.size(), 0), src,
            extents, *piece.start, *piece.size, byteSize(collective.dtype));
}

void Part::forEachAssembly(
    const char *src, const DataOf &dataOf,
    const std::function<void(const Cell &, std::span<const BoxSource>)> &visit)
    const {
  std::vector<BoxSource> boxes;
  for (const Assembly &assembly : assemblies) {
    const Cell &cell = *assembly.cell;
    Shape origin(cell.size.size(), 0);
    boxes.clear();
    for (const Source &source : assembly.sources) {
      if (const Message *message = source.message)
        boxes.push_back(
            {dataOf(*message) + source.offset, &cell.size, &origin});
      else
        boxes.push_back({src, &collective.srcShapes.at(rank), source.start});
    }
    visit(cell, boxes);
  }
}

void Part::assemble(const char *src, char *dst, const DataOf &dataOf) const {
  forEachAssembly(
      src, dataOf, [&](const Cell &cell, std::span<const BoxSource> boxes) {
        const Shape &dstShape = collective.dstShapes.at(rank);
        if (boxes.size() == 1)
          copyBox(dst, dstShape, cell.dstStart, boxes[0].data, *boxes[0].shape,
                  *boxes[0].start, cell.size, byteSize(collective.dtype));
        else
          reduceBox(collective.dtype, *collective.reduction, dst, dstShape,
                    cell.dstStart, cell.size, boxes);
      });
}

void Part::reduceSources(
    const char *src, char *dst,
    const std::function<const char *(size_t)> &dataOf) const {
  std::vector<const void *> sources;
  // The peers are the group without the rank itself.
  for (size_t i = 0; i < group.size(); ++i)
    sources.push_back(i == position ? src : dataOf(i - (i > position)));
  reduce(collective.dtype, *collective.reduction, dst, sources,
         slices.back().end);
}

} // namespace whale::runtime::message
