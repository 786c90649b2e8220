//===- DeviceTest.cpp - The devices, one by one ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceConformance.h"

#include "device/HostLinks.h"

#include <set>

namespace whale::runtime::test {
namespace {

std::vector<std::unique_ptr<Device>> createCpu(const format::Program &program,
                                               Transport &transport) {
  std::vector<std::unique_ptr<Device>> devices;
  for (size_t rank = 0; rank < program.ranks.size(); ++rank)
    devices.push_back(
        createCpuDevice(2, &transport, static_cast<int64_t>(rank)));
  return devices;
}

DeviceMaker late(uint64_t seed) {
  return [seed](const format::Program &program, Transport &transport) {
    return createLateDevices(program, 1, transport, seed);
  };
}

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformance,
                         testing::Values(DeviceMaker(createCpu)));
INSTANTIATE_TEST_SUITE_P(Late, DeviceConformance,
                         testing::Values(late(0), late(1), late(2), late(7)));

//===----------------------------------------------------------------------===//
// Copies between host and device
//===----------------------------------------------------------------------===//

/// Devices that copy from and to the memory of their hosts.
class HostCopies : public testing::TestWithParam<DeviceMaker> {};
INSTANTIATE_TEST_SUITE_P(Cpu, HostCopies,
                         testing::Values(DeviceMaker(createCpu)));
INSTANTIATE_TEST_SUITE_P(Late, HostCopies,
                         testing::Values(late(0), late(1), late(2), late(7)));

/// Of two integers on each of two ranks.
Collective makeCopy(const char *kind) {
  Collective copy = makeCollective("all_reduce", {2, 2});
  copy.kind = kind;
  copy.groups.clear();
  copy.parts[0].reduction.reset();
  for (int64_t rank : copy.participants)
    copy.parts[0].srcShapes[rank] = copy.parts[0].dstShapes[rank] = {2};
  return copy;
}

/// Fetches buffer 0, sums it up in buffer 2, and brings that back to 0; buffer
/// 1 is what is fetched into.
TEST_P(HostCopies, AreDoneWhereTheyAreWaitedFor) {
  Devices all(GetParam(), 2,
              {makeCopy("host_to_device"), makeCopy("device_to_host")});
  std::vector<Integers> memories;
  for (const auto &device : all.devices)
    memories.emplace_back(*device, 3, 2).fill(0, 1);
  KernelLaunch twice{[](void **buffers, int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i)
                         static_cast<int32_t *>(buffers[1])[i] =
                             2 * static_cast<int32_t *>(buffers[0])[i];
                     },
                     {1, 2},
                     2,
                     2};
  for (int run = 0; run < 2; ++run) {
    Outcome outcome = all.run([&](int64_t rank, Device &device) {
      const BufferTable &table = memories[rank].table;
      auto start = [&](int64_t channel, int64_t number, BufferIndex src,
                       BufferIndex dst) {
        device.wait(Queue::Copy, device.record(Queue::Compute));
        device.startCopy(Queue::Copy, {channel, number, {{src, dst}}}, 8,
                         table);
      };
      for (int round = 0; round < 4; ++round) {
        start(0, 0, 0, 1);
        Traffic traffic = device.waitFor(Queue::Compute, 0);
        EXPECT_EQ(traffic.received, 8);
        device.launch(Queue::Compute, twice, table);
        start(1, 1, 2, 0);
        // The next one is fetched when this one is back: the queue is in order.
        device.waitFor(Queue::Compute, 1);
      }
    });
    EXPECT_EQ(outcome, Outcome());
  }
  for (const Integers &memory : memories)
    EXPECT_EQ(memory.values(0), (std::vector<int32_t>{256, 512}));
}

/// A copy goes on beside an exchange that the other rank comes late to.
TEST_P(HostCopies, WaitForNoExchange) {
  Devices all(GetParam(), 2, {makeCopy("host_to_device"), makeSend(0, 1)});
  std::vector<Integers> memories;
  for (const auto &device : all.devices)
    memories.emplace_back(*device, 3, 2).fill(0, 1);
  Outcome outcome = all.run([&](int64_t rank, Device &device) {
    const BufferTable &table = memories[rank].table;
    Start send = {1, 0};
    (rank == 0 ? send.parts[0].src : send.parts[0].dst) = 2;
    auto exchange = [&] {
      device.wait(Queue::Communication, device.record(Queue::Compute));
      device.start(Queue::Communication, send, table);
    };
    if (rank == 0)
      exchange();
    device.startCopy(Queue::Copy, {0, 1, {{0, 1}}}, 8, table);
    device.waitFor(Queue::Compute, 1);
    if (rank == 1)
      exchange();
    device.waitFor(Queue::Compute, 0);
  });
  EXPECT_EQ(outcome, Outcome());
  for (const Integers &memory : memories)
    EXPECT_EQ(memory.values(1), (std::vector<int32_t>{1, 2}));
}

/// The source of a copy is overwritten before the wait for it.
TEST(HostCopies, MayBeLate) {
  std::set<std::vector<int32_t>> seen;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Devices all(late(seed), 1, {makeCopy("host_to_device")});
    Integers memory(*all.devices[0], 3, 2);
    memory.fill(0, 1);
    Copy overwrite = memory.copy(2, 0);
    all.run([&](int64_t, Device &device) {
      device.startCopy(Queue::Copy, {0, 0, {{0, 1}}}, 8, memory.table);
      device.copy(Queue::Compute, overwrite, memory.table);
      device.waitFor(Queue::Compute, 0);
    });
    seen.insert(memory.values(1));
  }
  EXPECT_EQ(seen, (std::set<std::vector<int32_t>>{{0, 0}, {1, 2}}));
}

/// Four ranks of two nodes copy 1000 bytes each over their hosts' links, of 1e5
/// bytes a second: two after one another on each.
TEST(HostCopies, TakeTheTimeOfTheirLink) {
  auto network = std::make_shared<const Cluster>(Cluster::parse(R"({
    "kinds": {"k": {"flops": {"f32": 1}, "memory_bytes": 1000,
      "memory_bandwidth": 10}},
    "nodes": [{"count": 2, "devices": [{"kind": "k", "count": 2}],
      "host": {"memory_bytes": 1000, "bandwidth": 1e5}}]})"));
  std::vector<int64_t> ranks = {0, 1, 2, 3}, mine = {0, 2};
  auto secondsOf = [&](std::span<const int64_t> local) {
    HostLinks links(network, local);
    auto begin = Device::Clock::now(), end = begin;
    for (int64_t rank : local)
      end = std::max(end, links.reserve(rank, 1000));
    return std::chrono::duration<double>(end - begin).count();
  };
  EXPECT_GE(secondsOf(ranks), 0.02);
  EXPECT_LT(secondsOf(ranks), 0.04);
  // Another process has half of each link.
  EXPECT_GE(secondsOf(mine), 0.02);
}

/// Rank 0 sends its buffer 0, of [0], to rank 1, which receives into its own.
/// Between start and wait both copy their buffer 0 to buffer 1, and then buffer
/// 2, of [9], to buffer 0. Returns what the two have in both buffers then, and
/// how many transfers were moved.
struct Race {
  std::vector<int32_t> values;
  int64_t moved = 0;
  auto operator<=>(const Race &) const = default;
};
Race race(uint64_t seed) {
  Devices all(late(seed), 2, {makeSend(0, 1)});
  std::vector<Integers> memories;
  for (const auto &device : all.devices)
    *memories.emplace_back(*device, 3, 1).at(2) = 9;
  Copy read = memories[0].copy(0, 1), write = memories[0].copy(2, 0);
  all.run([&](int64_t rank, Device &device) {
    const BufferTable &table = memories[rank].table;
    Start start = {0, 0};
    (rank == 0 ? start.parts[0].src : start.parts[0].dst) = 0;
    device.wait(Queue::Communication, device.record(Queue::Compute));
    device.start(Queue::Communication, start, table);
    device.copy(Queue::Compute, read, table);
    device.copy(Queue::Compute, write, table);
    device.waitFor(Queue::Compute, 0);
  });
  Race result;
  for (int64_t rank : {0, 1}) {
    for (BufferIndex buffer : {0, 1})
      result.values.push_back(*memories[rank].at(buffer));
    result.moved += *all.devices[rank]->movedTransfers();
  }
  return result;
}

TEST(LateDevice, ShowsEveryOrder) {
  std::set<std::vector<int32_t>> seen;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    seen.insert(race(seed).values);
    EXPECT_EQ(race(seed), race(seed)) << seed;
  }
  // What rank 1 reads is garbage or has come; what it writes is written over,
  // or not; what has come was sent before or after rank 0 wrote it.
  constexpr int32_t garbage = 0x7F7F7F7F;
  std::set<std::vector<int32_t>> possible = {
      {9, 0, 0, garbage}, {9, 0, 9, garbage}, {9, 0, 9, 0}, {9, 0, 9, 9}};
  EXPECT_EQ(seen, possible);
}

TEST(LateDevice, CountsWhatItMoves) {
  // All transfers are held back, and all computation.
  EXPECT_EQ(race(0).moved, 2);
  EXPECT_EQ(race(1).moved, 0);
  EXPECT_EQ(race(0).values, (std::vector<int32_t>{9, 0, 9, 0x7F7F7F7F}));
}

TEST(LateDevice, ShowsAMissingEvent) {
  int wrong = 0;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    Devices all(late(seed), 1);
    Integers memory(*all.devices[0], 3, 1);
    *memory.at(0) = 1;
    Copy first = memory.copy(0, 1), second = memory.copy(1, 2);
    all.run([&](int64_t, Device &device) {
      device.copy(Queue::Compute, first, memory.table);
      device.copy(Queue::Communication, second, memory.table);
    });
    wrong += *memory.at(2) != 1;
  }
  EXPECT_GT(wrong, 0);
}

TEST(LateDevice, MemoryOfAnEarlierRunIsGarbage) {
  Devices all(late(0), 1);
  auto memory = all.devices[0]->allocate(MemorySpace::Device, 1);
  auto *byte = static_cast<uint8_t *>(memory->data.get());
  *byte = 1;
  all.run([](int64_t, Device &) {});
  EXPECT_NE(*byte, 1);
}

} // namespace
} // namespace whale::runtime::test
