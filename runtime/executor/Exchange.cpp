//===- Exchange.cpp - Arrays in other layouts -----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a process has for itself is copied by the rank that wants it. What
// others need of it goes between the first ranks of the processes, in rounds
// (ExchangePlan.h), so that what is packed stays small, and shards that nobody
// needs any more are given up on the way.
//
// Cost: each element is copied once where it stays in its process, else as
// often as the transport does, and once more for each end at which it is
// packed. The plans of the last exchanges are kept: the next one of the same
// layouts makes none.
//
//===----------------------------------------------------------------------===//

#include "CopyBox.h"
#include "executor/Ranks.h"

#include "whale/ProgramFormat/Pieces.h"

#include <algorithm>

namespace whale::runtime {

using format::denseStrides;

/// So many plans are kept: there and back, for some pairs of programs.
static constexpr size_t mostPlans = 16;

/// The plan for these moves, which is the last one used of those that are kept.
const ExchangePlan &Ranks::exchangePlan(std::span<const ArrayMove> moves) {
  for (auto it = exchanges.begin(); it != exchanges.end(); ++it)
    if (std::ranges::equal(it->moves, moves)) {
      exchanges.splice(exchanges.begin(), exchanges, it);
      return exchanges.front();
    }
  ExchangePlaces places{map().process, processes(), map().processOf, {}};
  for (int64_t rank : map().firstRanks(processes()))
    places.hostOf.push_back(rank < 0 ? 0 : hostOfRank.nodeOf(rank));
  exchanges.push_front(planExchange(moves, places));
  if (exchanges.size() > mostPlans)
    exchanges.pop_back();
  return exchanges.front();
}

namespace {
/// One exchange, while it goes on.
struct Exchanging {
  Exchanging(const ExchangePlan &plan, std::vector<Ranks::Shards> sources)
      : plan(plan), uses(plan.uses), sources(std::move(sources)) {}

  /// Packs what goes in a round, and says which messages there are: `firstRank`
  /// is by process.
  void begin(const ExchangeRound &round, std::span<const int64_t> firstRank);
  /// Unpacks what has come.
  void end(const ExchangeRound &round);
  /// What stays in the process.
  void copy(const MovedPiece &piece);

  const ExchangePlan &plan;
  std::mutex mutex;
  std::vector<std::vector<int64_t>> uses;
  std::vector<Ranks::Shards> sources, results;
  /// What is packed.
  std::shared_ptr<Buffer> given, taken;
  /// Of the round at hand.
  std::vector<RankMessage> sends, receives;

private:
  int64_t widthOf(const MovedPiece &piece) const {
    return plan.moves[piece.move].elementBytes;
  }
  char *bringFrom(const MovedPiece &piece);
  char *placeIn(const MovedPiece &piece) const;
  void giveUp(const MovedPiece &piece);
};
} // namespace

/// Where a piece is, once it is there.
char *Exchanging::bringFrom(const MovedPiece &piece) {
  int64_t bytes = widthOf(piece);
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
  return data + piece.toOffset * widthOf(piece);
}

void Exchanging::giveUp(const MovedPiece &piece) {
  std::shared_ptr<Buffer> last; // It goes after the lock.
  std::lock_guard lock(mutex);
  if (--uses[piece.move][piece.owner] == 0)
    last.swap(sources[piece.move][piece.owner]);
}

void Exchanging::begin(const ExchangeRound &round,
                       std::span<const int64_t> firstRank) {
  auto *packed = static_cast<char *>(given->data.get());
  for (const auto &[number, offset] : round.given.packed) {
    const MovedPiece &piece = plan.pieces[number];
    copyStrided(packed + offset, denseStrides(piece.size), bringFrom(piece),
                piece.fromStrides, piece.size, widthOf(piece));
    giveUp(piece);
  }
  auto messagesOf = [&](const RoundSide &side, const Buffer &memory,
                        auto placeOf) {
    std::vector<RankMessage> messages;
    for (const RoundSide::Message &message : side.messages)
      messages.push_back(
          {firstRank[message.process],
           message.piece
               ? placeOf(plan.pieces[*message.piece])
               : static_cast<char *>(memory.data.get()) + message.offset,
           message.bytes});
    return messages;
  };
  sends = messagesOf(round.given, *given, [this](const MovedPiece &piece) {
    return bringFrom(piece);
  });
  receives = messagesOf(round.taken, *taken, [this](const MovedPiece &piece) {
    return placeIn(piece);
  });
}

void Exchanging::end(const ExchangeRound &round) {
  for (const RoundSide::Message &message : round.given.messages)
    if (message.piece)
      giveUp(plan.pieces[*message.piece]);
  auto *packed = static_cast<const char *>(taken->data.get());
  for (const auto &[number, offset] : round.taken.packed) {
    const MovedPiece &piece = plan.pieces[number];
    copyStrided(placeIn(piece), piece.toStrides, packed + offset,
                denseStrides(piece.size), piece.size, widthOf(piece));
  }
}

void Exchanging::copy(const MovedPiece &piece) {
  copyStrided(placeIn(piece), piece.toStrides, bringFrom(piece),
              piece.fromStrides, piece.size, widthOf(piece));
  giveUp(piece);
}

std::vector<Ranks::Shards> Ranks::exchange(std::span<const ArrayMove> moves,
                                           std::vector<Shards> sources) {
  rankThreads.wait({});
  Run turn(*this, /*executor=*/nullptr);
  Transport &transport = *hostTransport;
  transport.reset();
  const ExchangePlan &plan = exchangePlan(moves);
  // Replicas that give nothing are not needed beside the results.
  for (size_t move = 0; move < moves.size(); ++move)
    for (size_t rank = 0; rank < sources[move].size(); ++rank)
      if (plan.uses[move][rank] == 0)
        sources[move][rank].reset();
  auto work = std::make_shared<Exchanging>(plan, std::move(sources));
  for (const ArrayMove &move : moves) {
    Shards &shards = work->results.emplace_back(move.to->boxes.size());
    for (int64_t rank : map().local)
      if (const std::optional<Box> &box = move.to->boxes[rank])
        shards[rank] = Buffer::allocate(box->elements() * move.elementBytes);
  }
  int64_t givenBytes = 0, takenBytes = 0;
  for (const ExchangeRound &round : plan.rounds) {
    givenBytes = std::max(givenBytes, round.given.packedBytes);
    takenBytes = std::max(takenBytes, round.taken.packedBytes);
  }
  work->given = Buffer::allocate(givenBytes);
  work->taken = Buffer::allocate(takenBytes);
  std::vector<int64_t> firstRank = map().firstRanks(processes());
  run([&](int64_t rank) {
    try {
      for (const MovedPiece &piece : plan.pieces)
        if (piece.isLocal() && piece.taker == map().process &&
            static_cast<int64_t>(piece.receiver) == rank)
          work->copy(piece);
      if (rank == map().local.front())
        for (const ExchangeRound &round : plan.rounds) {
          work->begin(round, firstRank);
          transport.wait(
              rank, transport.startMessages(rank, work->sends, work->receives));
          work->end(round);
          ++ranks[rank].executed;
        }
      transport.finish(rank);
      ++ranks[rank].executed;
    } catch (const Aborted &) {
    } catch (const std::exception &error) {
      fail("rank " + std::to_string(rank) + ": " + error.what());
    }
  });
  if (!transport.settle())
    abandon(work);
  throwFirstError();
  return std::move(work->results);
}

} // namespace whale::runtime
