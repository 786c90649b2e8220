//===- DeviceConformance.cpp - What every device must do ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What every device must do, whatever computes behind it: queues in order,
// events between queues, buffers found by their tables, transfers that are done
// where they are waited for, and errors that come out by the end of a run.
// DeviceConformance.h says how a device gains these tests.
//
// Ranks are threads of the test, and results are small numbers that are known
// beforehand. The last three tests end with an error on purpose; a device that
// waits for a lost peer hangs there.
//
//===----------------------------------------------------------------------===//

#include "DeviceConformance.h"

#include "Numeric.h"

#include <cstring>

namespace whale::runtime::test {

constexpr Queue compute = Queue::Compute;
constexpr Queue communication = Queue::Communication;

Outcome Devices::run(const Job &job) {
  for (const auto &device : devices)
    device->reset();
  auto ranks = static_cast<int64_t>(devices.size());
  return runRanks(*transport, ranks, [&](int64_t rank) {
    Device &device = *devices[rank];
    device.attachThread();
    try {
      job(rank, device);
      device.finish();
      if (onEnd)
        onEnd(rank);
    } catch (const Error &) {
      if (onError)
        onError();
      throw;
    }
  });
}

Integers::Integers(Device &device, int64_t count, int64_t length)
    : length(length), memory(Buffer::allocate(count * length * 4)) {
  std::memset(memory->data.get(), 0, memory->bytes);
  std::vector<Region> regions;
  for (int64_t i = 0; i < count; ++i)
    regions.push_back({memory.get(), i * length * 4});
  device.bind(table, regions);
}

static KernelLaunch kernel(KernelFunction function,
                           std::vector<BufferIndex> buffers, int64_t extent,
                           double work = 1) {
  return {function, std::move(buffers), extent, work};
}

/// The only kernel of these tests: a device whose kernels are others has its
/// own of this.
static void addOne(void **buffers, int64_t begin, int64_t end) {
  auto *in = static_cast<int32_t *>(buffers[0]);
  auto *out = static_cast<int32_t *>(buffers[1]);
  for (int64_t i = begin; i < end; ++i)
    out[i] = in[i] + 1;
}

TEST_P(DeviceConformance, MemoryIsAlignedInEverySpace) {
  Devices all(GetParam(), 1);
  for (MemorySpace space :
       {MemorySpace::Device, MemorySpace::PinnedHost, MemorySpace::Host})
    for (int64_t bytes : {0, 1, 100}) {
      auto memory = all.devices[0]->allocate(space, bytes);
      EXPECT_EQ(memory->bytes, bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data.get()) % 64, 0u);
    }
}

TEST_P(DeviceConformance, OperationsOfAQueueRunInTurn) {
  Devices all(GetParam(), 1);
  Integers memory(*all.devices[0], 3);
  memory.fill(0, 10);
  KernelLaunch add = kernel(addOne, {1, 2}, 4),
               again = kernel(addOne, {2, 1}, 4);
  Copy first = memory.copy(0, 1), last = memory.copy(1, 0);
  Copy onto = memory.copy(0, 0);
  all.run([&](int64_t, Device &device) {
    device.copy(compute, first, memory.table);
    for (int i = 0; i < 5; ++i) {
      device.launch(compute, add, memory.table);
      device.launch(compute, again, memory.table);
    }
    device.copy(compute, last, memory.table);
    device.copy(compute, onto, memory.table);
  });
  EXPECT_EQ(memory.values(0), (std::vector<int32_t>{20, 21, 22, 23}));
}

TEST_P(DeviceConformance, KernelsRunOncePerIndex) {
  constexpr int64_t count = 100000;
  Devices all(GetParam(), 1);
  Integers memory(*all.devices[0], 1, count);
  KernelLaunch large = kernel(addOne, {0, 0}, count, 1e9),
               none = kernel(addOne, {0, 0}, 0);
  all.run([&](int64_t, Device &device) {
    device.launch(compute, large, memory.table);
    device.launch(compute, none, memory.table);
  });
  EXPECT_EQ(memory.values(0), std::vector<int32_t>(count, 1));
}

TEST_P(DeviceConformance, TablesMayChangeOnceTheyWereUsed) {
  Devices all(GetParam(), 1);
  Integers memory(*all.devices[0], 4);
  memory.fill(0, 1);
  memory.fill(1, 5);
  Copy copy = memory.copy(0, 1), one = {0, 1, 4};
  all.run([&](int64_t, Device &device) {
    BufferTable table;
    for (BufferIndex from : {0, 1}) {
      device.select(table, memory.table,
                    std::vector<BufferIndex>{from, from + 2});
      device.copy(compute, copy, table);
    }
    Region regions[2] = {{memory.memory.get(), 4}, {memory.memory.get(), 0}};
    device.bind(table, regions);
    device.copy(compute, one, table);
    device.bind(table, {});
  });
  EXPECT_EQ(memory.values(0), (std::vector<int32_t>{2, 2, 3, 4}));
  EXPECT_EQ(memory.values(2), (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(memory.values(3), (std::vector<int32_t>{5, 6, 7, 8}));
}

TEST_P(DeviceConformance, ProductsAndLibraryCallsFindTheirBuffers) {
  Devices all(GetParam(), 1);
  std::vector<std::shared_ptr<Buffer>> memory;
  std::vector<Region> regions;
  auto add = [&](const std::vector<float> &values) {
    auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
    memory.push_back(Buffer::allocate(bytes));
    std::memcpy(memory.back()->data.get(), values.data(), bytes);
    regions.push_back({memory.back().get(), 0});
  };
  auto values = [&](size_t buffer) {
    auto *data = static_cast<float *>(memory[buffer]->data.get());
    return std::vector<float>(data, data + 4);
  };
  for (int result = 0; result < 3; ++result)
    add({0, 0, 0, 0});
  add({1, 0, 2, 1});
  add({1, 2, 3, 4});
  add({2});
  Matmul matmul;
  matmul.lhsType = matmul.rhsType = matmul.outType = DType::F32;
  matmul.m = matmul.n = matmul.k = 2;
  matmul.mLhs = matmul.kRhs = matmul.mOut = 2;
  matmul.kLhs = matmul.nRhs = matmul.nOut = 1;
  matmul.lhs = 4, matmul.rhs = 3, matmul.out = 2;
  // A window of one element, along one dimension as libraries want at least.
  Convolution convolution;
  convolution.lhsType = convolution.rhsType = convolution.outType = DType::F32;
  convolution.lhsShape = convolution.outShape = {4, 1, 1};
  convolution.rhsShape = {1, 1, 1};
  convolution.lhsDims = convolution.rhsDims = convolution.outDims = {0, 1, {2}};
  convolution.windows.resize(1);
  convolution.lhs = 2, convolution.rhs = 5, convolution.out = 1;
  Call call{{1, 4}, {0}, [](auto inputs, auto outputs) {
              for (int i = 0; i < 4; ++i)
                static_cast<float *>(outputs[0])[i] =
                    static_cast<float *>(inputs[0])[i] -
                    static_cast<float *>(inputs[1])[i];
            }};
  call.bytes = {16, 16, 16};
  BufferTable table;
  all.devices[0]->bind(table, regions);
  all.run([&](int64_t, Device &device) {
    device.matmul(compute, matmul, table);
    device.convolution(compute, convolution, table);
    device.call(compute, call, table);
  });
  EXPECT_EQ(values(2), (std::vector<float>{5, 2, 11, 4}));
  EXPECT_EQ(values(1), (std::vector<float>{10, 4, 22, 8}));
  EXPECT_EQ(values(0), (std::vector<float>{9, 2, 19, 4}));
}

TEST_P(DeviceConformance, EventsOrderQueues) {
  constexpr int64_t rounds = 30;
  Devices all(GetParam(), 2);
  std::vector<Integers> memories;
  for (const auto &device : all.devices)
    memories.emplace_back(*device, 2);
  KernelLaunch there = kernel(addOne, {0, 1}, 4),
               back = kernel(addOne, {1, 0}, 4);
  all.run([&](int64_t rank, Device &device) {
    const BufferTable &table = memories[rank].table;
    for (int64_t round = 0; round < rounds; ++round) {
      device.launch(compute, there, table);
      device.wait(communication, device.record(compute));
      device.launch(communication, back, table);
      device.wait(compute, device.record(communication));
    }
    // Of its own queue, and reached long ago.
    Event event = device.record(compute);
    device.wait(compute, event);
  });
  for (const Integers &memory : memories)
    EXPECT_EQ(memory.at(0)[0], 2 * rounds);
}

TEST_P(DeviceConformance, IntegersAreReadWhenTheQueueIsDone) {
  Devices all(GetParam(), 1);
  Device &device = *all.devices[0];
  std::vector<std::pair<DType, int64_t>> cases = {
      {DType::I8, -3},  {DType::I16, -300}, {DType::I32, -70000},
      {DType::I64, -1}, {DType::UI8, 200},  {DType::UI16, 60000},
      {DType::UI32, 1}, {DType::UI64, 7},   {DType::I1, 1},
      {DType::I4, -8},  {DType::UI2, 3}};
  // The host and the device use it.
  auto from = device.allocate(MemorySpace::PinnedHost, 16);
  auto to = device.allocate(MemorySpace::Device, 16);
  BufferTable table;
  Region regions[2] = {{from.get(), 0}, {to.get(), 0}};
  device.bind(table, regions);
  Copy all16 = {0, 1, 16};
  all.run([&](int64_t, Device &device) {
    for (auto [dtype, value] : cases) {
      // The lowest byte comes first.
      std::memcpy(from->data.get(), &value, 8);
      device.copy(compute, all16, table);
      EXPECT_EQ(device.readInteger(compute, table, 1, dtype), value)
          << name(dtype);
    }
    device.copy(compute, all16, table);
    EXPECT_EQ(device.readInteger(compute, table, 1, DType::F32), 0);
  });
}

/// Both ranks have a buffer of one integer to send and one to receive into.
TEST_P(DeviceConformance, TransfersAreDoneWhereTheyAreWaitedFor) {
  Devices all(GetParam(), 2, {makeSend(0, 1), makeSend(1, 0)});
  std::vector<Integers> memories;
  for (const auto &device : all.devices)
    memories.emplace_back(*device, 2, 1);
  KernelLaunch add = kernel(addOne, {1, 0}, 1), own = kernel(addOne, {0, 0}, 1);
  for (int run = 0; run < 2; ++run) {
    *memories[0].at(0) = 1;
    Outcome outcome = all.run([&](int64_t rank, Device &device) {
      const BufferTable &table = memories[rank].table;
      for (int round = 0; round < 20; ++round) {
        // There and back: the channel that it sends through comes first on one
        // rank, and last on the other one.
        bool isSent = rank == 0;
        for (int64_t channel : {0, 1}) {
          Start start = {channel, 0};
          (isSent ? start.parts[0].src : start.parts[0].dst) = isSent ? 0 : 1;
          device.wait(communication, device.record(compute));
          device.start(communication, start, table);
          device.waitFor(compute, 0);
          device.launch(compute, isSent ? own : add, table);
          isSent = !isSent;
        }
      }
    });
    EXPECT_EQ(outcome, Outcome());
    EXPECT_EQ(*memories[0].at(0), 41);
  }
}

TEST_P(DeviceConformance, TransfersAreWaitedForInAnyOrder) {
  std::vector<Collective> channels = {makeSend(0, 1), makeSend(0, 1),
                                      makeSend(0, 1)};
  Devices all(GetParam(), 2, channels);
  std::vector<Integers> memories;
  for (const auto &device : all.devices)
    memories.emplace_back(*device, 4, 1);
  for (BufferIndex i : {0, 1, 2})
    *memories[0].at(i) = static_cast<int32_t>(i) + 5;
  Copy copy = memories[1].copy(2, 3);
  Outcome outcome = all.run([&](int64_t rank, Device &device) {
    const BufferTable &table = memories[rank].table;
    for (int64_t i : {0, 1, 2}) {
      Start start = {i, i};
      (rank == 0 ? start.parts[0].src : start.parts[0].dst) = i;
      device.wait(communication, device.record(compute));
      device.start(communication, start, table);
    }
    Traffic traffic = device.waitFor(compute, 2);
    EXPECT_EQ(rank == 0 ? traffic.sent : traffic.received, 4);
    device.copy(compute, copy, table);
    device.waitFor(compute, 0);
    device.waitFor(compute, 1);
  });
  EXPECT_EQ(outcome, Outcome());
  EXPECT_EQ(*memories[1].at(0), 5);
  EXPECT_EQ(*memories[1].at(3), 7);
}

/// One part goes there and one back.
TEST_P(DeviceConformance, TransfersHaveSeveralParts) {
  Collective both = makeSend(0, 1);
  both.parts.push_back(makeSend(1, 0).parts.front());
  Devices all(GetParam(), 2, {both});
  std::vector<Integers> memories;
  for (const auto &device : all.devices)
    memories.emplace_back(*device, 2, 1);
  KernelLaunch add = kernel(addOne, {1, 0}, 1);
  *memories[0].at(0) = 10;
  *memories[1].at(0) = 20;
  Outcome outcome = all.run([&](int64_t rank, Device &device) {
    const BufferTable &table = memories[rank].table;
    Start start = {0, 0, std::vector<Start::Ends>(2)};
    start.parts[rank].src = 0;
    start.parts[1 - rank].dst = 1;
    for (int round = 0; round < 3; ++round) {
      device.wait(communication, device.record(compute));
      device.start(communication, start, table);
      Traffic traffic = device.waitFor(compute, 0);
      EXPECT_EQ(traffic.sent, 4);
      EXPECT_EQ(traffic.received, 4);
      device.launch(compute, add, table);
    }
  });
  EXPECT_EQ(outcome, Outcome());
  EXPECT_EQ(*memories[0].at(0), 23);
  EXPECT_EQ(*memories[1].at(0), 13);
}

TEST_P(DeviceConformance, ReductionsMayBeInPlace) {
  constexpr int64_t ranks = 3;
  Collective sum = makeCollective("all_reduce", {2, 2, 2});
  ASSERT_TRUE(sum.isAllReduce());
  int64_t length = elementCount(sum.parts[0].dstShapes.at(0));
  ASSERT_EQ(sum.parts[0].dtype, DType::I32);
  Devices all(GetParam(), ranks, {sum});
  std::vector<Integers> memories;
  for (const auto &device : all.devices)
    memories.emplace_back(*device, 1, length).fill(0, 1);
  Outcome outcome = all.run([&](int64_t rank, Device &device) {
    for (int round = 0; round < 3; ++round) {
      device.wait(communication, device.record(compute));
      device.start(communication, {0, 0, {{0, 0}}}, memories[rank].table);
      device.waitFor(compute, 0);
    }
  });
  EXPECT_EQ(outcome, Outcome());
  for (const Integers &memory : memories)
    for (int64_t i = 0; i < length; ++i)
      EXPECT_EQ(memory.at(0)[i], 27 * (i + 1));
}

TEST_P(DeviceConformance, ErrorsComeOutByTheEnd) {
  Devices all(GetParam(), 2);
  Call lose{{}, {}, [](auto, auto) { throw Error("out of luck"); }};
  Outcome outcome = all.run([&](int64_t rank, Device &device) {
    if (rank == 1)
      device.call(compute, lose, {});
  });
  EXPECT_EQ(outcome.errors, 1);
  EXPECT_EQ(all.run([](int64_t, Device &) {}), Outcome());
}

TEST_P(DeviceConformance, AStoppedRunWaitsForNothing) {
  Devices all(GetParam(), 2, {makeSend(0, 1)});
  std::vector<Integers> memories;
  for (const auto &device : all.devices)
    memories.emplace_back(*device, 1, 1);
  Outcome outcome = all.run([&](int64_t rank, Device &device) {
    if (rank == 1)
      throw Error("no receiver");
    device.start(communication, {0, 0, {{0, {}}}}, memories[0].table);
    device.waitFor(compute, 0);
  });
  EXPECT_EQ(outcome, (Outcome{1, 1}));
}

TEST_P(DeviceConformance, RanksThatNeverMeetAreAnError) {
  Devices all(GetParam(), 2, {makeSend(0, 1), makeSend(1, 0)});
  std::vector<Integers> memories;
  for (const auto &device : all.devices)
    memories.emplace_back(*device, 1, 1);
  Outcome outcome = all.run([&](int64_t rank, Device &device) {
    device.start(communication, {rank, 0, {{0, {}}}}, memories[rank].table);
    device.waitFor(compute, 0);
  });
  EXPECT_EQ(outcome.errors, 1);
}

} // namespace whale::runtime::test
