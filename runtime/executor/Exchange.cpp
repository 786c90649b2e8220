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
// packed; what several processes get is packed once. What processes of a host
// read in each other's memory, the transport does not copy. The plans of the
// last exchanges are kept: the next one of the same layouts makes none. Each
// GPU of a process makes a plan of its own.
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
    if (sharedMemory)
      for (int64_t process = 0; process < processes(); ++process)
        places.areRead.push_back(sharedMemory->of(process));
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
/// The shards of an exchange, while it goes on: by their numbers in the plan.
struct Exchanged {
  Exchanged(size_t sources, size_t results)
      : uses(sources), sources(sources), results(results) {}

  /// So many pieces of a source have been given.
  void giveUp(size_t source, int64_t count) {
    if (uses[source].fetch_sub(count) == count)
      sources[source].reset();
  }

  /// How many pieces of a source are still to be given.
  std::vector<std::atomic<int64_t>> uses;
  Ranks::Shards sources, results;
};

/// What one process, or one GPU, does in an exchange.
class Place {
public:
  /// `firstRank`: by process of the plan.
  Place(const ExchangePlan &plan, int64_t process,
        std::span<const int64_t> firstRank, ExchangeMemory &memory,
        std::shared_ptr<Exchanged> exchanged, const SharedMemory *shared);

  /// What stays here and is for a rank. From the thread of each.
  void copy(int64_t rank) const;
  /// All rounds, on the thread of the first rank.
  void goRound(Transport &transport, std::atomic<uint64_t> &executed);

  ExchangeMemory &memory;

private:
  char *bringFrom(const PlacedPiece &placed) const;
  char *placeIn(size_t result) const {
    return memory.placeIn(*exchanged->results[result]);
  }
  std::vector<RankMessage> messagesOf(const RoundSide &side, bool isGiven);
  const char *packedAt(const RoundSide &side,
                       const RoundSide::Packed &piece) const;

  const ExchangePlan &plan;
  const int64_t process;
  const std::vector<int64_t> firstRank;
  const std::shared_ptr<Exchanged> exchanged;
  /// Null where processes read nothing in each other's memory.
  const SharedMemory *const shared;
  /// What is packed.
  std::shared_ptr<void> given, taken;
  /// By message of a round, of those that are numbers.
  std::vector<int64_t> said, told;
};
} // namespace

Place::Place(const ExchangePlan &plan, int64_t process,
             std::span<const int64_t> firstRank, ExchangeMemory &memory,
             std::shared_ptr<Exchanged> exchanged, const SharedMemory *shared)
    : memory(memory), plan(plan), process(process),
      firstRank(firstRank.begin(), firstRank.end()),
      exchanged(std::move(exchanged)), shared(shared) {
  int64_t givenBytes = 0, takenBytes = 0;
  for (const ExchangeRound &round : plan.rounds) {
    givenBytes = std::max(givenBytes, round.given.packedBytes);
    takenBytes = std::max(takenBytes, round.taken.packedBytes);
    said.resize(std::max(said.size(), round.given.messages.size()));
    told.resize(std::max(told.size(), round.taken.messages.size()));
  }
  if (shared && shared->own())
    given = {std::shared_ptr<void>(), shared->own()};
  else if (givenBytes)
    given = memory.stage(givenBytes);
  if (takenBytes)
    taken = memory.stage(takenBytes);
}

/// Where a piece of a source is, once it is there.
char *Place::bringFrom(const PlacedPiece &placed) const {
  const Buffer *shard = exchanged->sources[placed.shard].get();
  if (!shard)
    throw Error("this process has nothing of an array for rank " +
                std::to_string(plan.pieces[placed.piece].owner));
  int64_t end = placed.begin + placed.runBytes;
  for (const CopyLoop &loop : plan.loopsOf(placed))
    end += (loop.count - 1) * loop.fromStride;
  return memory.bringFrom(*shard, placed.begin, end) + placed.begin;
}

void Place::copy(int64_t rank) const {
  if (static_cast<size_t>(rank) >= plan.local.size())
    return;
  // What was read may be given up once it is copied.
  constexpr int64_t mostBytes = 4 << 20;
  std::span<const ExchangePlan::LocalPiece> pieces = plan.local[rank];
  size_t kept = 0;
  int64_t copied = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const ExchangePlan::LocalPiece &local = pieces[i];
    memory.place(placeIn(local.result) + local.resultBegin, bringFrom(local),
                 local.runBytes, plan.loopsOf(local), local.elementBytes);
    int64_t bytes = local.runBytes;
    for (const CopyLoop &loop : plan.loopsOf(local))
      bytes *= loop.count;
    copied += bytes;
    if (copied < mostBytes && i + 1 < pieces.size())
      continue;
    memory.finish();
    for (; kept <= i; ++kept)
      exchanged->giveUp(pieces[kept].shard, 1);
    copied = 0;
  }
}

/// The messages of a side, of which some are in the memory for packed ones.
std::vector<RankMessage> Place::messagesOf(const RoundSide &side,
                                           bool isGiven) {
  using Content = RoundSide::Message::Content;
  auto *packed = static_cast<char *>(isGiven ? given.get() : taken.get());
  std::vector<RankMessage> messages;
  for (size_t i = 0; i < side.messages.size(); ++i) {
    const RoundSide::Message &message = side.messages[i];
    char *data = packed + message.offset;
    if (message.content == Content::Piece) {
      const MovedPiece &piece = plan.pieces[message.piece];
      int64_t width = plan.moves[piece.move].elementBytes;
      if (isGiven)
        data =
            bringFrom({message.piece, plan.sources.of(piece.move, piece.owner),
                       piece.fromOffset * width, width, message.bytes, 0, 0});
      else
        data = placeIn(plan.results.of(piece.move, piece.receiver)) +
               piece.toOffset * width;
    } else if (message.content != Content::Packed) {
      int64_t &number = (isGiven ? said : told)[i];
      number = message.offset;
      data = reinterpret_cast<char *>(&number);
    }
    messages.push_back({firstRank[message.process], data, message.bytes});
  }
  return messages;
}

/// Where what is taken is packed: here, or in the memory of its sender.
const char *Place::packedAt(const RoundSide &side,
                            const RoundSide::Packed &piece) const {
  if (!piece.told)
    return static_cast<const char *>(taken.get()) + piece.offset;
  return shared->of(side.messages[*piece.told].process) + told[*piece.told] +
         piece.offset;
}

void Place::goRound(Transport &transport, std::atomic<uint64_t> &executed) {
  int64_t self = firstRank[process];
  auto *out = static_cast<char *>(given.get());
  for (const ExchangeRound &round : plan.rounds) {
    for (const RoundSide::Packed &piece : round.given.packed)
      memory.copy(out + piece.offset, bringFrom(piece), piece.runBytes,
                  plan.loopsOf(piece), piece.elementBytes);
    transport.wait(self, transport.startMessages(
                             self, messagesOf(round.given, /*isGiven=*/true),
                             messagesOf(round.taken, /*isGiven=*/false)));
    for (const auto &[source, count] : round.uses)
      exchanged->giveUp(source, count);
    for (const RoundSide::Packed &piece : round.taken.packed)
      memory.place(placeIn(piece.shard) + piece.begin,
                   packedAt(round.taken, piece), piece.runBytes,
                   plan.loopsOf(piece), piece.elementBytes);
    ++executed;
  }
  memory.finish();
}

std::string Ranks::connectExchange() {
  rankThreads.wait({});
  Run turn(*this, /*executor=*/nullptr);
  gpuTransport->reset();
  return gpuTransport->connectMessages();
}

std::vector<Ranks::Shards> Ranks::exchange(std::vector<ArrayMove> moves,
                                           std::vector<Shards> sources,
                                           ExchangeWay way) {
  rankThreads.wait({});
  Run turn(*this, /*executor=*/nullptr);
  bool isByGpus = way == ExchangeWay::Gpus;
  Transport &transport = isByGpus ? *gpuTransport : *hostTransport;
  transport.reset();
  std::vector<int64_t> firstRank = map().firstRanks(processes());
  for (ArrayMove &move : moves)
    if (!move.fromRanks)
      move.fromRanks = std::make_shared<RankMap>(
          std::vector<int64_t>(move.from->boxes.size()), 0);
  if (isByGpus) {
    if (std::string refusal = gpuTransport->connectMessages(); !refusal.empty())
      throw Error(refusal);
    firstRank.resize(map().processOf.size());
    std::iota(firstRank.begin(), firstRank.end(), 0);
    for (ArrayMove &move : moves)
      move.fromRanks = gpusOf(*move.fromRanks, map(), processes());
  }
  const std::vector<ExchangePlan> &plans = exchangePlans(moves, way);
  const ShardNumbers &sourceNumbers = plans[0].sources,
                     &resultNumbers = plans[0].results;
  auto work =
      std::make_shared<Exchanged>(sourceNumbers.count(), resultNumbers.count());
  for (size_t i = 0; i < work->uses.size(); ++i) {
    int64_t count = 0;
    for (const ExchangePlan &plan : plans)
      count += plan.uses[i];
    work->uses[i] = count;
  }
  for (size_t move = 0; move < moves.size(); ++move)
    for (size_t rank = 0; rank < sources[move].size(); ++rank)
      // Replicas that give nothing are not needed beside the results.
      if (size_t number = sourceNumbers.of(move, rank); work->uses[number] > 0)
        work->sources[number] = std::move(sources[move][rank]);
  sources.clear();
  for (size_t move = 0; move < moves.size(); ++move)
    for (int64_t rank : map().local) {
      ExchangeMemory &memory = exchangeMemory(rank, way);
      memory.prepare(moves[move].elementBytes);
      if (const std::optional<Box> &box = moves[move].to->boxes[rank])
        work->results[resultNumbers.of(move, rank)] =
            memory.allocate(box->elements() * moves[move].elementBytes);
    }
  std::vector<std::unique_ptr<Place>> places;
  for (size_t i = 0; i < plans.size(); ++i) {
    int64_t rank = map().local[i];
    places.push_back(
        std::make_unique<Place>(plans[i], isByGpus ? rank : map().process,
                                firstRank, exchangeMemory(rank, way), work,
                                isByGpus ? nullptr : sharedMemory.get()));
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
  std::vector<Shards> results;
  results.reserve(moves.size());
  for (size_t move = 0; move < moves.size(); ++move) {
    auto begin = work->results.begin() +
                 static_cast<std::ptrdiff_t>(resultNumbers.of(move, 0));
    results.emplace_back(
        std::move_iterator(begin),
        std::move_iterator(begin + std::ssize(moves[move].to->boxes)));
  }
  return results;
}

} // namespace whale::runtime
