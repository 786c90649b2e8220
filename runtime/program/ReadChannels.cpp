//===- ReadChannels.cpp - Decode the collectives of a program ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Numeric.h"
#include "program/Reader.h"

#include <algorithm>

namespace whale::runtime {

static std::optional<Reduction> parseReduction(const std::string &name) {
  static const std::map<std::string, Reduction> reductions = {
      {"sum", Reduction::Sum}, {"product", Reduction::Product},
      {"min", Reduction::Min}, {"max", Reduction::Max},
      {"and", Reduction::And}, {"or", Reduction::Or}};
  auto it = reductions.find(name);
  if (it == reductions.end())
    return std::nullopt;
  return it->second;
}

static Reduction readReduction(const Field &field, DType dtype) {
  auto reduction = parseReduction(field.text());
  if (!reduction)
    field.fail("must be 'sum', 'product', 'min', 'max', 'and' or 'or'");
  bool bitwise = *reduction == Reduction::And || *reduction == Reduction::Or;
  bool ordered = *reduction == Reduction::Min || *reduction == Reduction::Max;
  if (!hasArithmetic(dtype) || (bitwise && !isInteger(dtype)) ||
      (ordered && isComplex(dtype)))
    field.fail("there is no '" + field.text() + "' of " +
               std::string(name(dtype)));
  return *reduction;
}

/// The rank that a key of an object by rank means.
static int64_t participantOf(const Field &field, const std::string &key,
                             const Channel &channel) {
  auto rank = parseDecimal(key);
  if (!rank || !std::binary_search(channel.participants.begin(),
                                   channel.participants.end(), *rank))
    field.fail("'" + key + "' is no participant");
  return *rank;
}

static void checkParticipant(const Field &field, int64_t rank,
                             const Channel &channel) {
  if (!std::binary_search(channel.participants.begin(),
                          channel.participants.end(), rank))
    field.fail(std::to_string(rank) + " is no participant");
}

static Cell readCell(const Field &field, const Channel &channel) {
  Field dst = field.at("dst");
  if (dst.size() != 2)
    dst.fail("must be [start, size]");
  Cell cell;
  cell.dstStart = dst[0].integers();
  cell.size = dst[1].shape();
  if (cell.dstStart.size() != cell.size.size())
    dst.fail("start and size have different numbers of dimensions");
  Field from = field.at("from");
  if (from.size() == 0 && !channel.reduction)
    from.fail("must not be empty without a reduction");
  for (size_t i = 0; i < from.size(); ++i) {
    Field entry = from[i];
    if (entry.size() != 2)
      entry.fail("must be [peer, start]");
    int64_t peer = entry[0].integer();
    checkParticipant(entry[0], peer, channel);
    cell.from.push_back({peer, entry[1].integers()});
    if (cell.from.back().start.size() != cell.size.size())
      entry[1].fail("must have " + std::to_string(cell.size.size()) +
                    " dimensions");
  }
  if (cell.from.size() > 1 && !channel.reduction)
    from.fail("several contributions need a reduction");
  return cell;
}

static void readGroups(const Field &field, Channel &channel) {
  std::set<int64_t> seen;
  for (size_t i = 0; i < field.size(); ++i) {
    Field list = field[i];
    std::vector<int64_t> group = list.integers();
    if (group.empty())
      list.fail("must not be empty");
    for (int64_t rank : group) {
      checkParticipant(list, rank, channel);
      if (!seen.insert(rank).second)
        list.fail("rank " + std::to_string(rank) + " stands twice in groups");
    }
    channel.groups.push_back(std::move(group));
  }
  if (seen.size() != channel.participants.size())
    field.fail("must hold every participant");
  if (!channel.reduction)
    field.fail("groups need a reduction");
}

/// The cells of a rank: its own list, or that of another rank that it names.
static Field cellsOf(const Field &cells, const std::string &rank) {
  Field list = cells.at(rank);
  if (!list.json().is_number())
    return list;
  auto other = cells.find(std::to_string(list.integer()));
  if (!other || !other->json().is_array())
    list.fail("rank " + std::to_string(list.integer()) + " has no list");
  return *other;
}

static Channel readChannel(const Field &field, size_t ranks) {
  Channel channel;
  channel.kind = field.at("kind").text();
  static const std::set<std::string> kinds = {
      "all_reduce", "all_gather", "reduce_scatter", "all_to_all",
      "broadcast",  "send_recv",  "local_slice"};
  if (!kinds.count(channel.kind))
    field.at("kind").fail("unknown kind '" + channel.kind + "'");
  channel.dtype = field.at("dtype").dtype();
  if (auto reduction = field.find("reduction"))
    channel.reduction = readReduction(*reduction, channel.dtype);

  Field participants = field.at("participants");
  channel.participants =
      participants.integers(0, static_cast<int64_t>(ranks) - 1);
  for (size_t i = 1; i < channel.participants.size(); ++i)
    if (channel.participants[i - 1] >= channel.participants[i])
      participants.fail("must be ascending");

  auto groups = field.find("groups");
  auto cells = field.find("cells");
  if (groups && groups->size() == 0)
    groups.reset();
  if (groups && cells && !cells->keys().empty())
    field.fail("has both groups and cells");
  if (groups) {
    readGroups(*groups, channel);
    return channel;
  }
  if (!cells)
    field.fail("has neither groups nor cells");
  for (const std::string &key : cells->keys()) {
    Field list = cellsOf(*cells, key);
    auto &table = channel.cells[participantOf(*cells, key, channel)];
    for (size_t i = 0; i < list.size(); ++i)
      table.push_back(readCell(list[i], channel));
  }
  for (auto [name, shapes] : {std::pair{"src_shapes", &channel.srcShapes},
                              std::pair{"dst_shapes", &channel.dstShapes}})
    if (auto given = field.find(name))
      for (const std::string &key : given->keys())
        if (auto shape = given->find(key))
          (*shapes)[participantOf(*given, key, channel)] = shape->shape();
  return channel;
}

void ManifestReader::readChannels(const Field &root) {
  Field channels = root.at("channels");
  for (const std::string &key : channels.keys()) {
    auto number = parseDecimal(key);
    if (!number)
      channels.fail("'" + key + "' is not the number of a channel");
    Field field = channels.at(key);
    if (auto other = field.find("same_as")) {
      describedAt[*number] = other->integer();
      continue;
    }
    Channel channel = readChannel(field, manifest.classOf.size());
    channel.number = *number;
    manifest.channels.emplace(*number, std::move(channel));
  }
  for (auto [number, other] : describedAt) {
    auto it = manifest.channels.find(other);
    if (it == manifest.channels.end() || describedAt.count(other))
      channels.at(std::to_string(number))
          .at("same_as")
          .fail("channel " + std::to_string(other) + " is not described");
    Channel channel = it->second;
    channel.number = number;
    manifest.channels.emplace(number, std::move(channel));
  }
}

/// Whether [start, start + size) lies in `shape`, of as many dimensions.
static bool inside(const Shape &start, const Shape &size, const Shape &shape) {
  for (size_t i = 0; i < shape.size(); ++i)
    if (start[i] > shape[i] || size[i] > shape[i] - start[i])
      return false;
  return true;
}

/// Completes the extents of one side from the buffers.
static void completeShapes(const Field &field, const std::string &name,
                           std::map<int64_t, Shape> &shapes, int64_t rank,
                           const std::optional<Shape> &buffer) {
  auto it = shapes.find(rank);
  if (it == shapes.end()) {
    if (buffer)
      shapes[rank] = *buffer;
    return;
  }
  if (!buffer)
    field.fail(name + " has an entry for rank " + std::to_string(rank) +
               ", which has no such buffer");
  if (elementCount(it->second) != elementCount(*buffer))
    field.fail(name + " of rank " + std::to_string(rank) +
               " has another number of elements than its buffer " +
               toString(*buffer));
}

static void checkCells(const Field &field, const Channel &channel) {
  for (const auto &[rank, cells] : channel.cells) {
    Field list = cellsOf(field, std::to_string(rank));
    auto dstShape = channel.dstShapes.find(rank);
    if (dstShape == channel.dstShapes.end()) {
      if (cells.empty())
        continue;
      list.fail("rank " + std::to_string(rank) + " has no dst buffer");
    }
    std::vector<Box> boxes;
    for (size_t i = 0; i < cells.size(); ++i) {
      const Cell &cell = cells[i];
      if (cell.size.size() != dstShape->second.size())
        list[i].fail("has " + std::to_string(cell.size.size()) +
                     " dimensions, the buffer of rank " + std::to_string(rank) +
                     " is " + toString(dstShape->second) +
                     " (a view needs dst_shapes)");
      if (!inside(cell.dstStart, cell.size, dstShape->second))
        list[i].fail("dst reaches out of the buffer " +
                     toString(dstShape->second));
      for (const Cell::Contribution &from : cell.from) {
        auto srcShape = channel.srcShapes.find(from.peer);
        std::string peer = std::to_string(from.peer);
        if (srcShape == channel.srcShapes.end())
          list[i].fail("rank " + peer + " has no src buffer");
        if (cell.size.size() != srcShape->second.size())
          list[i].fail("has " + std::to_string(cell.size.size()) +
                       " dimensions, the buffer of rank " + peer + " is " +
                       toString(srcShape->second) +
                       " (a view needs src_shapes)");
        if (!inside(from.start, cell.size, srcShape->second))
          list[i].fail("reaches out of the buffer " +
                       toString(srcShape->second) + " of rank " + peer);
      }
      boxes.push_back({cell.dstStart, cell.size});
    }
    // Sorted along the first dimension, only neighbours can meet.
    std::sort(boxes.begin(), boxes.end(),
              [](const Box &a, const Box &b) { return a.start < b.start; });
    for (size_t i = 0; i < boxes.size(); ++i)
      for (size_t j = i + 1;
           j < boxes.size() && !boxes[i].start.empty() &&
           boxes[j].start[0] < boxes[i].start[0] + boxes[i].size[0];
           ++j)
        if (intersect(boxes[i], boxes[j]))
          list.fail("cells overlap");
  }
}

void ManifestReader::checkChannels(const Field &root) {
  Field channels = root.at("channels");
  for (auto &[number, channel] : manifest.channels) {
    auto described = describedAt.find(number);
    Field field = channels.at(std::to_string(
        described == describedAt.end() ? number : described->second));
    const auto &channelUses = uses[number];
    for (int64_t rank : channel.participants) {
      auto use = channelUses.find(rank);
      if (use == channelUses.end())
        field.fail("rank " + std::to_string(rank) +
                   " is a participant, but its class does not use it");
      completeShapes(field, "src_shapes", channel.srcShapes, rank,
                     use->second.src);
      completeShapes(field, "dst_shapes", channel.dstShapes, rank,
                     use->second.dst);
    }
    for (const auto &group : channel.groups)
      for (int64_t rank : group) {
        const Use &first = channelUses.at(group[0]);
        const Use &use = channelUses.at(rank);
        if (!use.src || !use.dst || !first.src ||
            elementCount(*use.src) != elementCount(*first.src) ||
            elementCount(*use.dst) != elementCount(*use.src))
          field.fail("the buffers of rank " + std::to_string(rank) +
                     " differ in size from those of its group");
      }
    if (!channel.cells.empty())
      checkCells(field.at("cells"), channel);
  }
}

} // namespace whale::runtime
