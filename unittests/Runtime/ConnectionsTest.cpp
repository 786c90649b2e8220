//===- ConnectionsTest.cpp - Which ranks exchange data how ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executor/Connections.h"
#include "TransportScenario.h"
#include "cuda/test/Machine.h"
#include "transport/Peers.h"

#include <gtest/gtest.h>

namespace whale::runtime::test {
namespace {

TEST(Connections, ARankWaitsInChannelsOfTheHostAlone) {
  cuda::test::Machine machine({.gpus = 2});
  // Ranks 0 and 2 share a GPU.
  format::Program program = programOf(3, {makeSend(0, 1), makeSend(0, 2)});
  program.target = "cuda";
  program.classes.resize(1);
  BoundProgram bound(std::move(program));
  bound.testLibraries = &machine.libraries();
  Ranks ranks(RanksOptions(bound, {}));
  Connections connections(bound, ranks);
  ASSERT_EQ(connections.notes().size(), 1u);
  EXPECT_TRUE(connections.notes()[0].isWarning);
  EXPECT_NE(connections.notes()[0].text.find(
                "ranks 0 and 2 share a GPU; there are more ranks than GPUs"),
            std::string::npos)
      << connections.notes()[0].text;
  auto awaited = [&](auto operation) {
    Instruction instruction;
    instruction.operation = operation;
    return connections.awaited(0, instruction);
  };
  EXPECT_EQ(awaited(Wait{0, 0}), std::nullopt);
  EXPECT_EQ(awaited(Wait{0, 1}), 1);
  EXPECT_EQ(awaited(Start{0, 1}), std::nullopt);
}

TEST(Connections, RanksOnTheProcessorHaveNoGpu) {
  cuda::test::Machine machine({.gpus = 2});
  format::Program program = programOf(3, {makeSend(0, 2), makeSend(0, 1)});
  program.target = "cuda";
  program.classes.resize(2);
  program.ranks[1].rankClass = 1;
  program.classes[1].isForProcessor = true;
  BoundProgram bound(std::move(program));
  bound.testLibraries = &machine.libraries();
  LoadOptions options;
  options.threadsPerRank = 1;
  Ranks ranks(RanksOptions(bound, options));
  Connections connections(bound, ranks);
  ASSERT_EQ(connections.notes().size(), 1u);
  EXPECT_FALSE(connections.notes()[0].isWarning);
  EXPECT_EQ(connections.notes()[0].text,
            "GPUs exchange data through the host: send_recv 1: rank 1 is on no "
            "GPU");
  std::vector<std::unique_ptr<Device>> devices = connections.createDevices();
  for (int64_t rank : {0, 1, 2}) {
    auto memory = devices[rank]->allocate(MemorySpace::Device, 1024);
    EXPECT_EQ(machine.memory.contains(cuda::addressOf(
                  static_cast<const void *>(memory->data.get()))),
              rank != 1);
  }
}

TEST(Connections, ARankWaitsForPeersAlone) {
  auto from = [](std::vector<int64_t> peers) {
    std::vector<Cell> cells;
    for (int64_t peer : peers)
      cells.push_back({{0}, {1}, {{peer, {0}}}});
    return std::make_shared<std::vector<Cell>>(std::move(cells));
  };
  // All four are tied together, but not each with each.
  Collective collective;
  collective.kind = "send_recv";
  collective.groups = {{0, 1, 2, 3}};
  collective.parts[0].cells = {
      {0, from({0})}, {2, from({0})}, {3, from({1, 0})}};
  EXPECT_EQ(peersOf(collective, 0), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(peersOf(collective, 1), (std::vector<int64_t>{3}));
  EXPECT_EQ(peersOf(collective, 2), (std::vector<int64_t>{0}));
  EXPECT_EQ(peersOf(collective, 3), (std::vector<int64_t>{0, 1}));
  Collective sum;
  sum.kind = "all_reduce";
  sum.groups = {{0, 2}, {1, 3}};
  EXPECT_EQ(peersOf(sum, 3), (std::vector<int64_t>{1}));
  EXPECT_EQ(peersOf(sum, 4), std::vector<int64_t>());
}

} // namespace
} // namespace whale::runtime::test
