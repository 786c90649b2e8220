//===- ExchangeTest.cpp - Arrays in other layouts -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exchanges of random layouts between four ranks of one process, on the GPUs of
// a test machine: by NCCL, and through the host. Sources are on their GPUs, or
// in the host's memory, or of more ranks or fewer. Each result must have the
// elements of its box, nothing of a source on a GPU may come to the host on the
// way, and a source is freed when its last piece has been given.
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"
#include "cuda/test/Machine.h"
#include "executor/Ranks.h"

#include <gtest/gtest.h>

#include <cstring>

namespace whale::runtime::test {
namespace {

constexpr int64_t ranks = 4;
using Way = Ranks::ExchangeWay;

/// Four ranks, each on a GPU of the machine.
struct OnGpus {
  explicit OnGpus(const cuda::test::MachineOptions &options)
      : machine(options) {
    format::Program program;
    program.target = "cuda";
    program.classes.resize(1);
    program.ranks.resize(ranks);
    bound = std::make_unique<BoundProgram>(std::move(program));
    bound->testLibraries = &machine.libraries();
    shared = std::make_unique<Ranks>(RanksOptions(*bound, {}));
  }
  ~OnGpus() {
    shared.reset();
    EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
    EXPECT_TRUE(machine.memory.empty());
  }

  /// A shard, of which the host has other bytes if it is on a GPU.
  std::shared_ptr<Buffer> shardOf(const Numbers &numbers, int64_t rank,
                                  bool isOnGpu) {
    auto bytes = static_cast<int64_t>(4 * numbers.size());
    if (!isOnGpu) {
      std::shared_ptr<Buffer> shard = Buffer::allocate(bytes);
      std::memcpy(shard->data.get(), numbers.data(), bytes);
      return shard;
    }
    ExchangeMemory &memory = shared->exchangeMemory(rank, Way::Gpus);
    std::shared_ptr<Buffer> shard = memory.allocate(bytes);
    std::memcpy(memory.placeIn(*shard), numbers.data(), bytes);
    std::memset(shard->data.get(), 0x5A, bytes);
    return shard;
  }

  cuda::test::Machine machine;
  std::unique_ptr<BoundProgram> bound;
  std::unique_ptr<Ranks> shared;
};

void check(std::mt19937 &random, OnGpus &gpus, Way way) {
  std::vector<ArrayMove> moves;
  std::vector<Ranks::Shards> sources;
  std::vector<std::shared_ptr<Buffer>> onGpus;
  for (const Shape &shape : {Shape{7, 5}, Shape{300, 401}, Shape{90'000}}) {
    auto from = randomLayout(random, shape, 3 + random() % 3);
    moves.push_back({4, from, nullptr, randomLayout(random, shape, ranks)});
    Ranks::Shards &shards = sources.emplace_back(from->boxes.size());
    std::vector<Numbers> numbers = shardsOf(*from);
    for (size_t rank = 0; rank < shards.size(); ++rank) {
      if (!from->boxes[rank])
        continue;
      bool isOnGpu = rank < ranks && random() % 4 != 0;
      shards[rank] =
          gpus.shardOf(numbers[rank], static_cast<int64_t>(rank), isOnGpu);
      if (isOnGpu)
        onGpus.push_back(shards[rank]);
    }
  }
  std::weak_ptr<Buffer> last = sources[0][0];
  std::vector<Ranks::Shards> results =
      gpus.shared->exchange(moves, std::move(sources), way);
  for (const std::shared_ptr<Buffer> &shard : onGpus) {
    auto *host = static_cast<const char *>(shard->data.get());
    if (way == Way::Gpus)
      EXPECT_EQ(std::count(host, host + shard->bytes, 0x5A), shard->bytes);
  }
  onGpus.clear();
  EXPECT_TRUE(last.expired());
  for (size_t move = 0; move < moves.size(); ++move) {
    std::vector<Numbers> expected = shardsOf(*moves[move].to);
    for (size_t rank = 0; rank < ranks; ++rank) {
      const std::shared_ptr<Buffer> &shard = results[move][rank];
      ASSERT_EQ(shard != nullptr, moves[move].to->boxes[rank].has_value());
      if (!shard)
        continue;
      EXPECT_TRUE(shard->bytes == 0 || isOnGpu(*shard) == (way == Way::Gpus));
      EXPECT_EQ(std::memcmp(shard->host(), expected[rank].data(),
                            4 * expected[rank].size()),
                0);
    }
  }
}

TEST(Exchange, FromGpuToGpu) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    OnGpus gpus({.seed = seed, .gpus = ranks});
    std::mt19937 random(seed);
    for (int i = 0; i < 4; ++i)
      check(random, gpus, Way::Gpus);
    EXPECT_GT(gpus.machine.groups, 0);
    EXPECT_EQ(gpus.machine.aborted, 0);
  }
}

TEST(Exchange, FromGpusThroughTheHost) {
  OnGpus gpus({.gpus = ranks});
  std::mt19937 random(1);
  for (int i = 0; i < 8; ++i)
    check(random, gpus, Way::Hosts);
  EXPECT_EQ(gpus.machine.groups, 0);
}

/// The next exchange is well.
TEST(Exchange, AnErrorOfNcclEndsOne) {
  OnGpus gpus({.gpus = ranks, .failingGroup = 0});
  std::mt19937 random(2);
  EXPECT_THROW(
      {
        while (gpus.machine.groups == 0)
          check(random, gpus, Way::Gpus);
      },
      Error);
  check(random, gpus, Way::Gpus);
}

} // namespace
} // namespace whale::runtime::test
