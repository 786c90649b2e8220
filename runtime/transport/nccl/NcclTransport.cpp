//===- NcclTransport.cpp - Ranks on GPUs, by NCCL -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: posts of the ranks' parts of channels. Out: for each a copy to the GPU of
// what it sends, one group of NCCL's sends and receives, and a copy of what it
// has received, all on the rank's communication stream, whose order is that of
// the rank's queue. `start` puts them there and returns; `wait` looks until the
// last copy is there, and completes the destination.
//
// NCCL moves bytes and reduces nothing: in an all-reduce each rank sends all to
// the others of its group and reduces all in the group's order, as the ranks of
// one process do, so that the bits are the same. The host reduces.
//
// No call blocks: a communicator is asked how far it is (ready), so that an
// abort, an error of NCCL and a lost peer end each wait. Each rank aborts its
// own communicator when it finds the run aborted, the last ones `settle` does;
// `reset` makes new ones.
//
// Costs: memory on the GPU and pinned for what a transfer sends and receives,
// kept for later ones; (n - 1) times the data in an all-reduce of n ranks.
//
//===----------------------------------------------------------------------===//

#include "transport/nccl/NcclTransport.h"

#include "cuda/Gpu.h"
#include "transport/message/Part.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>

namespace whale::runtime {
namespace {

using message::Part;

/// Memory of a transfer, as much on the GPU as pinned, at the same offsets.
struct Slot {
  char *pinned = nullptr;
  cuda::Address memory = 0;
  int64_t bytes = 0;
  cuda::EventHandle done = nullptr;
};

struct Open {
  int64_t number = 0;
  const Part *part = nullptr;
  const char *src = nullptr;
  char *dst = nullptr;
  Slot slot;
  /// Where what is received begins, in the order of the peers.
  std::vector<int64_t> received;
  Traffic traffic;
  bool isDone = false;
};

struct Rank {
  std::unique_ptr<cuda::Gpu> gpu;
  cuda::Communicator communicator = nullptr;
  std::map<int64_t, std::unique_ptr<Part>> parts;
  std::deque<Open> open;
  std::multimap<int64_t, Slot> unused;
  int64_t starts = 0;
};

class NcclTransport : public Transport {
public:
  NcclTransport(const format::Program &program,
                const cuda::Libraries &libraries, const cuda::Nccl &nccl);
  ~NcclTransport() override;

  int64_t addChannel(std::shared_ptr<const Collective> collective) override {
    added.push_back(std::move(collective));
    return firstFree(program) + static_cast<int64_t>(added.size()) - 1;
  }
  Ticket start(int64_t rank, int64_t channel, const void *src,
               void *dst) override;
  bool test(int64_t rank, const Ticket &ticket) override;
  Traffic wait(int64_t rank, const Ticket &ticket) override;
  void finish(int64_t) override {}
  void abort() override { isAborted = true; }
  bool aborted() const override { return isAborted; }
  bool settle() override;
  void reset() override;

private:
  void connect();
  void ready(int64_t rank);
  void check(int64_t rank, const char *function, cuda::NcclStatus status);
  void stopIfAborted(int64_t rank);
  void abandon(Rank &rank);
  const Part &partOf(int64_t rank, int64_t channel);
  Slot take(Rank &rank, int64_t bytes);
  static void give(Rank &rank, Slot slot) {
    if (slot.pinned)
      rank.unused.emplace(slot.bytes, slot);
  }
  void exchange(int64_t rank, Open &transfer);
  void complete(Open &transfer);
  bool progress(int64_t rank, Open &transfer);
  Open &find(int64_t rank, const Ticket &ticket);

  const format::Program &program;
  const cuda::Nccl &nccl;
  std::vector<std::shared_ptr<const Collective>> added;
  std::vector<Rank> ranks;
  std::atomic<bool> isAborted = false;
};

constexpr int64_t alignment = 256;
int64_t aligned(int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

NcclTransport::NcclTransport(const format::Program &program,
                             const cuda::Libraries &libraries,
                             const cuda::Nccl &nccl)
    : program(program), nccl(nccl), ranks(program.ranks.size()) {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    ranks[rank].gpu =
        std::make_unique<cuda::Gpu>(libraries, static_cast<int>(rank));
  connect();
}

/// Makes the communicators, all at once: none is ready before all have come.
void NcclTransport::connect() {
  cuda::CommunicatorId id;
  check(0, nccl.getUniqueId.symbol, nccl.getUniqueId.function(&id));
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].gpu->attach();
    cuda::CommunicatorConfig config;
    check(static_cast<int64_t>(rank), nccl.commInitRankConfig.symbol,
          nccl.commInitRankConfig.function(&ranks[rank].communicator,
                                           static_cast<int>(ranks.size()), id,
                                           static_cast<int>(rank), &config));
  }
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    ready(static_cast<int64_t>(rank));
}

NcclTransport::~NcclTransport() {
  for (Rank &rank : ranks) {
    try {
      rank.gpu->attach();
      abandon(rank);
      for (Open &transfer : rank.open)
        give(rank, transfer.slot);
    } catch (const Error &) {
      // What fails here has failed before, where it was said.
    }
    for (auto &[bytes, slot] : rank.unused) {
      rank.gpu->driver.eventDestroy.function(slot.done);
      rank.gpu->driver.memFree.function(slot.memory);
      rank.gpu->driver.memFreeHost.function(slot.pinned);
    }
  }
}

void NcclTransport::check(int64_t rank, const char *function,
                          cuda::NcclStatus status) {
  if (!status || status == cuda::kNcclInProgress)
    return;
  const char *last = nccl.getLastError.function(ranks[rank].communicator);
  throw Error("rank " + std::to_string(rank) + ": NCCL: " + function + ": " +
              nccl.getErrorString.function(status) +
              (last && *last ? " (" + std::string(last) + ")" : ""));
}

/// Returns when the communicator may be used.
void NcclTransport::ready(int64_t rank) {
  for (;;) {
    stopIfAborted(rank);
    cuda::NcclStatus status = 0;
    check(rank, nccl.commGetAsyncError.symbol,
          nccl.commGetAsyncError.function(ranks[rank].communicator, &status));
    check(rank, "a communicator", status);
    if (!status)
      return;
    std::this_thread::yield();
  }
}

/// Ends what is on the rank's streams.
void NcclTransport::abandon(Rank &rank) {
  if (rank.communicator)
    nccl.commAbort.function(std::exchange(rank.communicator, nullptr));
  rank.gpu->synchronize(rank.gpu->communication);
}

void NcclTransport::stopIfAborted(int64_t rank) {
  if (!isAborted)
    return;
  abandon(ranks[rank]);
  throw Aborted();
}

bool NcclTransport::settle() {
  if (isAborted)
    for (Rank &rank : ranks) {
      rank.gpu->attach();
      abandon(rank);
    }
  return true;
}

void NcclTransport::reset() {
  for (Rank &rank : ranks) {
    for (Open &transfer : rank.open)
      give(rank, transfer.slot);
    rank.open.clear();
    rank.starts = 0;
  }
  if (!isAborted)
    return;
  settle();
  isAborted = false;
  connect();
}

const Part &NcclTransport::partOf(int64_t rank, int64_t channel) {
  std::unique_ptr<Part> &part = ranks[rank].parts[channel];
  if (!part) {
    int64_t other = channel - firstFree(program);
    part = std::make_unique<Part>(other < 0 ? *program.channels.at(channel)
                                            : *added.at(other),
                                  channel, rank);
  }
  return *part;
}

Slot NcclTransport::take(Rank &rank, int64_t bytes) {
  auto it = rank.unused.lower_bound(bytes);
  if (it != rank.unused.end()) {
    Slot slot = it->second;
    rank.unused.erase(it);
    return slot;
  }
  Slot slot;
  slot.bytes = aligned(std::max<int64_t>(bytes, 1));
  slot.memory = rank.gpu->allocate(slot.bytes);
  slot.pinned = static_cast<char *>(rank.gpu->allocatePinned(slot.bytes));
  slot.done = rank.gpu->newEvent();
  return slot;
}

/// Puts a transfer's copies and its group on the stream.
void NcclTransport::exchange(int64_t rank, Open &transfer) {
  struct Message {
    int64_t peer, offset, bytes;
  };
  const Part &part = *transfer.part;
  const Collective &collective = part.collective;
  std::vector<Message> sends, receives;
  int64_t sent = 0, end = 0;
  int64_t elementBytes = byteSize(collective.dtype);
  if (collective.isAllReduce()) {
    int64_t bytes = part.slices.back().end * elementBytes;
    end = sent = aligned(bytes);
    for (int64_t peer : part.peers) {
      sends.push_back({peer, 0, bytes});
      receives.push_back({peer, end, bytes});
      end += aligned(bytes);
    }
  } else {
    for (const Part::Message &message : part.sends) {
      sends.push_back({message.peer, end, message.bytes});
      end += aligned(message.bytes);
    }
    sent = end;
    for (const Part::Message &message : part.receives) {
      receives.push_back({message.peer, end, message.bytes});
      end += aligned(message.bytes);
    }
  }
  std::erase_if(sends, [](const Message &each) { return each.bytes == 0; });
  Rank &self = ranks[rank];
  transfer.slot = take(self, end);
  for (const Message &message : receives) {
    transfer.received.push_back(message.offset);
    transfer.traffic.received += message.bytes;
  }
  for (const Message &message : sends)
    transfer.traffic.sent += message.bytes;
  std::erase_if(receives, [](const Message &each) { return each.bytes == 0; });
  if (sends.empty() && receives.empty()) {
    self.gpu->record(transfer.slot.done, self.gpu->communication);
    return;
  }

  char *pinned = transfer.slot.pinned;
  if (collective.isAllReduce())
    std::memcpy(pinned, transfer.src, static_cast<size_t>(sends[0].bytes));
  int64_t offset = 0;
  for (const Part::Message &message : part.sends) {
    part.pack(message, transfer.src, pinned + offset);
    offset += aligned(message.bytes);
  }

  cuda::Stream stream = self.gpu->communication;
  auto at = [&](int64_t from) {
    return reinterpret_cast<char *>(transfer.slot.memory) + from;
  };
  if (!sends.empty())
    self.gpu->copy(at(0), pinned, sent, stream);
  ready(rank);
  check(rank, nccl.groupStart.symbol, nccl.groupStart.function());
  cuda::NcclStatus status = 0;
  auto keep = [&](cuda::NcclStatus next) {
    if (!status || status == cuda::kNcclInProgress)
      status = next;
  };
  for (const Message &message : sends)
    keep(nccl.send.function(at(message.offset), size_t(message.bytes),
                            cuda::kNcclBytes, int(message.peer),
                            self.communicator, stream));
  for (const Message &message : receives)
    keep(nccl.recv.function(at(message.offset), size_t(message.bytes),
                            cuda::kNcclBytes, int(message.peer),
                            self.communicator, stream));
  // Also where a call has failed: a group is ended.
  keep(nccl.groupEnd.function());
  check(rank, "a group of sends and receives", status);
  ready(rank);
  if (!receives.empty())
    self.gpu->copy(pinned + sent, at(sent), end - sent, stream);
  self.gpu->record(transfer.slot.done, stream);
}

/// Fills the destination from what is there.
void NcclTransport::complete(Open &transfer) {
  const Part &part = *transfer.part;
  const Collective &collective = part.collective;
  const char *pinned = transfer.slot.pinned;
  if (collective.isAllReduce()) {
    if (part.peers.empty()) {
      if (transfer.dst != transfer.src)
        std::copy_n(transfer.src,
                    part.slices.back().end * byteSize(collective.dtype),
                    transfer.dst);
      return;
    }
    part.reduceSources(transfer.src, transfer.dst, [&](size_t peer) {
      return pinned + transfer.received[peer];
    });
    return;
  }
  for (size_t i = 0; i < part.receives.size(); ++i)
    if (const Part::Message &message = part.receives[i]; message.direct)
      std::memcpy(transfer.dst + *message.direct, pinned + transfer.received[i],
                  static_cast<size_t>(message.bytes));
  part.assemble(transfer.src, transfer.dst, [&](const Part::Message &message) {
    return pinned + transfer.received[&message - &part.receives[0]];
  });
}

Ticket NcclTransport::start(int64_t rank, int64_t channel, const void *src,
                            void *dst) {
  Rank &self = ranks[rank];
  self.gpu->attach();
  stopIfAborted(rank);
  // Kept before it begins: what fails on the way is given back by `reset`.
  Open &transfer = self.open.emplace_back();
  transfer.number = self.starts++;
  transfer.part = &partOf(rank, channel);
  transfer.src = static_cast<const char *>(src);
  transfer.dst = static_cast<char *>(dst);
  exchange(rank, transfer);
  return {channel, transfer.number};
}

Open &NcclTransport::find(int64_t rank, const Ticket &ticket) {
  for (Open &transfer : ranks[rank].open)
    if (transfer.number == ticket.number)
      return transfer;
  throw Error("transfer " + std::to_string(ticket.number) +
              " was not started, or has been waited for");
}

/// Whether the transfer is done.
bool NcclTransport::progress(int64_t rank, Open &transfer) {
  stopIfAborted(rank);
  if (transfer.isDone)
    return true;
  Rank &self = ranks[rank];
  cuda::NcclStatus status = 0;
  check(rank, nccl.commGetAsyncError.symbol,
        nccl.commGetAsyncError.function(self.communicator, &status));
  check(rank, "a communicator", status);
  cuda::Status there = self.gpu->driver.eventQuery.function(transfer.slot.done);
  if (there == cuda::kNotReady)
    return false;
  self.gpu->check(self.gpu->driver.eventQuery.symbol, there);
  complete(transfer);
  return transfer.isDone = true;
}

bool NcclTransport::test(int64_t rank, const Ticket &ticket) {
  ranks[rank].gpu->attach();
  return progress(rank, find(rank, ticket));
}

Traffic NcclTransport::wait(int64_t rank, const Ticket &ticket) {
  Rank &self = ranks[rank];
  self.gpu->attach();
  Open &transfer = find(rank, ticket);
  auto begin = std::chrono::steady_clock::now();
  while (!progress(rank, transfer))
    std::this_thread::yield();
  Traffic traffic = transfer.traffic;
  traffic.waitedSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  give(self, transfer.slot);
  std::erase_if(self.open,
                [&](const Open &each) { return each.number == ticket.number; });
  return traffic;
}

} // namespace

std::unique_ptr<Transport> createNcclTransport(const format::Program &program,
                                               const cuda::Libraries &libraries,
                                               const cuda::Nccl &nccl) {
  return std::make_unique<NcclTransport>(program, libraries, nccl);
}

} // namespace whale::runtime
