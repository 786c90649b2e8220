//===- MemoryRoomTest.cpp - Tests of what memory allows ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/MemoryRoom.h"
#include "gtest/gtest.h"

using namespace whale;

namespace {

Cluster oneDevice(int64_t memory) {
  Cluster cluster;
  cluster.kinds.emplace_back().memoryBytes = memory;
  cluster.devices.emplace_back();
  return cluster;
}

/// 10 bytes of arguments; from operation 2 to 5 100 bytes of the mini-batch,
/// meanwhile, from 3 to 4, 40 that every device has.
MeshLoad makeLoad() {
  MeshLoad load;
  load.argumentBytes[LoadKind::Whole] = 10;
  load.changes[2][LoadKind::Batch] = 100;
  load.changes[3][LoadKind::Whole] = 40;
  load.changes[4][LoadKind::Whole] = -40;
  load.changes[5][LoadKind::Batch] = -100;
  return load;
}

MeshShares withBatch(const MeshLoad &load, double part) {
  return {{&load, {part, part, 1}}};
}

TEST(MemoryRoom, PeakIsWhereMostIsAlive) {
  MeshLoad load = makeLoad();
  Cluster cluster = oneDevice(1000);
  MemoryRoom room(cluster, {}, {}, {withBatch(load, 0.5)});
  EXPECT_EQ(room.peakBytes(0), 10 + 50 + 40);
  EXPECT_EQ(room.argumentBytes(0), 10);
}

TEST(MemoryRoom, CorrectsAllButArgumentsAndScratch) {
  MeshLoad load = makeLoad();
  Cluster cluster = oneDevice(1000);
  int64_t scratch[] = {7};
  MemoryRoom room(cluster, {1.5}, scratch, {withBatch(load, 0.5)});
  EXPECT_EQ(room.peakBytes(0), 10 + 7 + 135);
  EXPECT_EQ(room.argumentBytes(0), 10);
}

// The largest share fills the device to the last byte; a larger one doesn't
// fit.
TEST(MemoryRoom, LargestShareFillsTheDevice) {
  MeshLoad load = makeLoad();
  int64_t scratch[] = {5};
  for (int64_t memory : {60, 75, 100, 130, 155, 500}) {
    Cluster cluster = oneDevice(memory);
    MemoryRoom room(cluster, {}, scratch, {withBatch(load, 0.25)});
    double most = room.roomFor(0, &load, /*inner=*/false);
    EXPECT_NEAR(most, std::min((double(memory) - 55) / 100, 1.0), 1e-9);
    MemoryRoom full(cluster, {}, scratch, {withBatch(load, most)});
    EXPECT_LE(full.peakBytes(0), memory);
  }
  Cluster cluster = oneDevice(20);
  MemoryRoom room(cluster, {}, scratch, {withBatch(load, 0.25)});
  EXPECT_EQ(room.roomFor(0, &load, /*inner=*/false), 0);
}

TEST(MemoryRoom, LoopBytes) {
  MeshLoad load = makeLoad();
  load.kept[3]["a"][LoadKind::Batch] = 20;
  load.sums[3]["b"][LoadKind::Whole] = 3;
  load.sums[4]["b"][LoadKind::Whole] = 1;
  Cluster cluster = oneDevice(1000);
  MemoryRoom room(cluster, {2}, {}, {withBatch(load, 0.5)});
  LoopBytes bytes = room.loopBytes(0, {3, 3});
  EXPECT_EQ(bytes.inside, 10 + 2 * 90);
  EXPECT_EQ(bytes.outside, 10 + 2 * 50);
  EXPECT_EQ(bytes.kept["a"], 20);
  EXPECT_EQ(bytes.sums["b"], 6);
}

} // namespace
