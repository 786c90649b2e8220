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
// everything. In all other kinds a rank has one message for each peer, of all
// parts of the channel, and one more for each part that is large. A message
// goes directly from or to the buffer if it is one run there, and is no term of
// a sum; else through staging memory. Cost: linear in the cells of all
// receivers.
//
//===----------------------------------------------------------------------===//

#include "transport/message/Part.h"

#include "CopyBox.h"

#include <algorithm>
#include <numeric>

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
  const ChannelPart &tensor = collective.parts.front();
  int64_t bytes = byteSize(tensor.dtype);
  int64_t count = elementCount(tensor.dstShapes.at(rank));
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
  planStaging(sends, &ChannelPart::srcShapes, {});
  planStaging(receives, &ChannelPart::dstShapes, findTerms());
  for (const Message &message : sends)
    traffic.sent += message.bytes;
  for (const Message &message : receives)
    traffic.received += message.bytes;
  addAssemblies();
}

const Part::Cells *Part::ownCells(const ChannelPart &tensor) const {
  auto it = tensor.cells.find(rank);
  return it == tensor.cells.end() ? nullptr : &*it->second;
}

namespace {
/// What goes between the rank and one peer.
struct PeerMessages {
  std::vector<Part::Message> messages;
  /// The one that parts are added to.
  std::optional<size_t> open;

  /// Both ends add the parts in one order.
  void add(Part::Message &&ofPart) {
    bool isAlone = ofPart.bytes >= aloneBytes;
    if (isAlone || !open || messages[*open].bytes + ofPart.bytes > mostJoined) {
      if (!isAlone)
        open = messages.size();
      messages.push_back(std::move(ofPart));
      return;
    }
    Part::Message &joined = messages[*open];
    for (Part::Piece &piece : ofPart.pieces) {
      piece.offset += joined.bytes;
      joined.pieces.push_back(piece);
    }
    joined.bytes += ofPart.bytes;
  }
};
} // namespace

/// Parts with larger elements first: so all elements of a message are aligned.
static std::vector<size_t> partsByWidth(const Collective &collective) {
  std::vector<size_t> order(collective.parts.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](size_t part) {
    return byteSize(collective.parts[part].dtype);
  });
  return order;
}

/// Collects what the rank exchanges with each peer.
void Part::addMessages() {
  std::map<int64_t, PeerMessages> from, to;
  for (size_t number : partsByWidth(collective)) {
    const ChannelPart &tensor = collective.parts[number];
    std::map<int64_t, Message> partFrom, partTo;
    auto add = [&](std::map<int64_t, Message> &list, int64_t peer,
                   const Shape &start, const Shape &size) {
      if (elementCount(size) == 0)
        return;
      Message &message = list[peer];
      message.peer = peer;
      message.pieces.push_back({number, &start, &size, message.bytes});
      message.bytes += elementCount(size) * byteSize(tensor.dtype);
    };
    for (const auto &[receiver, cells] : tensor.cells)
      for (const Cell &cell : *cells)
        for (const Cell::Contribution &part : cell.from) {
          if (part.peer == receiver)
            continue;
          if (receiver == rank)
            add(partFrom, part.peer, cell.dstStart, cell.size);
          else if (part.peer == rank)
            add(partTo, receiver, part.start, cell.size);
        }
    for (auto &[peer, message] : partFrom)
      from[peer].add(std::move(message));
    for (auto &[peer, message] : partTo)
      to[peer].add(std::move(message));
  }
  std::set<int64_t> others;
  auto move = [&](std::map<int64_t, PeerMessages> &list,
                  std::vector<Message> &messages) {
    for (auto &[peer, its] : list) {
      others.insert(peer);
      for (Message &message : its.messages)
        messages.push_back(std::move(message));
    }
  };
  move(to, sends);
  move(from, receives);
  peers.assign(others.begin(), others.end());
}

Part::Terms Part::findTerms() const {
  Terms terms;
  for (size_t number = 0; number < collective.parts.size(); ++number)
    if (const Cells *cells = ownCells(collective.parts[number]))
      for (const Cell &cell : *cells)
        if (cell.from.size() != 1)
          for (const Cell::Contribution &part : cell.from)
            terms.emplace(number, part.peer);
  return terms;
}

/// Finds the messages that are one run of the buffer, and gives the others
/// staging memory. What is a term of a sum is not received into the result.
void Part::planStaging(std::vector<Message> &messages,
                       std::map<int64_t, Shape> ChannelPart::*extents,
                       const Terms &terms) {
  for (Message &message : messages) {
    const Piece &piece = message.pieces.front();
    const ChannelPart &tensor = collective.parts[piece.part];
    if (message.pieces.size() == 1 &&
        !terms.contains({piece.part, message.peer}))
      if (auto first =
              runOf((tensor.*extents).at(rank), *piece.start, *piece.size))
        message.direct = *first * byteSize(tensor.dtype);
    if (!message.direct) {
      message.staging = stagingBytes;
      stagingBytes += aligned(message.bytes);
    }
  }
}

/// Adds the cells that no direct message fills.
void Part::addAssemblies() {
  // By part and peer: where its next piece is.
  std::map<std::pair<size_t, int64_t>, std::pair<const Message *, size_t>> read;
  for (const Message &message : receives)
    for (size_t i = 0; i < message.pieces.size(); ++i)
      read.try_emplace({message.pieces[i].part, message.peer}, &message, i);
  for (size_t number = 0; number < collective.parts.size(); ++number) {
    const Cells *cells = ownCells(collective.parts[number]);
    if (!cells)
      continue;
    for (const Cell &cell : *cells) {
      Assembly assembly{number, &cell, {}};
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
        auto &[message, next] = read.at({number, part.peer});
        source.message = message;
        source.offset = message->pieces[next++].offset;
        isThere &= message->direct.has_value();
      }
      if (!isThere && elementCount(cell.size) > 0)
        assemblies.push_back(std::move(assembly));
    }
  }
}

void Part::pack(const Message &message, Buffers buffers, char *to) const {
  for (const Piece &piece : message.pieces) {
    const ChannelPart &tensor = collective.parts[piece.part];
    const Shape &extents = tensor.srcShapes.at(rank);
    copyBox(to + piece.offset, *piece.size, Shape(extents.size(), 0),
            buffers[piece.part].src, extents, *piece.start, *piece.size,
            byteSize(tensor.dtype));
  }
}

void Part::forEachAssembly(
    Buffers buffers, const DataOf &dataOf,
    const std::function<void(size_t, const Cell &, std::span<const BoxSource>)>
        &visit) const {
  std::vector<BoxSource> boxes;
  for (const Assembly &assembly : assemblies) {
    const Cell &cell = *assembly.cell;
    const ChannelPart &tensor = collective.parts[assembly.part];
    Shape origin(cell.size.size(), 0);
    boxes.clear();
    for (const Source &source : assembly.sources) {
      if (const Message *message = source.message)
        boxes.push_back(
            {dataOf(*message) + source.offset, &cell.size, &origin});
      else
        boxes.push_back({buffers[assembly.part].src, &tensor.srcShapes.at(rank),
                         source.start});
    }
    visit(assembly.part, cell, boxes);
  }
}

void Part::assemble(Buffers buffers, const DataOf &dataOf) const {
  forEachAssembly(
      buffers, dataOf,
      [&](size_t part, const Cell &cell, std::span<const BoxSource> boxes) {
        const ChannelPart &tensor = collective.parts[part];
        void *dst = buffers[part].dst;
        const Shape &dstShape = tensor.dstShapes.at(rank);
        if (boxes.size() == 1)
          copyBox(dst, dstShape, cell.dstStart, boxes[0].data, *boxes[0].shape,
                  *boxes[0].start, cell.size, byteSize(tensor.dtype));
        else
          reduceBox(tensor.dtype, *tensor.reduction, dst, dstShape,
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
  const ChannelPart &tensor = collective.parts.front();
  reduce(tensor.dtype, *tensor.reduction, dst, sources, slices.back().end);
}

} // namespace whale::runtime::message
