//===- CudaMutationsTest.cpp - Is every wrong order of a GPU seen? --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnMachine.h"

#include <array>
#include <iostream>

namespace whale::runtime::test {
namespace {

constexpr Queue compute = Queue::Compute;
constexpr Queue communication = Queue::Communication;

/// Two ranks that compute on both queues in turn, send each other what they
/// have and go on with what they get. Returns their last values; empty if a
/// run did not come to its end.
struct Exchange {
  std::vector<int32_t> values;
  std::vector<std::string> faults;
  std::array<int64_t, cuda::test::mutations> counts = {};
};
Exchange exchange(const MachineOptions &options, bool byNccl, int rounds) {
  Exchange result;
  std::unique_ptr<NcclTransport> nccl;
  // In another order, so that each way has a communicator of its own.
  Collective returning = makeSend(1, 0);
  returning.groups = {{1, 0}};
  Devices all(onMachine(options, byNccl ? &nccl : nullptr), 2,
              {makeSend(0, 1), returning});
  std::vector<Integers> memories;
  for (const auto &device : all.devices) {
    memories.emplace_back(*device, 4, 1);
    // In use from one buffer to the next: no byte is spare.
    *memories.back().at(0) = static_cast<int32_t>(memories.size());
  }
  std::vector<std::shared_ptr<Buffer>> arenas;
  std::vector<BufferTable> tables(2);
  for (int64_t rank : {0, 1}) {
    Device &device = *all.devices[rank];
    arenas.push_back(device.allocate(MemorySpace::Device, 64));
    Region regions[5] = {{memories[rank].memory.get(), 0},
                         {arenas.back().get(), 0},
                         {arenas.back().get(), 16},
                         {arenas.back().get(), 32},
                         {arenas.back().get(), 48}};
    device.bind(tables[rank], regions);
  }
  Copy in = {0, 1, 4}, out = {1, 0, 4};
  KernelLaunch there = {addOne, {1, 2}, 1, 1}, back = {addOne, {2, 1}, 1, 1},
               next = {addOne, {3, 4}, 1, 1}, again = {addOne, {4, 1}, 1, 1};
  all.onEnd = [](int64_t rank) { machine->leave(static_cast<int>(rank)); };
  all.onError = [&] {
    if (nccl)
      nccl->abort();
  };
  Outcome outcome = all.run([&](int64_t rank, Device &device) {
    const BufferTable &table = tables[rank];
    device.copy(compute, in, table);
    for (int round = 0; round < rounds; ++round) {
      device.launch(compute, there, table);
      device.wait(communication, device.record(compute));
      device.launch(communication, back, table);
      device.wait(compute, device.record(communication));
      device.launch(compute, there, table);
      for (int64_t channel : {0, 1}) {
        Start start = {channel, channel};
        (channel == rank ? start.parts[0].src : start.parts[0].dst) =
            channel == rank ? 2 : 3;
        device.wait(communication, device.record(compute));
        device.start(communication, start, table);
      }
      device.waitFor(compute, rank);
      device.waitFor(compute, 1 - rank);
      device.launch(compute, next, table);
      device.launch(compute, again, table);
    }
    device.copy(compute, out, table);
  });
  if (outcome == Outcome())
    for (int64_t rank : {0, 1})
      result.values.push_back(*memories[rank].at(0));
  for (size_t kind = 0; kind < result.counts.size(); ++kind)
    result.counts[kind] = machine->countOf(static_cast<Mutation>(kind));
  result.faults = machine->takeFaults();
  return result;
}

/// A mutation, and whether NCCL moves the data.
class CudaMutations
    : public testing::TestWithParam<std::tuple<Mutation, bool>> {};
INSTANTIATE_TEST_SUITE_P(
    Cuda, CudaMutations,
    testing::Combine(testing::Values(Mutation::DropRecord, Mutation::DropWait,
                                     Mutation::SwapStream,
                                     Mutation::ShiftAddress),
                     testing::Bool()));
INSTANTIATE_TEST_SUITE_P(CudaSplits, CudaMutations,
                         testing::Values(std::tuple(Mutation::SwapCommunicator,
                                                    true)));

/// A change that does nothing (an event that orders what is in order anyway)
/// is skipped: what it leaves has the right values and no fault in any order
/// that is tried.
TEST_P(CudaMutations, AreAllCaught) {
  constexpr uint64_t orders = 6;
  auto [kind, byNccl] = GetParam();
  // A group for each of two channels of two ranks.
  int rounds = kind == Mutation::SwapCommunicator ? 14 : 8;
  Exchange right = exchange({.seed = 5}, byNccl, rounds);
  ASSERT_EQ(right.faults, std::vector<std::string>());
  ASSERT_EQ(right.values.size(), 2u);
  int64_t caught = 0, skipped = 0;
  int64_t count = right.counts[static_cast<size_t>(kind)];
  for (int64_t number = 0; number < count; ++number) {
    int64_t wrong = 0;
    for (uint64_t order = 0; order < orders && !wrong; ++order) {
      Exchange changed = exchange(
          {.seed = order, .mutation = kind, .mutated = number}, byNccl, rounds);
      wrong = !changed.faults.empty() || changed.values != right.values;
    }
    ++(wrong ? caught : skipped);
  }
  std::cout << "of " << count << ": " << caught << " caught, " << skipped
            << " change nothing\n";
  EXPECT_GE(caught, 50);
  // Each operation is needed, not each event.
  bool isOfOrder = kind == Mutation::DropRecord || kind == Mutation::DropWait;
  EXPECT_LE(skipped, isOfOrder ? count / 2 : 0);
}

} // namespace
} // namespace whale::runtime::test
