//===- DeviceTest.cpp - The devices, one by one ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceConformance.h"

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
