//===- Mutation.cpp - Programs with a wrong order -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a program, a kind of change and a random generator. Out: the program with
// one change to its transfers or buffers, or nothing where the kind finds
// nothing to change. Also why a program is refused.
//
// A change keeps what each instruction computes of its buffers, so that a
// mutant differs from its original at most by what is in a buffer when it is
// read. Two instructions therefore change places only if one of them is a start
// or a wait, and starts of one channel keep their order. Cost: a copy of the
// program and a few walks over a class; a refusal writes and reads the whole
// manifest.
//
//===----------------------------------------------------------------------===//

#include "Mutation.h"

#include "whale/ProgramFormat/CheckValues.h"
#include "whale/ProgramFormat/ReadProgram.h"
#include "whale/ProgramFormat/WriteProgram.h"
#include "whale/System/Error.h"

#include <algorithm>
#include <limits>

namespace whale::transfers {

using namespace format;

std::string_view name(Kind kind) {
  static constexpr std::string_view names[kindCount] = {
      "wait dropped",
      "buffer shifted",
      "starts swapped",
      "send exchanged with receive",
      "instruction moved",
      "copy made a transfer",
      "transfer made synchronous"};
  return names[static_cast<size_t>(kind)];
}

namespace {

using List = std::vector<Instruction>;

const Start *startOf(const Instruction &instruction) {
  return std::get_if<Start>(&instruction.operation);
}
bool hasSide(const Start &start,
             std::optional<BufferIndex> Start::Ends::*side) {
  return std::ranges::any_of(start.parts, [&](const Start::Ends &part) {
    return (part.*side).has_value();
  });
}
bool isWait(const Instruction &instruction) {
  return std::holds_alternative<Wait>(instruction.operation);
}

/// All lists of a class, those of loops and cases too.
void collect(List &list, std::vector<List *> &lists) {
  lists.push_back(&list);
  for (Instruction &instruction : list) {
    if (auto *loop = std::get_if<While>(&instruction.operation)) {
      collect(loop->cond, lists);
      collect(loop->body, lists);
    } else if (auto *choice = std::get_if<Case>(&instruction.operation)) {
      for (List &branch : choice->branches)
        collect(branch, lists);
    }
  }
}

/// Starts in the order of the file.
void findStarts(const List &list, std::vector<int64_t> &numbers) {
  for (const Instruction &instruction : list) {
    if (const Start *start = startOf(instruction))
      numbers.push_back(start->transfer);
    else if (auto *loop = std::get_if<While>(&instruction.operation))
      findStarts(loop->cond, numbers), findStarts(loop->body, numbers);
    else if (auto *choice = std::get_if<Case>(&instruction.operation))
      for (const List &branch : choice->branches)
        findStarts(branch, numbers);
  }
}

/// A class counts its starts.
void renumber(RankClass &rankClass) {
  std::vector<int64_t> before;
  findStarts(rankClass.instructions, before);
  auto numberOf = [&](int64_t transfer) {
    return std::find(before.begin(), before.end(), transfer) - before.begin();
  };
  std::vector<List *> lists;
  collect(rankClass.instructions, lists);
  for (List *list : lists)
    for (Instruction &instruction : *list) {
      if (auto *start = std::get_if<Start>(&instruction.operation))
        start->transfer = numberOf(start->transfer);
      else if (auto *wait = std::get_if<Wait>(&instruction.operation))
        wait->transfer = numberOf(wait->transfer);
    }
}

class Mutator {
public:
  Mutator(const format::Program &given, std::mt19937 &random)
      : program(given), random(random) {}

  bool apply(Kind kind);

  format::Program program;
  std::string what;

private:
  size_t pick(size_t count) { return random() % count; }
  /// The places in a list of what a predicate is true of.
  template <typename Predicate>
  std::vector<size_t> find(const List &list, Predicate predicate) {
    std::vector<size_t> places;
    for (size_t i = 0; i < list.size(); ++i)
      if (predicate(list[i]))
        places.push_back(i);
    return places;
  }
  bool dropWait(List &list);
  bool shift(RankClass &rankClass);
  bool swap(List &list, bool isExchange);
  bool move(List &list);
  bool putOff(RankClass &rankClass, List &list);
  bool synchronize(List &list);
  void exchangeWaits(List &list, int64_t a, int64_t b);
  void shiftTo(List &list, size_t from, size_t to);
  bool crosses(const Instruction &a, const Instruction &b) const;

  std::mt19937 &random;
};

} // namespace

bool Mutator::apply(Kind kind) {
  size_t number = pick(program.classes.size());
  RankClass &rankClass = program.classes[number];
  what = "class " + std::to_string(number) + ": ";
  if (kind == Kind::ShiftBuffer)
    return shift(rankClass);
  std::vector<List *> lists;
  collect(rankClass.instructions, lists);
  std::erase_if(lists, [](const List *list) { return list->size() < 2; });
  if (lists.empty())
    return false;
  List &list = *lists[pick(lists.size())];
  bool isChanged = false;
  switch (kind) {
  case Kind::ShiftBuffer:
    break;
  case Kind::DropWait:
    isChanged = dropWait(list);
    break;
  case Kind::SwapStarts:
  case Kind::ExchangeSend:
    isChanged = swap(list, kind == Kind::ExchangeSend);
    break;
  case Kind::Move:
    isChanged = move(list);
    break;
  case Kind::PutOff:
    isChanged = putOff(rankClass, list);
    break;
  case Kind::Synchronize:
    isChanged = synchronize(list);
    break;
  }
  if (isChanged)
    renumber(rankClass);
  return isChanged;
}

bool Mutator::dropWait(List &list) {
  std::vector<size_t> waits = find(list, isWait);
  if (waits.empty())
    return false;
  size_t place = waits[pick(waits.size())];
  what += "wait " + std::to_string(place) + " dropped";
  list.erase(list.begin() + static_cast<ptrdiff_t>(place));
  return true;
}

bool Mutator::shift(RankClass &rankClass) {
  constexpr int64_t grain = 64;
  // Offsets in the arena, and the bytes from there on.
  std::vector<std::pair<int64_t *, int64_t>> places;
  for (BufferInfo &buffer : rankClass.buffers)
    if (buffer.space == Space::Arena)
      places.emplace_back(&buffer.offset, buffer.bytes);
  for (auto &[function, layouts] : rankClass.locals) {
    std::vector<Extent> extents =
        extentsOf(program.functions[function], Space::Local);
    for (std::vector<int64_t> &offsets : layouts)
      for (size_t i = 0; i < offsets.size(); ++i)
        places.emplace_back(&offsets[i], extents[i].bytes);
  }
  if (places.empty())
    return false;
  size_t place = pick(places.size());
  auto [offset, bytes] = places[place];
  int64_t shifted = *offset + (pick(2) ? grain : -grain);
  if (shifted < 0 || shifted + bytes > rankClass.arenaBytes)
    return false;
  what += "offset " + std::to_string(place) + " from " +
          std::to_string(*offset) + " to " + std::to_string(shifted);
  *offset = shifted;
  return true;
}

bool Mutator::swap(List &list, bool isExchange) {
  auto sends = [](const Instruction &instruction) {
    const Start *start = startOf(instruction);
    return start && hasSide(*start, &Start::Ends::src) &&
           !hasSide(*start, &Start::Ends::dst);
  };
  auto receives = [](const Instruction &instruction) {
    const Start *start = startOf(instruction);
    return start && !hasSide(*start, &Start::Ends::src) &&
           hasSide(*start, &Start::Ends::dst);
  };
  std::vector<size_t> first =
      isExchange ? find(list, sends) : find(list, startOf);
  std::vector<size_t> second = isExchange ? find(list, receives) : first;
  if (first.empty() || second.empty())
    return false;
  // Neighbours as often as others.
  size_t a = pick(first.size()), b = pick(second.size());
  if (!isExchange && pick(2))
    b = (a + 1) % second.size();
  auto [low, high] = std::minmax(first[a], second[b]);
  // What is between them is crossed, too.
  for (size_t i = low; i <= high; ++i)
    for (size_t end : {low, high})
      if (i != end && !crosses(list[i], list[end]))
        return false;
  if (low == high)
    return false;
  std::swap(list[low], list[high]);
  what += "instructions " + std::to_string(low) + " and " +
          std::to_string(high) + " swapped";
  if (pick(2)) {
    exchangeWaits(list, startOf(list[low])->transfer,
                  startOf(list[high])->transfer);
    what += ", and their waits";
  }
  return true;
}

void Mutator::exchangeWaits(List &list, int64_t a, int64_t b) {
  for (Instruction &instruction : list)
    if (auto *wait = std::get_if<Wait>(&instruction.operation)) {
      if (wait->transfer == a)
        wait->transfer = b;
      else if (wait->transfer == b)
        wait->transfer = a;
    }
}

/// Whether two instructions may change places without another meaning: starts
/// of one channel meet those of other ranks in their order.
bool Mutator::crosses(const Instruction &a, const Instruction &b) const {
  const Start *first = startOf(a), *second = startOf(b);
  if (first && second)
    return first->channel != second->channel;
  return first || second || isWait(a) || isWait(b);
}

/// What computes goes one step: from before a start to behind its wait, it
/// would make another program.
bool Mutator::move(List &list) {
  size_t from = pick(list.size());
  size_t most = 1;
  if (startOf(list[from]) || isWait(list[from]))
    most += pick(pick(2) ? 2 : list.size());
  bool isUp = pick(2);
  size_t to = from;
  auto next = [&] { return isUp ? to - 1 : to + 1; };
  while (next() < list.size() && most-- > 0 &&
         crosses(list[from], list[next()]))
    to = next();
  if (to == from)
    return false;
  what +=
      "instruction " + std::to_string(from) + " moved to " + std::to_string(to);
  shiftTo(list, from, to);
  return true;
}

void Mutator::shiftTo(List &list, size_t from, size_t to) {
  auto at = [&](size_t i) { return list.begin() + static_cast<ptrdiff_t>(i); };
  if (to < from)
    std::rotate(at(to), at(from), at(from + 1));
  else
    std::rotate(at(from), at(from + 1), at(to + 1));
}

/// A channel in which each rank takes a whole buffer from itself, at once or in
/// its turn.
static Collective makeLocalCopy(const std::vector<int64_t> &ranks,
                                const BufferInfo &buffer, bool isAtOnce) {
  Collective channel;
  channel.kind = isAtOnce ? "local_slice" : "send_recv";
  ChannelPart &part = channel.parts.front();
  part.dtype = buffer.dtype;
  channel.participants = ranks;
  Shape zeros(buffer.shape.size(), 0);
  for (int64_t rank : ranks) {
    Cell cell{zeros, buffer.shape, {{rank, zeros}}};
    part.cells[rank] = std::make_shared<std::vector<Cell>>(1, std::move(cell));
    part.srcShapes[rank] = part.dstShapes[rank] = buffer.shape;
  }
  return channel;
}

/// The wait for it stands right behind, or somewhere later: tokens tie it to
/// the compute queue no more.
bool Mutator::putOff(RankClass &rankClass, List &list) {
  auto typeOf = [&](BufferIndex index) {
    return rankClass.buffers[index].dtype;
  };
  std::vector<size_t> copies = find(list, [&](const Instruction &instruction) {
    const auto *copy = std::get_if<Copy>(&instruction.operation);
    return copy && typeOf(copy->src) == typeOf(copy->dst);
  });
  if (copies.empty())
    return false;
  size_t place = copies[pick(copies.size())];
  auto copy = std::get<Copy>(list[place].operation);
  int64_t channel =
      program.channels.empty() ? 0 : program.channels.rbegin()->first + 1;
  program.channels[channel] = std::make_shared<Collective>(
      makeLocalCopy(rankClass.ranks, rankClass.buffers[copy.dst], pick(2)));
  std::vector<int64_t> transfers;
  findStarts(rankClass.instructions, transfers);
  auto transfer = static_cast<int64_t>(transfers.size());
  list[place].operation = Start{channel, transfer, {{copy.src, copy.dst}}};
  size_t behind = place + 1 + pick(std::min<size_t>(list.size() - place, 4));
  list.insert(list.begin() + static_cast<ptrdiff_t>(behind),
              {.operation = Wait{transfer}});
  what += "copy " + std::to_string(place) + " made a transfer until " +
          std::to_string(behind);
  return true;
}

/// Its wait goes up to its start, or its start down to its wait.
bool Mutator::synchronize(List &list) {
  std::vector<size_t> waits = find(list, isWait);
  if (waits.empty())
    return false;
  size_t wait = waits[pick(waits.size())], start = 0;
  int64_t transfer = std::get<Wait>(list[wait].operation).transfer;
  auto starts = [&](const Instruction &instruction) {
    const Start *some = startOf(instruction);
    return some && some->transfer == transfer;
  };
  while (start < wait && !starts(list[start]))
    ++start;
  bool isUp = pick(2);
  for (size_t i = start + 1; i < wait; ++i)
    if (!crosses(list[i], list[isUp ? wait : start]))
      return false;
  if (start + 1 >= wait)
    return false;
  what += "transfer " + std::to_string(transfer) + " made synchronous at " +
          std::to_string(isUp ? start : wait);
  if (isUp)
    shiftTo(list, wait, start + 1);
  else
    shiftTo(list, start, wait - 1);
  return true;
}

std::optional<Mutant> mutate(const format::Program &program, Kind kind,
                             std::mt19937 &random) {
  Mutator mutator(program, random);
  if (!mutator.apply(kind))
    return std::nullopt;
  return Mutant{kind, mutator.what, std::move(mutator.program)};
}

std::string refusal(const Program &program) {
  try {
    std::string text =
        writeProgram(program, {},
                     /*mostBytes=*/std::numeric_limits<size_t>::max())
            .manifest;
    auto read = readProgram(text, "mutant");
    if (auto fault = checkValues(read))
      return fault->path + ": " + fault->what;
  } catch (const system::Error &error) {
    return error.what();
  }
  return "";
}

} // namespace whale::transfers
