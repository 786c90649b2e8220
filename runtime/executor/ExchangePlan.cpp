//===- ExchangePlan.cpp - What goes between processes ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A piece goes in the first round in which both its processes have room for it,
// so that all of them are at work in each round. Of two processes, the small
// pieces of a round are one message, which is packed at both ends. A large one
// is a message of its own: packed where it is strided, else sent from its
// shard, or received there.
//
// Processes that read each other's memory copy what is packed for them from
// there. It lies in the memory's first half in one round, and in the second one
// in the next: in each, those that have copied what was packed in the round
// before say so, so that its half may be packed again after it.
//
//===----------------------------------------------------------------------===//

#include "executor/ExchangePlan.h"

#include "whale/ProgramFormat/Pieces.h"
#include "whale/Runtime/Job.h"

#include <algorithm>
#include <map>
#include <string>

namespace whale::runtime {

/// From here on a message costs less than two copies.
static constexpr int64_t largeBytes = 128 << 10;

namespace {
class Rounds {
public:
  Rounds(int64_t processes, int64_t roundBytes)
      : given(processes, Load(roundBytes)), taken(processes, Load(roundBytes)) {
  }

  /// The round of a piece, by the bytes of all pieces before.
  size_t place(const MovedPiece &piece, int64_t bytes);

private:
  /// What a process gives, or takes, by round; and how many rounds, from the
  /// first one, have hardly room any more.
  struct Load {
    explicit Load(int64_t most) : most(most) {}
    bool hasRoom(size_t round, int64_t bytes) const;
    void add(size_t round, int64_t bytes);

    int64_t most;
    std::vector<int64_t> bytes;
    size_t full = 0;
  };
  std::vector<Load> given, taken;
};
} // namespace

bool Rounds::Load::hasRoom(size_t round, int64_t more) const {
  return round >= bytes.size() || bytes[round] == 0 ||
         bytes[round] + more <= most;
}

void Rounds::Load::add(size_t round, int64_t more) {
  if (round >= bytes.size())
    bytes.resize(round + 1);
  bytes[round] += more;
  while (full < bytes.size() && bytes[full] > most / 16 * 15)
    ++full;
}

size_t Rounds::place(const MovedPiece &piece, int64_t bytes) {
  Load &giver = given[piece.sender], &taker = taken[piece.taker];
  size_t round = std::max(giver.full, taker.full);
  while (!giver.hasRoom(round, bytes) || !taker.hasRoom(round, bytes))
    ++round;
  giver.add(round, bytes);
  taker.add(round, bytes);
  return round;
}

static bool isDense(const Shape &size, const Shape &strides) {
  int64_t expected = 1;
  for (size_t d = size.size(); d-- > 0;) {
    if (size[d] != 1 && strides[d] != expected)
      return false;
    expected *= size[d];
  }
  return true;
}

/// How much of a round a piece fills. Where processes read what is packed, it
/// should come from a cache: half as much goes in a round. A quarter would cost
/// more than it saves, in rounds. All processes find the same.
static int64_t weightOf(const MovedPiece &piece,
                        std::span<const ArrayMove> moves,
                        const ExchangePlaces &places) {
  constexpr int64_t roundsOfPacked = 2;
  int64_t bytes = piece.elements() * moves[piece.move].elementBytes;
  bool isPacked = !places.areRead.empty() && bytes >= largeBytes &&
                  !isDense(piece.size, piece.fromStrides) &&
                  places.hostOf[piece.sender] == places.hostOf[piece.taker];
  return isPacked ? roundsOfPacked * bytes : bytes;
}

/// Cuts pieces that are larger than a round.
static std::vector<MovedPiece> cutLarge(std::vector<MovedPiece> pieces,
                                        std::span<const ArrayMove> moves,
                                        const ExchangePlaces &places) {
  std::vector<MovedPiece> result;
  std::ranges::reverse(pieces);
  while (!pieces.empty()) {
    MovedPiece piece = std::move(pieces.back());
    pieces.pop_back();
    auto d = std::ranges::find_if(piece.size, [](int64_t n) { return n > 1; }) -
             piece.size.begin();
    if (piece.isLocal() || d == std::ssize(piece.size) ||
        weightOf(piece, moves, places) <= places.roundBytes) {
      result.push_back(std::move(piece));
      continue;
    }
    MovedPiece second = piece;
    int64_t half = piece.size[d] / 2;
    piece.size[d] = half;
    second.size[d] -= half;
    second.fromOffset += half * piece.fromStrides[d];
    second.toOffset += half * piece.toStrides[d];
    pieces.push_back(std::move(second));
    pieces.push_back(std::move(piece));
  }
  return result;
}

/// A piece where it lies in a block, from `offset` on, with the loops that copy
/// it from the strides `from` to the strides `to`.
static PlacedPiece place(ExchangePlan &plan, size_t number, size_t block,
                         int64_t offset, const Shape &to, const Shape &from) {
  const MovedPiece &piece = plan.pieces[number];
  int64_t width = plan.moves[piece.move].elementBytes;
  size_t first = plan.loops.size();
  int64_t run = addCopyLoops(to, from, piece.size, width, plan.loops);
  return {number, block, offset * width,           width,
          run,    first, plan.loops.size() - first};
}

/// A piece of a source that is copied to something with the strides `to`, or
/// the other way round.
static PlacedPiece placeSource(ExchangePlan &plan, size_t number,
                               const Shape &to) {
  const MovedPiece &piece = plan.pieces[number];
  return place(plan, number, plan.sources.of(piece.move, piece.owner),
               piece.fromOffset, to, piece.fromStrides);
}

/// A piece that is copied to a result from what is packed.
static PlacedPiece placeResult(ExchangePlan &plan, size_t number) {
  const MovedPiece &piece = plan.pieces[number];
  return place(plan, number, plan.results.of(piece.move, piece.receiver),
               piece.toOffset, piece.toStrides,
               format::denseStrides(piece.size));
}

static int64_t bytesOf(const ExchangePlan &plan, size_t number) {
  const MovedPiece &piece = plan.pieces[number];
  return piece.elements() * plan.moves[piece.move].elementBytes;
}

/// Whether the taker of a piece reads it in the memory of its sender, if they
/// do so: where it is packed. To copy it there only for this costs more than to
/// send it.
static bool isReadable(const ExchangePlan &plan, size_t number) {
  const MovedPiece &piece = plan.pieces[number];
  return bytesOf(plan, number) < largeBytes ||
         !isDense(piece.size, piece.fromStrides);
}

namespace {
using Content = RoundSide::Message::Content;

/// One process's end of the messages of a round: what it gives, or what it
/// takes.
class SideBuilder {
public:
  /// What is given is packed from `begin` on.
  SideBuilder(ExchangePlan &plan, const ExchangePlaces &places, RoundSide &side,
              bool isGiven, int64_t begin)
      : plan(plan), places(places), side(side), isGiven(isGiven) {
    side.packedBytes = begin;
  }

  /// `numbers`: the pieces of the round, in their order.
  void build(std::span<const size_t> numbers);
  /// Those that have been told something by the other end in the round before
  /// have copied it.
  void addCopied(const RoundSide &before);

private:
  int64_t peerOf(size_t number) const {
    const MovedPiece &piece = plan.pieces[number];
    return isGiven ? piece.taker : piece.sender;
  }
  /// What is packed of a piece that is given.
  std::vector<int64_t> contentOf(size_t number) const;
  /// Where the pieces are, one after the other, in the memory for packed ones.
  int64_t pack(std::span<const size_t> numbers);
  /// The pieces are in the memory of the sender.
  void read(int64_t process, std::span<const size_t> numbers);

  ExchangePlan &plan;
  const ExchangePlaces &places;
  RoundSide &side;
  const bool isGiven;
  /// Where what is given lies, by what it is.
  std::map<std::vector<int64_t>, int64_t> packed;
};
} // namespace

std::vector<int64_t> SideBuilder::contentOf(size_t number) const {
  const MovedPiece &piece = plan.pieces[number];
  size_t source = plan.sources.of(piece.move, piece.owner);
  std::vector<int64_t> content = {static_cast<int64_t>(source),
                                  piece.fromOffset, std::ssize(piece.size)};
  content.insert(content.end(), piece.size.begin(), piece.size.end());
  content.insert(content.end(), piece.fromStrides.begin(),
                 piece.fromStrides.end());
  return content;
}

int64_t SideBuilder::pack(std::span<const size_t> numbers) {
  int64_t begin = side.packedBytes;
  if (isGiven) {
    std::vector<int64_t> content;
    for (size_t number : numbers) {
      std::vector<int64_t> more = contentOf(number);
      content.insert(content.end(), more.begin(), more.end());
    }
    auto [known, isNew] = packed.try_emplace(std::move(content), begin);
    if (!isNew)
      return known->second;
  }
  for (size_t number : numbers) {
    PlacedPiece placed =
        isGiven ? placeSource(plan, number,
                              format::denseStrides(plan.pieces[number].size))
                : placeResult(plan, number);
    side.packed.push_back({placed, side.packedBytes, std::nullopt});
    side.packedBytes += bytesOf(plan, number);
  }
  return begin;
}

void SideBuilder::read(int64_t process, std::span<const size_t> numbers) {
  RoundSide::Message message{process, sizeof(int64_t), Content::Place, 0, 0};
  if (isGiven)
    message.offset = pack(numbers);
  int64_t offset = 0;
  for (size_t number : isGiven ? std::span<const size_t>() : numbers) {
    side.packed.push_back(
        {placeResult(plan, number), offset, side.messages.size()});
    offset += bytesOf(plan, number);
  }
  side.messages.push_back(message);
}

void SideBuilder::build(std::span<const size_t> numbers) {
  std::map<int64_t, std::vector<size_t>> readable, small, large;
  for (size_t number : numbers) {
    int64_t peer = peerOf(number);
    auto &lists = places.isRead(peer) && isReadable(plan, number) ? readable
                  : bytesOf(plan, number) < largeBytes            ? small
                                                                  : large;
    lists[peer].push_back(number);
  }
  for (const auto &[process, list] : readable)
    read(process, list);
  for (const auto &[process, list] : small) {
    int64_t bytes = 0;
    for (size_t number : list)
      bytes += bytesOf(plan, number);
    side.messages.push_back({process, bytes, Content::Packed, 0, pack(list)});
  }
  for (const auto &[process, list] : large)
    for (size_t number : list) {
      const MovedPiece &piece = plan.pieces[number];
      RoundSide::Message message{process, bytesOf(plan, number), Content::Piece,
                                 number, 0};
      if (!isDense(piece.size, isGiven ? piece.fromStrides : piece.toStrides)) {
        message.content = Content::Packed;
        message.offset = pack({&number, 1});
      }
      side.messages.push_back(message);
    }
}

void SideBuilder::addCopied(const RoundSide &before) {
  for (const RoundSide::Message &message : before.messages)
    if (message.content == Content::Place)
      side.messages.push_back(
          {message.process, sizeof(int64_t), Content::Copied, 0, 0});
}

/// Adds a piece that stays in the process.
static void addLocal(ExchangePlan &plan, size_t number) {
  const MovedPiece &piece = plan.pieces[number];
  if (plan.local.size() <= piece.receiver)
    plan.local.resize(piece.receiver + 1);
  plan.local[piece.receiver].push_back(
      {placeSource(plan, number, piece.toStrides),
       plan.results.of(piece.move, piece.receiver),
       piece.toOffset * plan.moves[piece.move].elementBytes});
}

/// How many pieces of a round are of which source.
static std::vector<std::pair<size_t, int64_t>>
countUses(const ExchangePlan &plan, std::span<const size_t> numbers) {
  std::map<size_t, int64_t> counts;
  for (size_t number : numbers)
    ++counts[plan.sources.of(plan.pieces[number].move,
                             plan.pieces[number].owner)];
  return {counts.begin(), counts.end()};
}

namespace {
/// By number, those of this process: the pieces that it gives, and those that
/// it takes.
struct OwnRound {
  std::vector<size_t> given, taken;
};
using OwnRounds = std::map<size_t, OwnRound>;
} // namespace

static void addRounds(ExchangePlan &plan, const ExchangePlaces &places,
                      const OwnRounds &own) {
  bool isAnyRead =
      std::ranges::find(places.areRead, true) != places.areRead.end();
  plan.rounds.resize(own.size());
  ExchangeRound none, *before = &none, *round = plan.rounds.data();
  for (const auto &[number, pieces] : own) {
    int64_t begin = isAnyRead && number % 2 ? places.roundBytes : 0;
    SideBuilder given(plan, places, round->given, /*isGiven=*/true, begin),
        taken(plan, places, round->taken, /*isGiven=*/false, /*begin=*/0);
    given.build(pieces.given);
    taken.build(pieces.taken);
    given.addCopied(before->taken);
    taken.addCopied(before->given);
    round->uses = countUses(plan, pieces.given);
    before = round++;
  }
}

ExchangePlan planExchange(std::span<const ArrayMove> moves,
                          const ExchangePlaces &places) {
  ExchangePlan plan;
  plan.moves.assign(moves.begin(), moves.end());
  std::vector<format::Move> all;
  for (const ArrayMove &move : moves) {
    plan.sources.add(move.from->boxes.size());
    plan.results.add(move.to->boxes.size());
    all.push_back({move.elementBytes, *move.from, *move.to,
                   move.fromRanks->processOf, places.processOf});
  }
  plan.uses.resize(plan.sources.count());
  std::vector<bool> hasRank(places.processes);
  for (int64_t process : places.processOf)
    hasRank[process] = true;
  Rounds rounds(places.processes, places.roundBytes);
  OwnRounds own;
  for (MovedPiece &piece :
       cutLarge(format::exchangeOf(all, places.hostOf), moves, places)) {
    bool isGiven = piece.sender == places.process,
         isTaken = piece.taker == places.process;
    size_t number = plan.pieces.size(), round = 0;
    if (!piece.isLocal()) {
      if (!hasRank[piece.sender])
        throw Error("process " + std::to_string(piece.sender) +
                    " has a part of an array and no rank of the program: "
                    "gather it first");
      round = rounds.place(piece, weightOf(piece, moves, places));
      if (isGiven)
        own[round].given.push_back(number);
      if (isTaken)
        own[round].taken.push_back(number);
    }
    if (!isGiven && !isTaken)
      continue;
    if (isGiven)
      ++plan.uses[plan.sources.of(piece.move, piece.owner)];
    int64_t peer = isGiven ? piece.taker : piece.sender;
    bool isLocal = piece.isLocal();
    plan.pieces.push_back(std::move(piece));
    if (isLocal)
      addLocal(plan, number);
    else if (places.isRead(peer) && isReadable(plan, number))
      // In which it is said to be copied.
      own.try_emplace(round + 1);
  }
  addRounds(plan, places, own);
  return plan;
}

} // namespace whale::runtime
