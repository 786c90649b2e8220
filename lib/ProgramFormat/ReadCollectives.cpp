//===- ReadCollectives.cpp - Decode the collectives of a program ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decodes communicators and channels. In: their JSON, and the buffers that
// classes use for each channel. Checks that ranks are participants, that cells
// are inside the buffers and don't overlap, and that data moves only within a
// group. Lists of cells that ranks share are decoded and checked once. Cost:
// linear in the cells, and sorting them.
//
//===----------------------------------------------------------------------===//

#include "Reader.h"
#include "whale/ProgramFormat/Numeric.h"
#include "whale/System/Error.h"

#include <algorithm>

namespace whale::format {

static std::optional<Reduction> parseReduction(const std::string &text) {
  for (Reduction reduction :
       {Reduction::Sum, Reduction::Product, Reduction::Min, Reduction::Max,
        Reduction::And, Reduction::Or})
    if (name(reduction) == text)
      return reduction;
  return std::nullopt;
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

/// Returns the rank that a key of an object by rank denotes.
static int64_t participantOf(const Field &field, const std::string &key,
                             const Collective &collective) {
  auto rank = parseDecimal(key);
  if (!rank || !std::binary_search(collective.participants.begin(),
                                   collective.participants.end(), *rank))
    field.fail("'" + key + "' is no participant");
  return *rank;
}

namespace {
/// Checks that ranks receive only from ranks of their group.
class PeerCheck {
public:
  explicit PeerCheck(const Collective &collective) {
    for (const Group &group : collective.groups)
      for (int64_t rank : group)
        groupOf[rank] = &group;
  }

  /// Returns a peer outside the rank's group, if there is one.
  std::optional<int64_t> findStranger(int64_t rank,
                                      const std::vector<Cell> &cells) {
    const Group *group = find(rank);
    // Several ranks may share one list.
    if (group && !checked.emplace(group, &cells).second)
      return std::nullopt;
    for (const Cell &cell : cells)
      for (const Cell::Contribution &from : cell.from)
        if (group ? find(from.peer) != group : from.peer != rank)
          return from.peer;
    return std::nullopt;
  }

private:
  const Group *find(int64_t rank) const {
    auto it = groupOf.find(rank);
    return it == groupOf.end() ? nullptr : it->second;
  }

  std::map<int64_t, const Group *> groupOf;
  std::set<std::pair<const Group *, const std::vector<Cell> *>> checked;
};
} // namespace

static Cell readCell(const Field &field, const ChannelPart &part) {
  Field dst = field.at("dst");
  if (dst.size() != 2)
    dst.fail("must be [start, size]");
  Cell cell;
  cell.dstStart = dst[0].integers();
  cell.size = dst[1].shape();
  if (cell.dstStart.size() != cell.size.size())
    dst.fail("start and size have different numbers of dimensions");
  Field from = field.at("from");
  if (from.size() == 0 && !part.reduction)
    from.fail("must not be empty without a reduction");
  for (size_t i = 0; i < from.size(); ++i) {
    Field entry = from[i];
    if (entry.size() != 2)
      entry.fail("must be [peer, start]");
    cell.from.push_back({entry[0].integer(), entry[1].integers()});
    if (cell.from.back().start.size() != cell.size.size())
      entry[1].fail("must have " + std::to_string(cell.size.size()) +
                    " dimensions");
  }
  if (cell.from.size() > 1 && !part.reduction)
    from.fail("several contributions need a reduction");
  return cell;
}

/// The lists of cells of a part; each is decoded once.
class CellReader {
public:
  using Table = Shared<std::vector<Cell>>;

  CellReader(const Field &cells, const ChannelPart &part)
      : cells(cells), part(part) {}

  /// Decodes the entry of a rank: a list, the number of a rank with the same
  /// list, or that number and an offset of the sources.
  Table read(const Field &field) {
    if (field.json().is_number())
      return readList(listOf(field));
    if (field.json().is_object())
      return readMoved(field);
    return readList(field);
  }

private:
  /// Returns the list of the rank that `field` contains.
  Field listOf(const Field &field) {
    auto other = cells.find(std::to_string(field.integer()));
    if (!other || !other->json().is_array())
      field.fail("rank " + std::to_string(field.integer()) + " has no list");
    return *other;
  }

  Table readList(const Field &list) {
    auto [it, isNew] = lists.try_emplace(&list.json());
    if (isNew) {
      std::vector<Cell> table;
      table.reserve(list.size());
      for (size_t i = 0; i < list.size(); ++i)
        table.push_back(readCell(list[i], part));
      it->second = std::make_shared<std::vector<Cell>>(std::move(table));
    }
    return it->second;
  }

  Table readMoved(const Field &field) {
    Field moved = field.at("moved");
    std::vector<int64_t> by = moved.integers(-Field::maximum);
    std::vector<Cell> table = *readList(listOf(field.at("like")));
    for (Cell &cell : table)
      for (Cell::Contribution &from : cell.from) {
        if (from.start.size() != by.size())
          moved.fail("must have " + std::to_string(from.start.size()) +
                     " dimensions");
        for (size_t i = 0; i < by.size(); ++i)
          if (__builtin_add_overflow(from.start[i], by[i], &from.start[i]) ||
              from.start[i] < 0)
            moved.fail("moves a start out of its buffer");
      }
    return std::make_shared<std::vector<Cell>>(std::move(table));
  }

  const Field &cells;
  const ChannelPart &part;
  std::map<const nlohmann::json *, Table> lists;
};

static void readCells(const Field &field, const Collective &collective,
                      ChannelPart &part) {
  CellReader reader(field, part);
  for (const auto &[key, given] : field.members()) {
    int64_t rank = participantOf(field, key, collective);
    part.cells[rank] = reader.read(given);
  }
}

static ChannelPart readPart(const Field &field, const Collective &collective) {
  ChannelPart part;
  part.dtype = field.at("dtype").dtype();
  if (auto reduction = field.find("reduction"))
    part.reduction = readReduction(*reduction, part.dtype);
  if (collective.isHostCopy()) {
    if (part.reduction)
      field.at("reduction").fail("a copy has none");
    if (field.find("cells"))
      field.fail("a copy between host and device has no cells");
    return part;
  }
  if (collective.isAllReduce()) {
    if (!part.reduction)
      field.fail("an all-reduce needs a reduction");
    if (field.find("cells"))
      field.fail("an all-reduce has no cells");
    return part;
  }
  readCells(field.at("cells"), collective, part);
  for (auto [name, shapes] : {std::pair{"src_shapes", &part.srcShapes},
                              std::pair{"dst_shapes", &part.dstShapes}})
    if (auto given = field.find(name))
      for (const auto &[key, shape] : given->members())
        if (!shape.json().is_null())
          (*shapes)[participantOf(*given, key, collective)] = shape.shape();
  return part;
}

void ProgramReader::readCommunicators() {
  auto list = root.find("communicators");
  for (size_t i = 0; list && i < list->size(); ++i) {
    Field field = (*list)[i];
    Group group =
        field.integers(0, static_cast<int64_t>(program.ranks.size()) - 1);
    if (group.size() < 2 ||
        std::set<int64_t>(group.begin(), group.end()).size() != group.size())
      field.fail("must be two or more ranks, each once");
    if (i > 0 && !LargerFirst()(communicators.back(), group))
      field.fail("must come before the one before it: larger ones are first, "
                 "equally large ones in the order of their ranks");
    communicators.push_back(std::move(group));
  }
}

void ProgramReader::readGroups(const Field &list,
                               Collective &collective) const {
  std::set<int64_t> seen;
  auto most = static_cast<int64_t>(communicators.size()) - 1;
  for (int64_t number : list.integers(0, most)) {
    const Group &group = communicators[number];
    for (int64_t rank : group) {
      std::string message = "communicator " + std::to_string(number) +
                            ": rank " + std::to_string(rank);
      if (!std::ranges::binary_search(collective.participants, rank))
        list.fail(message + " is no participant");
      if (!seen.insert(rank).second)
        list.fail(message + " is in another communicator, too");
    }
    collective.groups.insert(group);
  }
}

Collective ProgramReader::readCollective(const Field &field) const {
  Collective collective;
  collective.kind = field.at("kind").text();
  static const std::set<std::string> kinds = {
      "all_reduce",  "all_gather",     "reduce_scatter",
      "all_to_all",  "broadcast",      "send_recv",
      "local_slice", "host_to_device", "device_to_host"};
  if (!kinds.count(collective.kind))
    field.at("kind").fail("unknown kind '" + collective.kind + "'");

  Field participants = field.at("participants");
  collective.participants =
      participants.integers(0, static_cast<int64_t>(program.ranks.size()) - 1);
  for (size_t i = 1; i < collective.participants.size(); ++i)
    if (collective.participants[i - 1] >= collective.participants[i])
      participants.fail("must be ascending");
  if (auto list = field.find("communicators"))
    readGroups(*list, collective);
  if (collective.isLocal() && !collective.groups.empty())
    field.at("communicators")
        .fail(collective.isLocalSlice()
                  ? "ranks exchange nothing in a local slice"
                  : "ranks exchange nothing in a copy");

  Field parts = field.at("parts");
  if (parts.size() == 0)
    parts.fail("must have one or more tensors");
  if (parts.size() > 1 && collective.isAllReduce())
    parts.fail("an all-reduce has one");
  if (parts.size() > 1 && collective.isHostCopy())
    parts.fail("a copy between host and device has one");
  collective.parts.clear();
  for (size_t i = 0; i < parts.size(); ++i)
    collective.parts.push_back(readPart(parts[i], collective));
  return collective;
}

void ProgramReader::readChannels() {
  Field list = root.at("channels");
  for (const auto &[key, field] : readTable("channels", &Needed::channels)) {
    auto number = parseDecimal(key);
    if (!number)
      list.fail("'" + key + "' is not the number of a channel");
    if (needed)
      program.unreadChannelEnd =
          std::max(program.unreadChannelEnd, *number + 1);
    if (!isNeeded(&Needed::channels, *number))
      continue;
    Channel channel{field, *number, {}, {}, {}};
    if (auto origin = field.find("origin"))
      channel.origin = readOrigin(*origin, program);
    if (auto other = field.find("same_as"))
      channel.described = other->integer();
    else
      channel.collective = readCollective(field);
    if (!channels.emplace(*number, std::move(channel)).second)
      field.fail("an earlier file has channel " + key + " too");
  }
  for (const auto &[number, channel] : channels) {
    auto it = channels.find(channel.described);
    if (it == channels.end() || it->second.described != it->first ||
        (channel.described == number && channel.field.find("same_as")))
      channel.field.at("same_as").fail(
          "channel " + std::to_string(channel.described) + " is not described");
  }
  if (needed)
    return;
  Groups unused(communicators.begin(), communicators.end());
  for (const auto &[number, channel] : channels)
    for (const Group &group : channel.collective.groups)
      unused.erase(group);
  if (!unused.empty()) {
    auto it = std::ranges::find(communicators, *unused.begin());
    root.at("communicators")[it - communicators.begin()].fail(
        "no channel uses it");
  }
}

/// Whether [start, start + size) is inside `shape`; all have the same rank.
static bool inside(const Shape &start, const Shape &size, const Shape &shape) {
  for (size_t i = 0; i < shape.size(); ++i)
    if (start[i] > shape[i] || size[i] > shape[i] - start[i])
      return false;
  return true;
}

/// Adds extents of one side that are not given, from the buffers.
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

/// Returns the fault of a receiver's cell, or an empty string.
static std::string faultOf(const Cell &cell, int64_t rank, const Shape &dst,
                           const std::map<int64_t, Shape> &srcShapes) {
  std::string dimensions = "has " + std::to_string(cell.size.size()) +
                           " dimensions, the buffer of rank ";
  if (cell.size.size() != dst.size())
    return dimensions + std::to_string(rank) + " is " + toString(dst) +
           " (a view needs dst_shapes)";
  if (!inside(cell.dstStart, cell.size, dst))
    return "dst reaches out of the buffer " + toString(dst);
  for (const Cell::Contribution &from : cell.from) {
    auto src = srcShapes.find(from.peer);
    std::string peer = std::to_string(from.peer);
    if (src == srcShapes.end())
      return "rank " + peer + " has no src buffer";
    if (cell.size.size() != src->second.size())
      return dimensions + peer + " is " + toString(src->second) +
             " (a view needs src_shapes)";
    if (!inside(from.start, cell.size, src->second))
      return "reaches out of the buffer " + toString(src->second) +
             " of rank " + peer;
  }
  return "";
}

static bool meet(const Cell &a, const Cell &b) {
  for (size_t i = 0; i < a.size.size(); ++i)
    if (std::max(a.dstStart[i], b.dstStart[i]) >=
        std::min(a.dstStart[i] + a.size[i], b.dstStart[i] + b.size[i]))
      return false;
  return true;
}

/// Whether two cells overlap in the destination. All have the same number of
/// dimensions.
static bool anyMeet(const std::vector<Cell> &cells) {
  if (cells.empty() || cells[0].size.empty())
    return false;
  // Sorted along the dimension with the most distinct starts, a cell can
  // overlap only few neighbours.
  size_t dim = 0, most = 0;
  for (size_t i = 0; i < cells[0].size.size(); ++i) {
    std::vector<int64_t> starts;
    for (const Cell &cell : cells)
      starts.push_back(cell.dstStart[i]);
    std::sort(starts.begin(), starts.end());
    size_t count = std::unique(starts.begin(), starts.end()) - starts.begin();
    if (count > most) {
      most = count;
      dim = i;
    }
  }
  std::vector<const Cell *> sorted;
  for (const Cell &cell : cells)
    sorted.push_back(&cell);
  std::sort(sorted.begin(), sorted.end(), [&](const Cell *a, const Cell *b) {
    return a->dstStart[dim] < b->dstStart[dim];
  });
  for (size_t i = 0; i < sorted.size(); ++i) {
    int64_t end = sorted[i]->dstStart[dim] + sorted[i]->size[dim];
    for (size_t j = i + 1; j < sorted.size() && sorted[j]->dstStart[dim] < end;
         ++j)
      if (meet(*sorted[i], *sorted[j]))
        return true;
  }
  return false;
}

/// `field` are the cells.
static void checkCells(const Field &field, const Collective &collective,
                       const ChannelPart &part) {
  PeerCheck peers(collective);
  // Checked lists: several ranks may have the same list and extents.
  std::set<std::pair<const std::vector<Cell> *, Shape>> checked;
  for (const auto &[rank, cells] : part.cells) {
    Field given = field.at(std::to_string(rank));
    auto dstShape = part.dstShapes.find(rank);
    if (dstShape == part.dstShapes.end()) {
      if (cells->empty())
        continue;
      given.fail("rank " + std::to_string(rank) + " has no dst buffer");
    }
    if (auto stranger = peers.findStranger(rank, *cells))
      given.fail("rank " + std::to_string(*stranger) +
                 " is in no communicator of the channel with rank " +
                 std::to_string(rank));
    if (!checked.emplace(cells.get(), dstShape->second).second)
      continue;
    for (size_t i = 0; i < cells->size(); ++i)
      if (std::string fault =
              faultOf((*cells)[i], rank, dstShape->second, part.srcShapes);
          !fault.empty()) {
        if (given.json().is_array())
          given[i].fail(fault);
        given.fail("cell " + std::to_string(i) + ": " + fault);
      }
    if (anyMeet(*cells))
      given.fail("cells overlap");
    int64_t filled = 0;
    for (const Cell &cell : *cells)
      filled += elementCount(cell.size);
    if (int64_t all = elementCount(dstShape->second); filled != all)
      given.fail("cells fill " + std::to_string(filled) + " of the " +
                 std::to_string(all) + " elements of dst");
  }
  for (const auto &[rank, shape] : part.dstShapes)
    if (!part.cells.contains(rank) && elementCount(shape) > 0)
      field.fail("rank " + std::to_string(rank) +
                 " has a dst buffer and no cells that fill it");
}

/// Checks that the buffers of each group of an all-reduce have equal sizes.
void ProgramReader::checkReduced(const Channel &described, const Uses &uses,
                                 const Collective &collective) const {
  std::map<int64_t, int64_t> firsts;
  for (const Group &group : collective.groups)
    for (int64_t rank : group)
      firsts[rank] = group.front();
  for (int64_t rank : collective.participants) {
    auto first = firsts.try_emplace(rank, rank).first->second;
    const Use &use = uses.at(program.ranks[rank].rankClass).front();
    const Use &other = uses.at(program.ranks[first].rankClass).front();
    if (!use.src || !use.dst || !other.src ||
        elementCount(*use.src) != elementCount(*other.src) ||
        elementCount(*use.dst) != elementCount(*use.src))
      described.field.fail("the buffers of rank " + std::to_string(rank) +
                           " differ in size from those of its group");
  }
}

/// Checks that what each rank copies is as large as where it copies it.
void ProgramReader::checkCopied(const Channel &described, const Uses &uses,
                                const Collective &collective) const {
  for (int64_t rank : collective.participants) {
    const Use &use = uses.at(program.ranks[rank].rankClass).front();
    if (!use.src || !use.dst ||
        elementCount(*use.src) != elementCount(*use.dst))
      described.field.fail("rank " + std::to_string(rank) +
                           " must have a src and a dst of one size");
  }
}

/// Adds the extents of the buffers to the given ones, and checks that all cells
/// are inside.
void ProgramReader::complete(const Channel &described, const Uses &uses,
                             Collective &collective) {
  const Field &field = described.field;
  for (int64_t rank : collective.participants) {
    auto use = uses.find(program.ranks[rank].rankClass);
    // A channel may be there for what it says of another one.
    if (use == uses.end() && needed)
      continue;
    if (use == uses.end())
      field.fail("rank " + std::to_string(rank) +
                 " is a participant, but its class does not use it");
    for (size_t i = 0; i < collective.parts.size(); ++i) {
      ChannelPart &part = collective.parts[i];
      const Use &buffers = use->second[i];
      Field given = field.at("parts")[i];
      completeShapes(given, "src_shapes", part.srcShapes, rank, buffers.src);
      completeShapes(given, "dst_shapes", part.dstShapes, rank, buffers.dst);
    }
  }
  // How the parts of several ranks fit is seen by who reads all.
  if (needed)
    return;
  if (collective.isHostCopy())
    return checkCopied(described, uses, collective);
  if (collective.isAllReduce())
    return checkReduced(described, uses, collective);
  for (size_t i = 0; i < collective.parts.size(); ++i)
    checkCells(field.at("parts")[i].at("cells"), collective,
               collective.parts[i]);
}

void ProgramReader::finishChannels() {
  auto finish = [&](const Channel &described, const Uses &uses) {
    Collective collective = described.collective;
    complete(described, uses, collective);
    return std::make_shared<Collective>(std::move(collective));
  };
  for (const auto &[number, channel] : channels)
    if (channel.described == number)
      program.channels[number] = finish(channel, channel.uses);
  for (const auto &[number, channel] : channels) {
    if (channel.described == number)
      continue;
    const Channel &described = channels.at(channel.described);
    // If extents are not given, each channel takes those of its own buffers.
    program.channels[number] = channel.uses == described.uses
                                   ? program.channels.at(channel.described)
                                   : finish(described, channel.uses);
  }
}

} // namespace whale::format
