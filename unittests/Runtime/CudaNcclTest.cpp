//===- CudaNcclTest.cpp - What the NCCL of a test machine tells -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The NCCL of the test machine, on which the tests of NCCL's transport rely:
// that groups of sends and receives of ranks meet, whatever order they run in,
// and that wrong uses are reported. Ranks are threads, each with a GPU of the
// machine.
//
// One test has 8 seeds, which decide the order of operations; each byte of the
// results is compared. The others make one mistake each, or lose a rank, and
// expect the fault or the error that the real NCCL has. A hang means that an
// abort does not free those who wait.
//
//===----------------------------------------------------------------------===//

#include "cuda/Gpu.h"
#include "cuda/test/Machine.h"

#include <algorithm>
#include <barrier>
#include <functional>
#include <gtest/gtest.h>
#include <thread>

namespace whale::runtime::cuda {
namespace {

using test::Machine;

/// A rank of a communicator, on the GPU of its number.
class Rank {
public:
  Rank(Machine &machine, CommunicatorId id, int ranks, int rank)
      : gpu(machine.libraries(), rank), nccl(machine.nccl()), rank(rank),
        ranks(ranks) {
    CommunicatorConfig config;
    NcclStatus status = nccl.commInitRankConfig.function(&communicator, ranks,
                                                         id, rank, &config);
    EXPECT_TRUE(status == 0 || status == kNcclInProgress);
    EXPECT_EQ(settle(), 0);
  }

  /// What the communicator has come to.
  NcclStatus settle() const {
    NcclStatus status = kNcclInProgress;
    while (status == kNcclInProgress) {
      nccl.commGetAsyncError.function(communicator, &status);
      std::this_thread::yield();
    }
    return status;
  }
  void send(Address data, size_t bytes, int peer) const {
    nccl.send.function(reinterpret_cast<void *>(data), bytes, kNcclBytes, peer,
                       communicator, gpu.communication);
  }
  void receive(Address data, size_t bytes, int peer) const {
    nccl.recv.function(reinterpret_cast<void *>(data), bytes, kNcclBytes, peer,
                       communicator, gpu.communication);
  }
  void end() const {
    nccl.commFinalize.function(communicator);
    settle();
    EXPECT_EQ(nccl.commDestroy.function(communicator), 0);
  }
  void abort() const { nccl.commAbort.function(communicator); }

  Gpu gpu;
  const Nccl &nccl;
  const int rank, ranks;
  Communicator communicator = nullptr;
};

/// Runs a job on a thread for each rank. None begins before all communicators
/// are ready: an error of one would be what another finds instead.
void onRanks(Machine &machine, int ranks,
             const std::function<void(Rank &)> &job) {
  CommunicatorId id;
  machine.nccl().getUniqueId.function(&id);
  std::barrier ready(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Rank own(machine, id, ranks, rank);
      ready.arrive_and_wait();
      job(own);
    });
  for (std::thread &thread : threads)
    thread.join();
}

bool has(const std::vector<std::string> &faults, const char *text) {
  return std::ranges::any_of(faults, [&](const std::string &fault) {
    return fault.find(text) != fault.npos;
  });
}

class CudaNccl : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, CudaNccl, testing::Range<uint64_t>(0, 8));

TEST_P(CudaNccl, GroupsOfUnevenSizesMeet) {
  constexpr int ranks = 4, rounds = 3;
  Machine machine({.seed = GetParam(), .gpus = ranks});
  onRanks(machine, ranks, [&](Rank &own) {
    // Rank r sends r + p + 1 bytes to rank p.
    auto bytesOf = [](int from, int to) { return size_t(from + to + 1); };
    Address out = own.gpu.allocate(1024), in = own.gpu.allocate(1024);
    auto *pinned = static_cast<uint8_t *>(own.gpu.allocatePinned(2048));
    for (int round = 0; round < rounds; ++round) {
      std::fill_n(pinned, 1024, uint8_t(16 * round + own.rank));
      own.gpu.copy(reinterpret_cast<void *>(out), pinned, 1024,
                   own.gpu.communication);
      EXPECT_EQ(own.settle(), 0);
      own.nccl.groupStart.function();
      for (int peer = 0; peer < ranks; ++peer) {
        own.send(out + 64 * peer, bytesOf(own.rank, peer), peer);
        own.receive(in + 64 * peer, bytesOf(peer, own.rank), peer);
      }
      own.nccl.groupEnd.function();
      own.gpu.copy(pinned + 1024, reinterpret_cast<void *>(in), 1024,
                   own.gpu.communication);
      own.gpu.synchronize(own.gpu.communication);
      for (int peer = 0; peer < ranks; ++peer) {
        size_t bytes = bytesOf(peer, own.rank);
        for (size_t i = 0; i < 64; ++i)
          EXPECT_EQ(pinned[1024 + 64 * peer + i],
                    i < bytes ? 16 * round + peer : 0x7F);
      }
    }
    EXPECT_EQ(own.settle(), 0);
    own.end();
    own.gpu.call(own.gpu.driver.memFree, out);
    own.gpu.call(own.gpu.driver.memFree, in);
    own.gpu.driver.memFreeHost.function(pinned);
  });
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
}

TEST(CudaNcclFaults, EndsThatDiffer) {
  Machine machine({.gpus = 2});
  onRanks(machine, 2, [](Rank &own) {
    Address data = own.gpu.allocate(64);
    if (own.rank == 0)
      own.send(data, 8, 1);
    else
      own.receive(data, 12, 0);
    own.abort();
  });
  EXPECT_TRUE(
      has(machine.takeFaults(), "rank 0 sends 8 bytes, rank 1 receives 12"));
}

TEST(CudaNcclFaults, MemoryOfTheHostAndUnbalancedGroups) {
  Machine machine({.gpus = 1});
  onRanks(machine, 1, [](Rank &own) {
    own.send(addressOf(own.gpu.allocatePinned(64)), 8, 0);
    EXPECT_EQ(own.nccl.groupEnd.function(), kNcclInvalidUsage);
    own.abort();
  });
  std::vector<std::string> faults = machine.takeFaults();
  EXPECT_TRUE(has(faults, "not all in the memory of the communicator's GPU"));
  EXPECT_TRUE(has(faults, "the end of a group that has not begun"));
}

TEST(CudaNcclFaults, ACommunicatorThatIsNotReady) {
  Machine machine({.gpus = 2});
  Gpu gpu(machine.libraries(), 0);
  CommunicatorId id;
  CommunicatorConfig config;
  Communicator communicator;
  const Nccl &nccl = machine.nccl();
  nccl.getUniqueId.function(&id);
  EXPECT_EQ(nccl.commInitRankConfig.function(&communicator, 2, id, 0, &config),
            kNcclInProgress);
  // The other rank does not come.
  NcclStatus status = 0;
  for (int i = 0; i < 8; ++i)
    nccl.commGetAsyncError.function(communicator, &status);
  EXPECT_EQ(status, kNcclInProgress);
  Address data = gpu.allocate(64);
  nccl.send.function(reinterpret_cast<void *>(data), 8, kNcclBytes, 1,
                     communicator, gpu.communication);
  nccl.commAbort.function(communicator);
  EXPECT_TRUE(has(machine.takeFaults(), "is used before it is ready"));
}

TEST(CudaNcclFaults, AllRanksSeeAnErrorAndAbort) {
  constexpr int ranks = 3;
  Machine machine({.gpus = ranks, .failingGroup = 1});
  onRanks(machine, ranks, [](Rank &own) {
    Address data = own.gpu.allocate(128);
    own.nccl.groupStart.function();
    own.send(data, 8, (own.rank + 1) % ranks);
    own.receive(data + 64, 8, (own.rank + ranks - 1) % ranks);
    own.nccl.groupEnd.function();
    // One group is enough for all to fail.
    NcclStatus status = 0;
    while (status != kNcclRemoteError)
      own.nccl.commGetAsyncError.function(own.communicator, &status);
    own.abort();
    own.gpu.synchronize(own.gpu.communication);
  });
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
}

TEST(CudaNcclFaults, AnAbortFreesThoseThatWaitForALostPeer) {
  Machine machine({.gpus = 2});
  onRanks(machine, 2, [](Rank &own) {
    if (own.rank == 1)
      return own.abort();
    Address data = own.gpu.allocate(64);
    own.receive(data, 8, 1);
    std::thread watchdog([&] { own.abort(); });
    own.gpu.synchronize(own.gpu.communication);
    watchdog.join();
  });
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
}

} // namespace
} // namespace whale::runtime::cuda
