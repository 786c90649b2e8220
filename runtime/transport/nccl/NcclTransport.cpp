//===- NcclTransport.cpp - Ranks on GPUs, by NCCL -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: posts of the ranks' parts of channels, in the memory of their GPUs. Out:
// for each, groups of NCCL's sends and receives and the kernels between them,
// on the rank's communication stream, whose order is that of the rank's queue.
//
// NCCL moves bytes; kernels reduce them, in the group's order, with the bits of
// ranks in one process. A small all-reduce sends all to everyone. A larger one
// sends each member its slice, reduces there, and sends the results to
// everyone: in all 2 (n - 1) / n times the data, the least for n ranks.
//
// A communicator of each list of ranks in the channels' tables, as far as these
// are on GPUs of their own, is made in the lists' order. Only one stream of a
// rank uses them, so that none waits for another in a circle.
//
// Whoever waits for the GPU asks whether the run was aborted, or NCCL has
// failed (watch). Each rank aborts its own communicators when it finds the run
// aborted, the last ones `settle` does; `reset` makes new ones.
//
// Costs: memory on the GPU for what the largest transfer stages, taken when the
// transport is made, for all transports of the ranks once; an all-reduce stages
// at most `chunkBytes` at a time.
//
//===----------------------------------------------------------------------===//

#include "transport/nccl/NcclTransport.h"

#include "cuda/BoxKernels.h"
#include "transport/message/Part.h"
#include "transport/nccl/Communicators.h"

#include <algorithm>
#include <chrono>
#include <deque>

namespace whale::runtime {
namespace {

using message::Part;
using nccl::Message;

/// What is staged of an all-reduce at a time: enough for full bandwidth.
constexpr int64_t chunkBytes = 64 << 20;
constexpr int64_t alignment = 256;
int64_t aligned(int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// A rank's part of a channel, and the communicator that it needs: null where
/// it exchanges data with nobody.
struct Lane {
  Part part;
  const Group *group = nullptr;
  /// Elements of a slice that are exchanged at a time, in an all-reduce.
  int64_t chunk = 0;
  int64_t scratchBytes = 0;
};

struct Open {
  int64_t number = 0, channel = 0;
  cuda::EventHandle done = nullptr;
  bool isOrdered = false;
};

struct Rank {
  Rank(std::shared_ptr<cuda::Gpu> given, int64_t number)
      : gpu(std::move(given)), number(number), kernels(*gpu) {}
  ~Rank();
  Rank(const Rank &) = delete;
  Rank &operator=(const Rank &) = delete;

  const std::shared_ptr<cuda::Gpu> gpu;
  const int64_t number;
  cuda::BoxKernels kernels;
  std::map<int64_t, std::unique_ptr<Lane>> lanes;
  /// What its transfers need of the ranks' scratch memory.
  int64_t scratchBytes = 0;
  std::deque<Open> open;
  std::vector<cuda::EventHandle> unused;
  int64_t starts = 0;
  /// -1 if none.
  std::atomic<int64_t> awaited = -1;
};

Rank::~Rank() {
  if (!gpu->tryAttach())
    return; // the process ends, or the GPU is lost
  for (const Open &transfer : open)
    unused.push_back(transfer.done);
  for (cuda::EventHandle event : unused)
    gpu->driver.eventDestroy.function(event);
}

class Implementation : public NcclTransport {
public:
  Implementation(const Channels &channels,
                 std::shared_ptr<nccl::Communicators> communicators);
  ~Implementation() override;

  bool carries(int64_t channel) const override {
    return carried.contains(channel);
  }
  const std::string &refusal() const override { return refused; }
  bool hasSharedGpus() const override { return areShared; }
  void connect() override;
  int64_t addChannels(const Channels &, int64_t) override {
    throw Error("NCCL has the channels only that it was made with");
  }
  void dropChannels(int64_t) override {}
  Ticket start(int64_t rank, int64_t channel, const void *src,
               void *dst) override;
  bool test(int64_t rank, const Ticket &ticket) override;
  Traffic wait(int64_t rank, const Ticket &ticket) override;
  Traffic order(int64_t rank, const Ticket &ticket,
                cuda::Stream stream) override;
  std::optional<int64_t> awaited(int64_t rank) const override {
    int64_t channel = ranks[rank] ? ranks[rank]->awaited.load() : -1;
    return channel < 0 ? std::nullopt : std::optional(channel);
  }
  int64_t scratchBytes(int64_t rank) const override {
    return ranks[rank]->scratchBytes;
  }
  void finish(int64_t) override {}
  void abort() override { communicators->stop = true; }
  bool aborted() const override { return communicators->stop; }
  bool settle() override;
  void reset() override;

private:
  void findChannels();
  void watchAll();
  void endWatch();
  void prepare(Rank &rank);
  void watch(Rank &rank);
  void stopIfAborted(Rank &rank);
  void dropDone(Rank &rank);
  void put(Rank &rank, const Lane &lane, const char *src, char *dst);
  void reduceAll(Rank &rank, const Lane &lane, const char *src, char *dst);
  void reduceTerms(Rank &rank, const Lane &lane, const char *own, char *dst,
                   int64_t count);
  void exchange(Rank &rank, const Lane &lane, std::vector<Message> sends,
                std::vector<Message> receives) {
    if (lane.group)
      communicators->put(rank.number, *lane.group, lane.part.channel,
                         std::move(sends), std::move(receives));
  }
  Open &find(Rank &rank, const Ticket &ticket);

  const Channels channels;
  const std::shared_ptr<nccl::Communicators> communicators;
  /// In their order; only those that are on GPUs.
  Groups groups;
  std::set<int64_t> carried;
  std::string refused;
  bool areShared = false, isWatching = false;
  /// Null for those that are not here.
  std::vector<std::unique_ptr<Rank>> ranks;
};

Implementation::Implementation(const Channels &given,
                               std::shared_ptr<nccl::Communicators> shared)
    : channels(given), communicators(std::move(shared)) {
  for (const std::shared_ptr<cuda::Gpu> &gpu : communicators->localGpus()) {
    auto number = static_cast<int64_t>(ranks.size());
    ranks.push_back(gpu ? std::make_unique<Rank>(gpu, number) : nullptr);
  }
  findChannels();
  for (std::unique_ptr<Rank> &rank : ranks)
    if (rank)
      prepare(*rank);
  watchAll();
}

Implementation::~Implementation() { endWatch(); }

void Implementation::watchAll() {
  for (std::unique_ptr<Rank> &rank : ranks)
    if (rank)
      rank->gpu->watch = [this, rank = rank.get()](bool isWaiting) {
        if (isWaiting)
          watch(*rank);
        else
          rank->awaited = -1;
      };
  isWatching = true;
}

/// Another transport may watch the same GPUs then.
void Implementation::endWatch() {
  if (!std::exchange(isWatching, false))
    return;
  for (std::unique_ptr<Rank> &rank : ranks)
    if (rank)
      rank->gpu->watch = nullptr;
}

/// Why ranks are not on GPUs of their own; empty if they are.
std::string sharingOf(const Group &group,
                      const std::vector<std::string> &gpuOfRank) {
  std::map<std::string, int64_t> rankOf;
  for (int64_t rank : group) {
    if (gpuOfRank[rank].empty())
      return "rank " + std::to_string(rank) + " is on no GPU";
    auto [it, isNew] = rankOf.emplace(gpuOfRank[rank], rank);
    if (!isNew)
      return "ranks " + std::to_string(it->second) + " and " +
             std::to_string(rank) + " share a GPU";
  }
  return "";
}

/// Why there is no kernel for what a channel reduces; empty if there is.
std::string reductionOf(const Collective &collective) {
  if (!collective.reduction)
    return "";
  size_t terms = 0;
  for (const Group &group : collective.groups)
    terms = std::max(terms, group.size());
  for (const auto &[rank, cells] : collective.cells)
    for (const Cell &cell : *cells)
      terms = std::max(terms, cell.from.size());
  return cuda::BoxKernels::canReduce(collective.dtype, *collective.reduction,
                                     terms)
             ? ""
             : "no kernel reduces " + std::to_string(terms) + " terms of " +
                   std::string(name(collective.dtype));
}

/// Which groups and channels go this way.
void Implementation::findChannels() {
  const std::vector<std::string> &gpuOfRank = communicators->gpuOfRanks();
  std::set<std::string> gpus;
  for (const std::string &gpu : gpuOfRank)
    areShared |= !gpu.empty() && !gpus.insert(gpu).second;
  for (const auto &[number, collective] : channels) {
    std::string why = reductionOf(*collective);
    for (const Group &group : collective->groups)
      if (why.empty())
        why = sharingOf(group, gpuOfRank);
    // Who exchanges data with nobody copies on his GPU.
    for (int64_t rank : collective->participants)
      if (why.empty())
        why = sharingOf({rank}, gpuOfRank);
    if (!why.empty()) {
      refused = refused.empty() ? collective->kind + " " +
                                      std::to_string(number) + ": " + why
                                : refused;
      continue;
    }
    carried.insert(number);
    groups.insert(collective->groups.begin(), collective->groups.end());
  }
}

/// Finds what a rank does in each channel, and takes what it needs for it, so
/// that nothing is taken in a run.
void Implementation::prepare(Rank &rank) {
  rank.gpu->attach();
  for (int64_t channel : carried) {
    const Collective &collective = *channels.at(channel);
    if (!std::ranges::count(collective.participants, rank.number))
      continue;
    auto &lane = rank.lanes[channel];
    lane.reset(new Lane{Part(collective, channel, rank.number)});
    const Part &part = lane->part;
    for (const Group &group : collective.groups)
      if (std::ranges::count(group, rank.number))
        lane->group = &*groups.find(group);
    int64_t bytes = byteSize(collective.dtype);
    lane->scratchBytes = part.stagingBytes;
    if (collective.isAllReduce() && !part.peers.empty()) {
      auto peers = static_cast<int64_t>(part.peers.size());
      lane->chunk = std::max<int64_t>(chunkBytes / (peers * bytes), 1);
      int64_t terms = part.isSmall
                          ? part.slices.back().end
                          : std::min(lane->chunk, part.slices[0].size());
      lane->scratchBytes = peers * aligned(terms * bytes);
    }
    rank.scratchBytes = std::max(rank.scratchBytes, lane->scratchBytes);
    rank.kernels.prepare(collective.dtype, std::nullopt);
    if (collective.reduction)
      rank.kernels.prepare(collective.dtype, collective.reduction);
  }
  if (rank.scratchBytes)
    communicators->reserve(rank.number, rank.scratchBytes);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// What whoever waits for the rank's GPU has to know.
void Implementation::watch(Rank &rank) {
  stopIfAborted(rank);
  dropDone(rank);
  rank.awaited = rank.open.empty() ? -1 : rank.open.front().channel;
  communicators->check(rank.number, awaited(rank.number));
}

void Implementation::stopIfAborted(Rank &rank) {
  if (!aborted())
    return;
  communicators->abandon({{rank.number}});
  throw Aborted();
}

void Implementation::connect() {
  try {
    communicators->connect(groups);
  } catch (...) {
    abort();
    throw;
  }
}

bool Implementation::settle() {
  if (aborted())
    communicators->end();
  endWatch();
  return true;
}

void Implementation::reset() {
  settle();
  watchAll();
  communicators->stop = false;
  for (std::unique_ptr<Rank> &rank : ranks) {
    if (!rank)
      continue;
    for (const Open &transfer : rank->open)
      rank->unused.push_back(transfer.done);
    rank->open.clear();
    rank->starts = 0;
    rank->awaited = -1;
  }
  // Others may have ended all.
  connect();
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// Reduces elements of the rank's own source and as many of each peer, which
/// are in the scratch memory one behind the other.
void Implementation::reduceTerms(Rank &rank, const Lane &lane, const char *own,
                                 char *dst, int64_t count) {
  const Part &part = lane.part;
  const Collective &collective = part.collective;
  Shape shape = {count}, origin = {0};
  int64_t pitch = aligned(count * byteSize(collective.dtype));
  std::vector<BoxSource> terms;
  const char *next = communicators->scratch(rank.number);
  for (size_t i = 0; i < part.group.size(); ++i) {
    bool isOwn = i == part.position;
    terms.push_back({isOwn ? own : next, &shape, &origin});
    next += isOwn ? 0 : pitch;
  }
  rank.kernels.run(collective.dtype, collective.reduction, dst, shape, origin,
                   shape, terms, rank.gpu->communication);
}

void Implementation::reduceAll(Rank &rank, const Lane &lane, const char *src,
                               char *dst) {
  const Part &part = lane.part;
  int64_t bytes = byteSize(part.collective.dtype);
  int64_t count = part.slices.back().end;
  if (part.peers.empty() || count == 0) {
    if (src != dst)
      rank.gpu->copy(dst, src, count * bytes, rank.gpu->communication);
    return;
  }
  auto toScratch = [&](int64_t elements) {
    std::vector<Message> receives;
    char *next = communicators->scratch(rank.number);
    for (int64_t peer : part.peers) {
      receives.push_back({peer, next, elements * bytes});
      next += aligned(elements * bytes);
    }
    return receives;
  };
  if (part.isSmall) {
    std::vector<Message> sends;
    for (int64_t peer : part.peers)
      sends.push_back({peer, src, count * bytes});
    exchange(rank, lane, sends, toScratch(count));
    return reduceTerms(rank, lane, src, dst, count);
  }
  // Of slices that end before others nothing is left to exchange.
  const Slice &own = part.slices[part.position];
  auto left = [&](const Slice &slice, int64_t done) {
    return std::clamp<int64_t>(slice.size() - done, 0, lane.chunk);
  };
  for (int64_t done = 0; done < part.slices[0].size(); done += lane.chunk) {
    std::vector<Message> sends;
    for (size_t i = 0; i < part.group.size(); ++i)
      if (i != part.position)
        sends.push_back({part.group[i],
                         src + (part.slices[i].begin + done) * bytes,
                         left(part.slices[i], done) * bytes});
    int64_t mine = left(own, done);
    exchange(rank, lane, sends, toScratch(mine));
    int64_t at = (own.begin + done) * bytes;
    if (mine > 0)
      reduceTerms(rank, lane, src + at, dst + at, mine);
  }
  std::vector<Message> sends, receives;
  for (size_t i = 0; i < part.group.size(); ++i)
    if (i != part.position) {
      const Slice &its = part.slices[i];
      sends.push_back(
          {part.group[i], dst + own.begin * bytes, own.size() * bytes});
      receives.push_back(
          {part.group[i], dst + its.begin * bytes, its.size() * bytes});
    }
  exchange(rank, lane, sends, receives);
}

/// Puts a transfer on the stream.
void Implementation::put(Rank &rank, const Lane &lane, const char *src,
                         char *dst) {
  const Part &part = lane.part;
  const Collective &collective = part.collective;
  if (collective.isAllReduce())
    return reduceAll(rank, lane, src, dst);
  cuda::Stream stream = rank.gpu->communication;
  char *scratch = communicators->scratch(rank.number);
  auto placeOf = [&](const Part::Message &message, const char *buffer) {
    return message.direct ? buffer + *message.direct
                          : scratch + message.staging;
  };
  std::vector<Message> sends, receives;
  for (const Part::Message &message : part.sends) {
    sends.push_back({message.peer, placeOf(message, src), message.bytes});
    if (message.direct)
      continue;
    const Shape &extents = collective.srcShapes.at(part.rank);
    Shape origin(extents.size(), 0);
    for (const Part::Piece &piece : message.pieces) {
      BoxSource source = {src, &extents, piece.start};
      rank.kernels.run(collective.dtype, std::nullopt,
                       scratch + message.staging + piece.offset, *piece.size,
                       origin, *piece.size, {&source, 1}, stream);
    }
  }
  for (const Part::Message &message : part.receives)
    receives.push_back({message.peer, placeOf(message, dst), message.bytes});
  exchange(rank, lane, std::move(sends), std::move(receives));
  part.forEachAssembly(
      src, [&](const Part::Message &message) { return placeOf(message, dst); },
      [&](const Cell &cell, std::span<const BoxSource> sources) {
        rank.kernels.run(collective.dtype, collective.reduction, dst,
                         collective.dstShapes.at(part.rank), cell.dstStart,
                         cell.size, sources, stream);
      });
}

Ticket Implementation::start(int64_t number, int64_t channel, const void *src,
                             void *dst) {
  Rank &rank = *ranks[number];
  rank.gpu->attach();
  stopIfAborted(rank);
  dropDone(rank);
  put(rank, *rank.lanes.at(channel), static_cast<const char *>(src),
      static_cast<char *>(dst));
  Open transfer = {rank.starts++, channel};
  if (rank.unused.empty()) {
    transfer.done = rank.gpu->newEvent();
  } else {
    transfer.done = rank.unused.back();
    rank.unused.pop_back();
  }
  rank.open.push_back(transfer);
  rank.gpu->record(transfer.done, rank.gpu->communication);
  return {channel, transfer.number};
}

/// Forgets the first transfers, as far as they are done and nobody has to wait
/// for them any more.
void Implementation::dropDone(Rank &rank) {
  while (!rank.open.empty() && rank.open.front().isOrdered &&
         rank.gpu->isReached(rank.open.front().done)) {
    rank.unused.push_back(rank.open.front().done);
    rank.open.pop_front();
  }
}

Open &Implementation::find(Rank &rank, const Ticket &ticket) {
  for (Open &transfer : rank.open)
    if (transfer.number == ticket.number && !transfer.isOrdered)
      return transfer;
  throw Error("transfer " + std::to_string(ticket.number) +
              " was not started, or has been waited for");
}

Traffic Implementation::order(int64_t number, const Ticket &ticket,
                              cuda::Stream stream) {
  Rank &rank = *ranks[number];
  stopIfAborted(rank);
  Open &transfer = find(rank, ticket);
  rank.gpu->wait(stream, transfer.done);
  transfer.isOrdered = true;
  return rank.lanes.at(ticket.channel)->part.traffic;
}

bool Implementation::test(int64_t number, const Ticket &ticket) {
  Rank &rank = *ranks[number];
  rank.gpu->attach();
  watch(rank);
  return rank.gpu->isReached(find(rank, ticket).done);
}

Traffic Implementation::wait(int64_t number, const Ticket &ticket) {
  Rank &rank = *ranks[number];
  rank.gpu->attach();
  auto begin = std::chrono::steady_clock::now();
  stopIfAborted(rank);
  Open &transfer = find(rank, ticket);
  rank.gpu->synchronize(transfer.done);
  transfer.isOrdered = true;
  Traffic traffic = rank.lanes.at(ticket.channel)->part.traffic;
  traffic.waitedSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  return traffic;
}

} // namespace

std::shared_ptr<nccl::Communicators>
createCommunicators(const cuda::Libraries &libraries,
                    std::vector<std::shared_ptr<cuda::Gpu>> gpus,
                    Exchange exchange) {
  return std::make_shared<nccl::Communicators>(libraries, std::move(gpus),
                                               std::move(exchange));
}

std::unique_ptr<NcclTransport>
createNcclTransport(const Channels &channels,
                    std::shared_ptr<nccl::Communicators> communicators) {
  return std::make_unique<Implementation>(channels, std::move(communicators));
}

} // namespace whale::runtime
