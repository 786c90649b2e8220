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

/// Cuts pieces that are larger than a round.
static std::vector<MovedPiece> cutLarge(std::vector<MovedPiece> pieces,
                                        std::span<const ArrayMove> moves,
                                        int64_t roundBytes) {
  std::vector<MovedPiece> result;
  std::ranges::reverse(pieces);
  while (!pieces.empty()) {
    MovedPiece piece = std::move(pieces.back());
    pieces.pop_back();
    auto d = std::ranges::find_if(piece.size, [](int64_t n) { return n > 1; }) -
             piece.size.begin();
    if (piece.isLocal() || d == std::ssize(piece.size) ||
        piece.elements() * moves[piece.move].elementBytes <= roundBytes) {
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

static bool isDense(const Shape &size, const Shape &strides) {
  int64_t expected = 1;
  for (size_t d = size.size(); d-- > 0;) {
    if (size[d] != 1 && strides[d] != expected)
      return false;
    expected *= size[d];
  }
  return true;
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

namespace {
/// One process's end of the messages of a round: what it gives, or what it
/// takes.
class SideBuilder {
public:
  SideBuilder(ExchangePlan &plan, RoundSide &side, bool isGiven)
      : plan(plan), side(side), isGiven(isGiven) {}

  /// `numbers`: the pieces of the round, in their order.
  void build(std::span<const size_t> numbers);

private:
  int64_t bytesOf(size_t number) const {
    const MovedPiece &piece = plan.pieces[number];
    return piece.elements() * plan.moves[piece.move].elementBytes;
  }
  /// What is packed of a piece that is given.
  std::vector<int64_t> contentOf(size_t number) const;
  /// Where the pieces are, one after the other, in the memory for packed ones.
  int64_t pack(std::span<const size_t> numbers);

  ExchangePlan &plan;
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
    side.packed.push_back({placed, side.packedBytes});
    side.packedBytes += bytesOf(number);
  }
  return begin;
}

void SideBuilder::build(std::span<const size_t> numbers) {
  std::map<int64_t, std::vector<size_t>> small, large;
  for (size_t number : numbers) {
    const MovedPiece &piece = plan.pieces[number];
    (bytesOf(number) < largeBytes ? small
                                  : large)[isGiven ? piece.taker : piece.sender]
        .push_back(number);
  }
  for (const auto &[process, list] : small) {
    int64_t bytes = 0;
    for (size_t number : list)
      bytes += bytesOf(number);
    side.messages.push_back({process, bytes, std::nullopt, pack(list)});
  }
  for (const auto &[process, list] : large)
    for (size_t number : list) {
      const MovedPiece &piece = plan.pieces[number];
      RoundSide::Message message{process, bytesOf(number), number, 0};
      if (!isDense(piece.size, isGiven ? piece.fromStrides : piece.toStrides)) {
        message.piece.reset();
        message.offset = pack({&number, 1});
      }
      side.messages.push_back(message);
    }
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
  // Of this process, by round: the pieces that it gives, and those it takes.
  std::map<size_t, std::pair<std::vector<size_t>, std::vector<size_t>>> own;
  for (MovedPiece &piece : cutLarge(format::exchangeOf(all, places.hostOf),
                                    moves, places.roundBytes)) {
    bool isGiven = piece.sender == places.process,
         isTaken = piece.taker == places.process;
    size_t number = plan.pieces.size(), round = 0;
    if (!piece.isLocal()) {
      if (!hasRank[piece.sender])
        throw Error("process " + std::to_string(piece.sender) +
                    " has a part of an array and no rank of the program: "
                    "gather it first");
      round = rounds.place(piece,
                           piece.elements() * moves[piece.move].elementBytes);
      if (isGiven)
        own[round].first.push_back(number);
      if (isTaken)
        own[round].second.push_back(number);
    }
    if (!isGiven && !isTaken)
      continue;
    if (isGiven)
      ++plan.uses[plan.sources.of(piece.move, piece.owner)];
    bool isLocal = piece.isLocal();
    plan.pieces.push_back(std::move(piece));
    if (isLocal)
      addLocal(plan, number);
  }
  for (const auto &[number, pieces] : own) {
    ExchangeRound &round = plan.rounds.emplace_back();
    SideBuilder(plan, round.given, /*isGiven=*/true).build(pieces.first);
    SideBuilder(plan, round.taken, /*isGiven=*/false).build(pieces.second);
    round.uses = countUses(plan, pieces.first);
  }
  return plan;
}

} // namespace whale::runtime
