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
  MemoryRoom room(cluster, {1.5}, {{4, 6}}, {withBatch(load, 0.5)});
  EXPECT_EQ(room.scratchBytes(0), 7);
  EXPECT_EQ(room.peakBytes(0), 10 + 7 + 135);
  EXPECT_EQ(room.argumentBytes(0), 10);
}

// The largest share fills the device to the last byte; a larger one doesn't
// fit.
TEST(MemoryRoom, LargestShareFillsTheDevice) {
  MeshLoad load = makeLoad();
  for (ScratchLine scratch : {ScratchLine{5, 0}, ScratchLine{5, 20}})
    for (int64_t memory : {60, 75, 100, 130, 155, 175, 500}) {
      Cluster cluster = oneDevice(memory);
      MemoryRoom room(cluster, {}, {scratch}, {withBatch(load, 0.25)});
      double most = room.roomFor(0, &load, /*inner=*/false);
      EXPECT_NEAR(most,
                  std::min((double(memory) - 55) / (100 + scratch.bytes), 1.0),
                  1e-9);
      MemoryRoom full(cluster, {}, {scratch}, {withBatch(load, most)});
      EXPECT_LE(full.peakBytes(0), memory);
    }
  Cluster cluster = oneDevice(20);
  MemoryRoom room(cluster, {}, {{5, 0}}, {withBatch(load, 0.25)});
  EXPECT_EQ(room.roomFor(0, &load, /*inner=*/false), 0);
}

// Scratch is that of the mesh of which a device has the largest part.
TEST(MemoryRoom, ScratchOfAnotherMeshStays) {
  MeshLoad load = makeLoad(), other;
  MeshShares shares = withBatch(load, 0.25);
  shares.push_back({&other, {0.5, 0.5, 1}});
  Cluster cluster = oneDevice(120);
  MemoryRoom room(cluster, {}, {{0, 40}}, {shares});
  EXPECT_EQ(room.scratchBytes(0), 20);
  EXPECT_NEAR(room.roomFor(0, &load, /*inner=*/false), 0.5, 1e-9);
}

TEST(MemoryRoom, LinesGoThroughTwoParts) {
  ScratchLine line = ScratchLine::through(0.5, 30, 0.25, 20);
  EXPECT_EQ(line.fixed, 10);
  EXPECT_EQ(line.bytes, 40);
  // Neither below zero nor the less the more there is to do.
  EXPECT_EQ(ScratchLine::through(0.5, 30, 0.25, 0).at(0.25), 15);
  EXPECT_EQ(ScratchLine::through(0.5, 30, 0.25, 40).bytes, 0);
  EXPECT_EQ(ScratchLine::through(0.5, 30, 0.5, 20).at(0.5), 30);
}

// For other numbers of samples the highest of the lines is the peak.
TEST(MemoryRoom, LinesAreThePeakOfMoreSamples) {
  MeshLoad load = makeLoad();
  // With few samples more is there at the end.
  load.changes[7][LoadKind::Whole] = 60;
  load.changes[8][LoadKind::GroupInner] = 16;
  Cluster cluster = oneDevice(1000);
  MemoryRoom room(cluster, {1.5}, {{4, 6}}, {{{&load, {0.25, 0.25, 0.5}}}});
  std::vector<MemoryLine> lines = room.linesOf(0);
  EXPECT_EQ(lines.size(), 2u);
  for (double times : {0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 4.0}) {
    MemoryRoom other(cluster, {1.5}, {{4, 6}},
                     {{{&load, {0.25 * times, 0.25 * times, 0.5}}}});
    double most = 0;
    for (const MemoryLine &line : lines)
      most = std::max(most, line.fixed + line.bytes * times);
    // Bytes are whole, and scratch is of the part that is cut inside.
    EXPECT_NEAR(most, double(other.peakBytes(0)), 1.5) << times;
  }
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
