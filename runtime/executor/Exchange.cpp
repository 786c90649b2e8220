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
// needs any more are given up on the way. Where each rank has a GPU of its own
// the same goes on between the GPUs: each is a process in the plan, with rounds
// of its rank by NCCL.
//
// Cost: each element is copied once where it stays in its process, else as
// often as the transport does, and once more for each end at which it is
// packed. The plans of the last exchanges are kept: the next one of the same
// layouts makes none. Each GPU of a process makes a plan of its own.
//
//===----------------------------------------------------------------------===//

#include "executor/Ranks.h"

#include <algorithm>
#include <numeric>

namespace whale::runtime {

/// So many exchanges have plans that are kept: there and back, for some pairs
/// of programs.
static constexpr size_t mostExchanges = 16;
/// What a GPU sends in a round takes much longer than to start one.
static constexpr int64_t gpuRoundBytes = 64 << 20;

/// Whose memory of `map` is what a rank of other ranks has: that of its number,
/// if it is in the same process, else that of the process's first one. Each of
/// these processes has a rank.
static std::shared_ptr<const RankMap>
gpusOf(const RankMap &ranks, const RankMap &map, int64_t processes) {
  std::vector<int64_t> first = map.firstRanks(processes), gpus;
  for (size_t rank = 0; rank < ranks.processOf.size(); ++rank) {
    int64_t process = ranks.processOf[rank];
    bool isThere =
        rank < map.processOf.size() && map.processOf[rank] == process;
    gpus.push_back(isThere ? static_cast<int64_t>(rank) : first[process]);
  }
  return std::make_shared<RankMap>(std::move(gpus), 0);
}

bool Ranks::exchangesByGpus(const Array &array) const {
  if (!gpuTransport || !gpuTransport->carriesMessages() || array.isInFiles())
    return false;
  if (!job()) {
    std::vector<std::shared_ptr<Buffer>> shards = array.heldShards();
    return std::ranges::all_of(
        shards, [](const std::shared_ptr<Buffer> &shard) {
          return !shard || shard->bytes == 0 || isOnGpu(*shard);
        });
  }
  // What all processes find.
  if (!array.ranks())
    return false;
  std::vector<int64_t> first = map().firstRanks(processes());
  return std::ranges::all_of(array.ranks()->processOf, [&](int64_t process) {
    return first[process] >= 0;
  });
}

/// The plans for these moves, which are the last ones used of those that are
/// kept.
const std::vector<ExchangePlan> &
Ranks::exchangePlans(std::span<const ArrayMove> moves, ExchangeWay way) {
  for (auto it = exchanges.begin(); it != exchanges.end(); ++it)
    if (it->way == way && std::ranges::equal(it->plans[0].moves, moves)) {
      exchanges.splice(exchanges.begin(), exchanges, it);
      return exchanges.front().plans;
    }
  PlannedExchange planned{way, {}};
  ExchangePlaces places{map().process, processes(), map().processOf, {}};
  if (way == ExchangeWay::Hosts) {
    for (int64_t rank : map().firstRanks(processes()))
      places.hostOf.push_back(rank < 0 ? 0 : hostOfRank.nodeOf(rank));
    planned.plans.push_back(planExchange(moves, places));
  } else {
    std::iota(places.processOf.begin(), places.processOf.end(), 0);
    places.processes = std::ssize(places.processOf);
    for (int64_t rank : places.processOf)
      places.hostOf.push_back(hostOfRank.nodeOf(rank));
    places.roundBytes = gpuRoundBytes;
    for (int64_t rank : map().local) {
      places.process = rank;
      planned.plans.push_back(planExchange(moves, places));
    }
  }
  exchanges.push_front(std::move(planned));
  if (exchanges.size() > mostExchanges)
    exchanges.pop_back();
  return exchanges.front().plans;
}

namespace {
/// The shards of an exchange, while it goes on: by move and rank.
struct Exchanged {
  std::mutex mutex;
  /// How many pieces of a source are still to be given.
  std::vector<std::vector<int64_t>> uses;
  std::vector<Ranks::Shards> sources, results;

  void giveUp(const MovedPiece &piece);
};

/// What one process, or one GPU, does in an exchange.
class Place {
public:
  /// `firstRank`: by process of the plan.
  Place(const ExchangePlan &plan, int64_t process,
        std::span<const int64_t> firstRank, ExchangeMemory &memory,
        std::shared_ptr<Exchanged> exchanged);

  /// What stays here and is for a rank. From the thread of each.
  void copy(int64_t rank) const;
  /// All rounds, on the thread of the first rank.
  void goRound(Transport &transport, std::atomic<uint64_t> &executed);

  ExchangeMemory &memory;

private:
  int64_t widthOf(const MovedPiece &piece) const {
    return plan.moves[piece.move].elementBytes;
  }
  char *bringFrom(const MovedPiece &piece) const;
  char *placeIn(const MovedPiece &piece) const;
  std::vector<RankMessage> begin(const RoundSide &side, char *packed,
                                 char *(Place::*placeOf)(const MovedPiece &)
                                     const) const;

  const ExchangePlan &plan;
  const int64_t process;
  const std::vector<int64_t> firstRank;
  const std::shared_ptr<Exchanged> exchanged;
  /// What is packed.
  std::shared_ptr<void> given, taken;
};
} // namespace

void Exchanged::giveUp(const MovedPiece &piece) {
  std::shared_ptr<Buffer> last; // It goes after the lock.
  std::lock_guard lock(mutex);
  if (--uses[piece.move][piece.owner] == 0)
    last.swap(sources[piece.move][piece.owner]);
}

Place::Place(const ExchangePlan &plan, int64_t process,
             std::span<const int64_t> firstRank, ExchangeMemory &memory,
             std::shared_ptr<Exchanged> exchanged)
    : memory(memory), plan(plan), process(process),
      firstRank(firstRank.begin(), firstRank.end()),
      exchanged(std::move(exchanged)) {
  int64_t givenBytes = 0, takenBytes = 0;
  for (const ExchangeRound &round : plan.rounds) {
    givenBytes = std::max(givenBytes, round.given.packedBytes);
    takenBytes = std::max(takenBytes, round.taken.packedBytes);
  }
  if (givenBytes)
    given = memory.stage(givenBytes);
  if (takenBytes)
    taken = memory.stage(takenBytes);
}

/// Where a piece is, once it is there.
char *Place::bringFrom(const MovedPiece &piece) const {
  int64_t bytes = widthOf(piece);
  const std::shared_ptr<Buffer> &shard =
      exchanged->sources[piece.move][piece.owner];
  if (!shard)
    throw Error("this process has nothing of an array for rank " +
                std::to_string(piece.owner));
  return memory.bringFrom(*shard, piece.fromOffset * bytes,
                          piece.fromEnd() * bytes) +
         piece.fromOffset * bytes;
}

char *Place::placeIn(const MovedPiece &piece) const {
  return memory.placeIn(*exchanged->results[piece.move][piece.receiver]) +
         piece.toOffset * widthOf(piece);
}

void Place::copy(int64_t rank) const {
  // What was read may be given up once it is copied.
  constexpr int64_t mostBytes = 4 << 20;
  std::vector<const MovedPiece *> pieces;
  int64_t bytes = 0;
  auto end = [&] {
    memory.finish();
    for (const MovedPiece *piece : pieces)
      exchanged->giveUp(*piece);
    pieces.clear();
    bytes = 0;
  };
  for (const MovedPiece &piece : plan.pieces) {
    if (!piece.isLocal() || piece.taker != process ||
        static_cast<int64_t>(piece.receiver) != rank)
      continue;
    memory.copy(placeIn(piece), piece.toStrides, bringFrom(piece),
                piece.fromStrides, piece.size, widthOf(piece));
    pieces.push_back(&piece);
    bytes += piece.elements() * widthOf(piece);
    if (bytes >= mostBytes)
      end();
  }
  end();
}

/// Of what is packed, in memory that is there mostly.
static void findDenseStrides(const Shape &size, Shape &strides) {
  strides.resize(size.size());
  int64_t stride = 1;
  for (size_t d = size.size(); d-- > 0; stride *= size[d])
    strides[d] = stride;
}

/// The messages of a side, of which some are in the memory for packed ones.
std::vector<RankMessage>
Place::begin(const RoundSide &side, char *packed,
             char *(Place::*placeOf)(const MovedPiece &) const) const {
  std::vector<RankMessage> messages;
  for (const RoundSide::Message &message : side.messages)
    messages.push_back({firstRank[message.process],
                        message.piece
                            ? (this->*placeOf)(plan.pieces[*message.piece])
                            : packed + message.offset,
                        message.bytes});
  return messages;
}

void Place::goRound(Transport &transport, std::atomic<uint64_t> &executed) {
  int64_t self = firstRank[process];
  auto *out = static_cast<char *>(given.get()),
       *in = static_cast<char *>(taken.get());
  Shape dense;
  for (const ExchangeRound &round : plan.rounds) {
    for (const auto &[number, offset] : round.given.packed) {
      const MovedPiece &piece = plan.pieces[number];
      findDenseStrides(piece.size, dense);
      memory.copy(out + offset, dense, bringFrom(piece), piece.fromStrides,
                  piece.size, widthOf(piece));
    }
    transport.wait(self, transport.startMessages(
                             self, begin(round.given, out, &Place::bringFrom),
                             begin(round.taken, in, &Place::placeIn)));
    for (const auto &[number, offset] : round.given.packed)
      exchanged->giveUp(plan.pieces[number]);
    for (const RoundSide::Message &message : round.given.messages)
      if (message.piece)
        exchanged->giveUp(plan.pieces[*message.piece]);
    for (const auto &[number, offset] : round.taken.packed) {
      const MovedPiece &piece = plan.pieces[number];
      findDenseStrides(piece.size, dense);
      memory.copy(placeIn(piece), piece.toStrides, in + offset, dense,
                  piece.size, widthOf(piece));
    }
    ++executed;
  }
  memory.finish();
}

std::vector<Ranks::Shards> Ranks::exchange(std::span<const ArrayMove> given,
                                           std::vector<Shards> sources,
                                           ExchangeWay way) {
  rankThreads.wait({});
  Run turn(*this, /*executor=*/nullptr);
  bool isByGpus = way == ExchangeWay::Gpus;
  Transport &transport = isByGpus ? *gpuTransport : *hostTransport;
  transport.reset();
  std::vector<int64_t> firstRank = map().firstRanks(processes());
  std::vector<ArrayMove> moves(given.begin(), given.end());
  for (ArrayMove &move : moves)
    if (!move.fromRanks)
      move.fromRanks = std::make_shared<RankMap>(
          std::vector<int64_t>(move.from->boxes.size()), 0);
  if (isByGpus) {
    gpuTransport->connectMessages();
    firstRank.resize(map().processOf.size());
    std::iota(firstRank.begin(), firstRank.end(), 0);
    for (ArrayMove &move : moves)
      move.fromRanks = gpusOf(*move.fromRanks, map(), processes());
  }
  const std::vector<ExchangePlan> &plans = exchangePlans(moves, way);
  auto work = std::make_shared<Exchanged>();
  work->sources = std::move(sources);
  work->uses = plans[0].uses;
  for (const ExchangePlan &plan : std::span(plans).subspan(1))
    for (size_t move = 0; move < moves.size(); ++move)
      for (size_t rank = 0; rank < plan.uses[move].size(); ++rank)
        work->uses[move][rank] += plan.uses[move][rank];
  // Replicas that give nothing are not needed beside the results.
  for (size_t move = 0; move < moves.size(); ++move)
    for (size_t rank = 0; rank < work->sources[move].size(); ++rank)
      if (work->uses[move][rank] == 0)
        work->sources[move][rank].reset();
  for (const ArrayMove &move : moves) {
    Shards &shards = work->results.emplace_back(move.to->boxes.size());
    for (int64_t rank : map().local) {
      ExchangeMemory &memory = exchangeMemory(rank, way);
      memory.prepare(move.elementBytes);
      if (const std::optional<Box> &box = move.to->boxes[rank])
        shards[rank] = memory.allocate(box->elements() * move.elementBytes);
    }
  }
  std::vector<std::unique_ptr<Place>> places;
  for (size_t i = 0; i < plans.size(); ++i) {
    int64_t rank = map().local[i];
    places.push_back(
        std::make_unique<Place>(plans[i], isByGpus ? rank : map().process,
                                firstRank, exchangeMemory(rank, way), work));
  }
  run([&](int64_t rank) {
    try {
      auto here = std::ranges::find(map().local, rank) - map().local.begin();
      Place &place = *places[isByGpus ? here : 0];
      place.memory.attachThread();
      place.copy(rank);
      if (isByGpus || here == 0)
        place.goRound(transport, ranks[rank].executed);
      transport.finish(rank);
      ++ranks[rank].executed;
    } catch (const Aborted &) {
    } catch (const std::exception &error) {
      fail("rank " + std::to_string(rank) + ": " + error.what());
    }
  });
  if (!transport.settle()) {
    abandon(work);
    for (std::unique_ptr<Place> &place : places)
      abandon(std::shared_ptr<Place>(std::move(place)));
  }
  throwFirstError();
  return std::move(work->results);
}

} // namespace whale::runtime
