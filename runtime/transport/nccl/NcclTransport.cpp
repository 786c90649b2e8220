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
// are on GPUs of their own, is made in the lists' order; messages without a
// channel have one of all ranks. Only one stream of a rank uses them, so that
// none waits for another in a circle.
//
// Whoever waits for the GPU asks whether the run was aborted, or NCCL has
// failed (watch). Each rank aborts its own communicators when it finds the run
// aborted, the last ones `settle` does; `reset` makes new ones.
//
// Costs: memory on the GPU for what the largest transfer stages, taken when its
// channel is added, and before a run if it was given back since; an all-reduce
// stages at most `chunkBytes` at a time.
//
//===----------------------------------------------------------------------===//

#include "transport/nccl/NcclTransport.h"

#include "cuda/BoxKernels.h"
#include "transport/ChannelNumbers.h"
#include "transport/nccl/Communicators.h"
#include "transport/nccl/Lanes.h"
#include "transport/nccl/Scratch.h"

#include <algorithm>
#include <chrono>
#include <deque>

namespace whale::runtime {
namespace {

using message::Part;
using nccl::aligned;
using nccl::Lane;
using nccl::Message;

struct Open {
  int64_t number = 0;
  /// As it was added; -1 for messages without one.
  int64_t channel = 0;
  Traffic traffic;
  cuda::EventHandle done = nullptr;
  bool isOrdered = false;
};

struct Rank {
  Rank(std::shared_ptr<cuda::Gpu> given, int64_t number)
      : gpu(std::move(given)), number(number), kernels(*gpu), scratch(*gpu) {}
  ~Rank();
  Rank(const Rank &) = delete;
  Rank &operator=(const Rank &) = delete;

  const std::shared_ptr<cuda::Gpu> gpu;
  const int64_t number;
  cuda::BoxKernels kernels;
  nccl::Scratch scratch;
  std::map<int64_t, std::unique_ptr<Lane>> lanes;
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
  Implementation(const cuda::Libraries &libraries,
                 std::vector<std::shared_ptr<cuda::Gpu>> gpus,
                 Exchange exchange);
  /// What is on the streams ends with the communicators, before the memory goes
  /// that it uses.
  ~Implementation() override {
    endWatch();
    communicators.end();
  }

  int64_t addChannels(const Channels &channels, int64_t end) override;
  void dropChannels(int64_t first) override { numbers.drop(first); }
  bool carries(int64_t channel) const override {
    return carried.contains(channel);
  }
  const std::string &refusal(int64_t first) const override {
    return programs.at(first).refusal;
  }
  bool hasSharedGpus() const override { return areShared; }
  bool carriesMessages() const override {
    return nccl::sharingOf(everyone, communicators.gpuOfRanks()).empty();
  }
  std::string connectMessages() override;
  Ticket start(int64_t rank, int64_t channel,
               std::span<const PartBuffers> parts) override;
  Ticket startMessages(int64_t rank, std::span<const RankMessage> sends,
                       std::span<const RankMessage> receives) override;
  bool test(int64_t rank, const Ticket &ticket) override;
  Traffic wait(int64_t rank, const Ticket &ticket) override;
  Traffic order(int64_t rank, const Ticket &ticket,
                cuda::Stream stream) override;
  std::optional<int64_t> awaited(int64_t rank) const override {
    int64_t channel = ranks[rank] ? ranks[rank]->awaited.load() : -1;
    return channel < 0 ? std::nullopt : std::optional(channel);
  }
  int64_t scratchBytes(int64_t rank) const override {
    return ranks[rank] ? ranks[rank]->scratch.bytes() : 0;
  }
  void reserve(int64_t rank, int64_t first) override {
    const std::vector<int64_t> &needs = programs.at(first).scratchBytes;
    ranks[rank]->scratch.reserve(needs[rank]);
  }
  bool giveBack(int64_t rank) override {
    return ranks[rank] && ranks[rank]->scratch.giveBack();
  }
  void finish(int64_t) override {}
  void abort() override { communicators.stop = true; }
  bool aborted() const override { return communicators.stop; }
  bool settle() override;
  void reset() override;

private:
  /// What came with a call of addChannels.
  struct Added {
    Groups groups;
    std::string refusal;
    /// What the largest transfer of each rank that is here stages.
    std::vector<int64_t> scratchBytes = {};
  };

  Added findChannels(int64_t first, const Channels &channels);
  std::string connect(const Groups &groups);
  void watchAll();
  void endWatch();
  int64_t prepare(Rank &rank, int64_t first, const Channels &channels);
  void watch(Rank &rank);
  void stopIfAborted(Rank &rank);
  void dropDone(Rank &rank);
  void put(Rank &rank, const Lane &lane, Part::Buffers buffers);
  void reduceAll(Rank &rank, const Lane &lane, const char *src, char *dst);
  void reduceTerms(Rank &rank, const Lane &lane, const char *own, char *dst,
                   int64_t count);
  void exchange(Rank &rank, const Lane &lane, std::vector<Message> sends,
                std::vector<Message> receives) {
    if (lane.group)
      communicators.put(rank.number, *lane.group, lane.part.channel,
                        std::move(sends), std::move(receives));
  }
  int64_t open(Rank &rank, int64_t channel, const Traffic &traffic);
  Open &find(Rank &rank, const Ticket &ticket);

  nccl::Communicators communicators;
  ChannelNumbers numbers;
  /// By the numbers of their first channels.
  std::map<int64_t, Added> programs;
  std::set<int64_t> carried;
  Group everyone;
  bool areShared = false, isWatching = false, hasMessages = false;
  /// Null for those that are not here.
  std::vector<std::unique_ptr<Rank>> ranks;
};

Implementation::Implementation(const cuda::Libraries &libraries,
                               std::vector<std::shared_ptr<cuda::Gpu>> gpus,
                               Exchange exchange)
    : communicators(libraries, std::move(gpus), std::move(exchange)) {
  std::set<std::string> known;
  for (const std::string &gpu : communicators.gpuOfRanks())
    areShared |= !gpu.empty() && !known.insert(gpu).second;
  for (const std::shared_ptr<cuda::Gpu> &gpu : communicators.localGpus()) {
    auto number = static_cast<int64_t>(ranks.size());
    everyone.push_back(number);
    ranks.push_back(gpu ? std::make_unique<Rank>(gpu, number) : nullptr);
  }
  watchAll();
}

int64_t Implementation::addChannels(const Channels &channels, int64_t end) {
  int64_t first = numbers.add(channels, end);
  try {
    Added &added =
        programs.emplace(first, findChannels(first, channels)).first->second;
    added.scratchBytes.resize(ranks.size());
    for (std::unique_ptr<Rank> &rank : ranks)
      if (rank)
        added.scratchBytes[rank->number] = prepare(*rank, first, channels);
    if (std::string refusal = connect(added.groups); !refusal.empty())
      throw Error(refusal);
  } catch (...) {
    numbers.drop(first);
    throw;
  }
  return first;
}

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

/// Which groups and channels go this way.
Implementation::Added Implementation::findChannels(int64_t first,
                                                   const Channels &channels) {
  const std::vector<std::string> &gpuOfRank = communicators.gpuOfRanks();
  Added added;
  for (const auto &[number, collective] : channels) {
    std::string why = nccl::refusalOf(*collective, gpuOfRank);
    if (!why.empty()) {
      if (added.refusal.empty())
        added.refusal =
            collective->kind + " " + std::to_string(number) + ": " + why;
      continue;
    }
    carried.insert(first + number);
    added.groups.insert(collective->groups.begin(), collective->groups.end());
  }
  return added;
}

/// Finds what a rank does in each channel, and takes what it needs for it, so
/// that nothing is taken in a run. Returns what it stages at most.
int64_t Implementation::prepare(Rank &rank, int64_t first,
                                const Channels &channels) {
  rank.gpu->attach();
  int64_t scratchBytes = 0;
  for (const auto &[number, shared] : channels) {
    const Collective &collective = *shared;
    if (!carries(first + number) ||
        !std::ranges::count(collective.participants, rank.number))
      continue;
    std::unique_ptr<Lane> &lane = rank.lanes[first + number];
    lane = std::make_unique<Lane>(collective, number, rank.number);
    scratchBytes = std::max(scratchBytes, lane->scratchBytes);
    for (const ChannelPart &tensor : collective.parts) {
      rank.kernels.prepare(tensor.dtype, std::nullopt);
      if (tensor.reduction)
        rank.kernels.prepare(tensor.dtype, tensor.reduction);
    }
  }
  rank.scratch.reserve(scratchBytes);
  return scratchBytes;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// What whoever waits for the rank's GPU has to know.
void Implementation::watch(Rank &rank) {
  stopIfAborted(rank);
  dropDone(rank);
  rank.awaited = rank.open.empty() ? -1 : rank.open.front().channel;
  communicators.check(rank.number, awaited(rank.number));
}

void Implementation::stopIfAborted(Rank &rank) {
  if (!aborted())
    return;
  communicators.abandon({{rank.number}});
  throw Aborted();
}

std::string Implementation::connect(const Groups &groups) {
  try {
    return communicators.connect(groups);
  } catch (...) {
    abort();
    throw;
  }
}

std::string Implementation::connectMessages() {
  if (communicators.has(everyone))
    return {};
  std::string refusal = connect({everyone});
  hasMessages |= refusal.empty();
  return refusal;
}

bool Implementation::settle() {
  if (aborted())
    communicators.end();
  endWatch();
  return true;
}

void Implementation::reset() {
  settle();
  watchAll();
  communicators.stop = false;
  for (std::unique_ptr<Rank> &rank : ranks) {
    if (!rank)
      continue;
    for (const Open &transfer : rank->open)
      rank->unused.push_back(transfer.done);
    rank->open.clear();
    rank->starts = 0;
    rank->awaited = -1;
  }
  numbers.clean([this](int64_t number) {
    carried.erase(number);
    for (std::unique_ptr<Rank> &rank : ranks)
      if (rank)
        rank->lanes.erase(number);
  });
  std::erase_if(programs,
                [this](const auto &each) { return !numbers.has(each.first); });
  if (!communicators.areEnded())
    return;
  Groups groups;
  for (const auto &[first, added] : programs)
    groups.insert(added.groups.begin(), added.groups.end());
  if (hasMessages)
    groups.insert(everyone);
  if (std::string refusal = connect(groups); !refusal.empty()) {
    abort();
    throw Error(refusal);
  }
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// Reduces elements of the rank's own source and as many of each peer, which
/// are in the scratch memory one behind the other.
void Implementation::reduceTerms(Rank &rank, const Lane &lane, const char *own,
                                 char *dst, int64_t count) {
  const Part &part = lane.part;
  const ChannelPart &tensor = part.collective.parts.front();
  Shape shape = {count}, origin = {0};
  int64_t pitch = aligned(count * byteSize(tensor.dtype));
  std::vector<BoxSource> terms;
  const char *next = rank.scratch.data();
  for (size_t i = 0; i < part.group.size(); ++i) {
    bool isOwn = i == part.position;
    terms.push_back({isOwn ? own : next, &shape, &origin});
    next += isOwn ? 0 : pitch;
  }
  rank.kernels.run(tensor.dtype, tensor.reduction, dst, shape, origin, shape,
                   terms, rank.gpu->communication);
}

void Implementation::reduceAll(Rank &rank, const Lane &lane, const char *src,
                               char *dst) {
  const Part &part = lane.part;
  int64_t bytes = byteSize(part.collective.parts.front().dtype);
  int64_t count = part.slices.back().end;
  if (part.peers.empty() || count == 0) {
    if (src != dst)
      rank.gpu->copy(dst, src, count * bytes, rank.gpu->communication);
    return;
  }
  auto toScratch = [&](int64_t elements) {
    std::vector<Message> receives;
    char *next = rank.scratch.data();
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
void Implementation::put(Rank &rank, const Lane &lane, Part::Buffers buffers) {
  const Part &part = lane.part;
  const Collective &collective = part.collective;
  if (collective.isAllReduce())
    return reduceAll(rank, lane, static_cast<const char *>(buffers[0].src),
                     static_cast<char *>(buffers[0].dst));
  cuda::Stream stream = rank.gpu->communication;
  char *scratch = rank.scratch.data();
  auto placeOf = [&](const Part::Message &message, bool isReceived) {
    const char *data = scratch + message.staging;
    if (!message.direct)
      return data;
    const PartBuffers &its = buffers[message.directPart()];
    data = static_cast<const char *>(isReceived ? its.dst : its.src);
    return data + *message.direct;
  };
  std::vector<Message> sends, receives;
  for (const Part::Message &message : part.sends) {
    sends.push_back(
        {message.peer, placeOf(message, /*isReceived=*/false), message.bytes});
    if (message.direct)
      continue;
    for (const Part::Piece &piece : message.pieces) {
      const ChannelPart &tensor = collective.parts[piece.part];
      const Shape &extents = tensor.srcShapes.at(part.rank);
      Shape origin(extents.size(), 0);
      BoxSource source = {buffers[piece.part].src, &extents, piece.start};
      rank.kernels.run(tensor.dtype, std::nullopt,
                       scratch + message.staging + piece.offset, *piece.size,
                       origin, *piece.size, {&source, 1}, stream);
    }
  }
  for (const Part::Message &message : part.receives)
    receives.push_back(
        {message.peer, placeOf(message, /*isReceived=*/true), message.bytes});
  exchange(rank, lane, std::move(sends), std::move(receives));
  part.forEachAssembly(
      buffers,
      [&](const Part::Message &message) {
        return placeOf(message, /*isReceived=*/true);
      },
      [&](size_t number, const Cell &cell, std::span<const BoxSource> sources) {
        const ChannelPart &tensor = collective.parts[number];
        rank.kernels.run(tensor.dtype, tensor.reduction,
                         static_cast<char *>(buffers[number].dst),
                         tensor.dstShapes.at(part.rank), cell.dstStart,
                         cell.size, sources, stream);
      });
}

/// Notes the end of what is on the stream as that of a transfer.
int64_t Implementation::open(Rank &rank, int64_t channel,
                             const Traffic &traffic) {
  Open transfer = {rank.starts++, channel, traffic};
  if (rank.unused.empty()) {
    transfer.done = rank.gpu->newEvent();
  } else {
    transfer.done = rank.unused.back();
    rank.unused.pop_back();
  }
  rank.open.push_back(transfer);
  rank.gpu->record(transfer.done, rank.gpu->communication);
  return transfer.number;
}

Ticket Implementation::start(int64_t number, int64_t channel,
                             std::span<const PartBuffers> parts) {
  Rank &rank = *ranks[number];
  rank.gpu->attach();
  stopIfAborted(rank);
  dropDone(rank);
  const Lane &lane = *rank.lanes.at(channel);
  put(rank, lane, parts);
  return {channel, open(rank, lane.part.channel, lane.part.traffic)};
}

Ticket Implementation::startMessages(int64_t number,
                                     std::span<const RankMessage> sends,
                                     std::span<const RankMessage> receives) {
  Rank &rank = *ranks[number];
  rank.gpu->attach();
  stopIfAborted(rank);
  dropDone(rank);
  Traffic traffic;
  auto messagesOf = [](std::span<const RankMessage> given, int64_t &bytes) {
    std::vector<Message> messages;
    for (const RankMessage &each : given) {
      messages.push_back({each.peer, each.data, each.bytes});
      bytes += each.bytes;
    }
    return messages;
  };
  std::vector<Message> out = messagesOf(sends, traffic.sent),
                       in = messagesOf(receives, traffic.received);
  communicators.put(number, everyone, std::nullopt, std::move(out),
                    std::move(in));
  return {Ticket::ofMessages, open(rank, Ticket::ofMessages, traffic)};
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
  return transfer.traffic;
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
  Traffic traffic = transfer.traffic;
  traffic.waitedSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  return traffic;
}

} // namespace

std::unique_ptr<NcclTransport>
createNcclTransport(const cuda::Libraries &libraries,
                    std::vector<std::shared_ptr<cuda::Gpu>> gpus,
                    Exchange exchange) {
  return std::make_unique<Implementation>(libraries, std::move(gpus),
                                          std::move(exchange));
}

} // namespace whale::runtime
