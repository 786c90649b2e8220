//===- Exchange.cpp - Arrays in other layouts -----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a process has for itself is copied by the rank that wants it. What
// others need of it is packed, one message for each of them, and sent by its
// first rank; a channel of bytes has the messages of all processes. Where there
// is much, it goes in rounds, so that what is packed stays small, and shards
// that nobody needs any more are given up on the way.
//
// Cost: each element is copied once where it stays in its process, else three
// times, packing and unpacking included. Plans and their channels are kept: the
// second exchange of the same layouts makes none.
//
//===----------------------------------------------------------------------===//

#include "CopyBox.h"
#include "executor/Executor.h"

#include "whale/ProgramFormat/Exchange.h"
#include "whale/ProgramFormat/Pieces.h"

#include <algorithm>

namespace whale::runtime {

using format::denseStrides;
using format::MovedPiece;

/// The most bytes that a process packs or takes in a round.
static constexpr int64_t roundBytes = int64_t(64) << 20;

namespace {
/// A piece of a message, and where it is in the memory for all of a round.
struct Packed {
  size_t piece;
  int64_t offset;
};

/// What goes at once.
struct Round {
  int64_t channel;
  /// Of this process.
  std::vector<Packed> given, taken;
  int64_t givenBytes = 0, takenBytes = 0;
};
} // namespace

struct Executor::ExchangePlan {
  std::vector<ArrayMove> moves;
  std::vector<MovedPiece> pieces;
  std::vector<Round> rounds;
  /// How many pieces of a shard this process gives, by move and rank.
  std::vector<std::vector<int64_t>> uses;
};

/// Cuts pieces that are larger than a round.
static std::vector<MovedPiece> cutLarge(std::vector<MovedPiece> pieces,
                                        std::span<const ArrayMove> moves) {
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

/// The channel of a round, whose messages have so many bytes, by sender and
/// taker; and where they begin in the memory of each. `ranks`: of each process,
/// the one that sends and takes.
static std::shared_ptr<const Collective>
channelOf(const std::map<std::pair<int64_t, int64_t>, int64_t> &messages,
          std::span<const int64_t> ranks,
          std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>>
              &begins) {
  std::map<int64_t, int64_t> given, taken;
  std::map<int64_t, std::vector<Cell>> cells;
  for (const auto &[pair, bytes] : messages) {
    auto [sender, taker] = pair;
    begins[pair] = {given[sender], taken[taker]};
    cells[ranks[taker]].push_back(
        {{taken[taker]}, {bytes}, {{ranks[sender], {given[sender]}}}});
    given[sender] += bytes;
    taken[taker] += bytes;
  }
  auto channel = std::make_shared<Collective>();
  channel->kind = "relayout";
  channel->dtype = DType::UI8;
  for (const auto &[process, bytes] : given) {
    channel->participants.push_back(ranks[process]);
    channel->srcShapes[ranks[process]] = {bytes};
  }
  for (const auto &[process, bytes] : taken) {
    channel->participants.push_back(ranks[process]);
    channel->dstShapes[ranks[process]] = {bytes};
  }
  std::ranges::sort(channel->participants);
  auto repeated = std::ranges::unique(channel->participants);
  channel->participants.erase(repeated.begin(), repeated.end());
  channel->groups.insert(channel->participants);
  for (auto &[rank, list] : cells)
    channel->cells[rank] = std::make_shared<std::vector<Cell>>(std::move(list));
  return channel;
}

const Executor::ExchangePlan &
Executor::planExchange(std::span<const ArrayMove> moves) {
  for (const ExchangePlan &known : exchanges)
    if (std::ranges::equal(known.moves, moves))
      return known;
  ExchangePlan &plan = exchanges.emplace_back();
  plan.moves.assign(moves.begin(), moves.end());
  int64_t processes = place.job ? place.job->processes() : 1;
  std::vector<unsigned> hostOf(processes);
  std::vector<int64_t> firstRank(processes, -1);
  for (size_t rank = place.processOf.size(); rank-- > 0;) {
    auto number = static_cast<int64_t>(rank);
    hostOf[place.processOf[rank]] = connections.hosts().nodeOf(number);
    firstRank[place.processOf[rank]] = number;
  }
  std::vector<format::Move> all;
  for (const ArrayMove &move : moves) {
    std::vector<int64_t> fromProcess;
    auto ranks = static_cast<int64_t>(move.from->boxes.size());
    for (int64_t rank = 0; rank < ranks; ++rank)
      fromProcess.push_back(processOfRank(rank, ranks, processes));
    plan.uses.emplace_back(ranks);
    all.push_back({move.elementBytes, *move.from, *move.to,
                   std::move(fromProcess), place.processOf});
  }
  plan.pieces = cutLarge(format::exchangeOf(all, hostOf), moves);

  // Rounds, by their messages, and the pieces of each.
  using Pair = std::pair<int64_t, int64_t>;
  std::map<Pair, int64_t> messages;
  std::map<int64_t, int64_t> given, taken;
  std::vector<size_t> members;
  auto endRound = [&] {
    if (members.empty())
      return;
    Round &round = plan.rounds.emplace_back();
    std::map<Pair, Pair> begins;
    round.channel =
        connections.host().addChannel(channelOf(messages, firstRank, begins));
    round.givenBytes = given[place.process];
    round.takenBytes = taken[place.process];
    for (size_t number : members) {
      const MovedPiece &piece = plan.pieces[number];
      auto &[from, to] = begins[{piece.sender, piece.taker}];
      if (piece.sender == place.process)
        round.given.push_back({number, from});
      if (piece.taker == place.process)
        round.taken.push_back({number, to});
      int64_t bytes = piece.elements() * moves[piece.move].elementBytes;
      from += bytes;
      to += bytes;
    }
    messages.clear();
    given.clear();
    taken.clear();
    members.clear();
  };
  for (size_t number = 0; number < plan.pieces.size(); ++number) {
    const MovedPiece &piece = plan.pieces[number];
    if (piece.sender == place.process)
      ++plan.uses[piece.move][piece.owner];
    if (piece.isLocal())
      continue;
    if (firstRank[piece.sender] < 0)
      throw Error("process " + std::to_string(piece.sender) +
                  " has a part of an array and no rank of the program: gather "
                  "it first");
    int64_t bytes = piece.elements() * moves[piece.move].elementBytes;
    if (std::max(given[piece.sender], taken[piece.taker]) + bytes > roundBytes)
      endRound();
    messages[{piece.sender, piece.taker}] += bytes;
    given[piece.sender] += bytes;
    taken[piece.taker] += bytes;
    members.push_back(number);
  }
  endRound();
  return plan;
}

namespace {
/// One exchange, while it goes on.
struct Exchanging {
  Exchanging(std::span<const ArrayMove> moves,
             std::span<const MovedPiece> pieces,
             std::vector<std::vector<int64_t>> uses,
             std::vector<Executor::Shards> sources)
      : moves(moves), pieces(pieces), uses(std::move(uses)),
        sources(std::move(sources)) {}

  /// From the shards to the place of a message, and from there.
  void pack(const Packed &packed, char *memory);
  void unpack(const Packed &packed, const char *memory);
  /// What stays in the process.
  void copy(const MovedPiece &piece);

  std::span<const ArrayMove> moves;
  std::span<const MovedPiece> pieces;
  std::mutex mutex;
  std::vector<std::vector<int64_t>> uses;
  std::vector<Executor::Shards> sources, results;
  std::shared_ptr<Buffer> given, taken;

private:
  const char *bringFrom(const MovedPiece &piece);
  char *placeIn(const MovedPiece &piece) const;
  void giveUp(const MovedPiece &piece);
};
} // namespace

const char *Exchanging::bringFrom(const MovedPiece &piece) {
  int64_t bytes = moves[piece.move].elementBytes;
  const std::shared_ptr<Buffer> &shard = sources[piece.move][piece.owner];
  if (!shard)
    throw Error("this process has nothing of an array for rank " +
                std::to_string(piece.owner));
  auto *data = static_cast<char *>(
      shard->host(piece.fromOffset * bytes, piece.fromEnd() * bytes));
  return data + piece.fromOffset * bytes;
}

char *Exchanging::placeIn(const MovedPiece &piece) const {
  auto *data =
      static_cast<char *>(results[piece.move][piece.receiver]->data.get());
  return data + piece.toOffset * moves[piece.move].elementBytes;
}

void Exchanging::giveUp(const MovedPiece &piece) {
  std::shared_ptr<Buffer> last; // It goes after the lock.
  std::lock_guard lock(mutex);
  if (--uses[piece.move][piece.owner] == 0)
    last.swap(sources[piece.move][piece.owner]);
}

void Exchanging::pack(const Packed &packed, char *memory) {
  const MovedPiece &piece = pieces[packed.piece];
  copyStrided(memory + packed.offset, denseStrides(piece.size),
              bringFrom(piece), piece.fromStrides, piece.size,
              moves[piece.move].elementBytes);
  giveUp(piece);
}

void Exchanging::unpack(const Packed &packed, const char *memory) {
  const MovedPiece &piece = pieces[packed.piece];
  copyStrided(placeIn(piece), piece.toStrides, memory + packed.offset,
              denseStrides(piece.size), piece.size,
              moves[piece.move].elementBytes);
}

void Exchanging::copy(const MovedPiece &piece) {
  copyStrided(placeIn(piece), piece.toStrides, bringFrom(piece),
              piece.fromStrides, piece.size, moves[piece.move].elementBytes);
  giveUp(piece);
}

std::vector<Executor::Shards>
Executor::exchange(std::span<const ArrayMove> moves,
                   std::vector<Shards> sources) {
  threads.wait({});
  connections.reset();
  Transport &transport = connections.host();
  const ExchangePlan &plan = planExchange(moves);
  // Replicas that give nothing are not needed beside the results.
  for (size_t move = 0; move < moves.size(); ++move)
    for (size_t rank = 0; rank < sources[move].size(); ++rank)
      if (plan.uses[move][rank] == 0)
        sources[move][rank].reset();
  auto work = std::make_shared<Exchanging>(moves, plan.pieces, plan.uses,
                                           std::move(sources));
  for (const ArrayMove &move : moves) {
    Shards &shards = work->results.emplace_back(move.to->boxes.size());
    for (int64_t rank : place.local)
      if (const std::optional<Box> &box = move.to->boxes[rank])
        shards[rank] = Buffer::allocate(box->elements() * move.elementBytes);
  }
  int64_t givenBytes = 0, takenBytes = 0;
  for (const Round &round : plan.rounds) {
    givenBytes = std::max(givenBytes, round.givenBytes);
    takenBytes = std::max(takenBytes, round.takenBytes);
  }
  work->given = Buffer::allocate(givenBytes);
  work->taken = Buffer::allocate(takenBytes);
  auto *given = static_cast<char *>(work->given->data.get());
  auto *taken = static_cast<char *>(work->taken->data.get());
  isInRelayout = true;
  runRanks([&](int64_t rank) {
    try {
      attach(rank);
      for (const MovedPiece &piece : plan.pieces)
        if (piece.isLocal() && piece.taker == place.process &&
            static_cast<int64_t>(piece.receiver) == rank)
          work->copy(piece);
      if (rank == place.local.front())
        for (const Round &round : plan.rounds) {
          if (round.given.empty() && round.taken.empty())
            continue;
          for (const Packed &each : round.given)
            work->pack(each, given);
          transport.wait(
              rank, transport.start(rank, round.channel,
                                    round.given.empty() ? nullptr : given,
                                    round.taken.empty() ? nullptr : taken));
          for (const Packed &each : round.taken)
            work->unpack(each, taken);
          ++ranks[rank].executed;
        }
      transport.finish(rank);
      ++ranks[rank].executed;
    } catch (const Aborted &) {
    } catch (const std::exception &error) {
      fail("rank " + std::to_string(rank) + ": " + error.what());
    }
  });
  isInRelayout = false;
  if (!connections.settle())
    abandon(work);
  std::lock_guard lock(errorMutex);
  if (firstError)
    throw Error(*firstError);
  return std::move(work->results);
}

} // namespace whale::runtime
