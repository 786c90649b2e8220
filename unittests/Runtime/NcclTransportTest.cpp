//===- NcclTransportTest.cpp - NCCL's transport on a test machine ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The transport by NCCL, on the test machine's GPUs and its NCCL
// (runtime/cuda/test/Machine.h), with ranks as threads. An adapter brings the
// buffers of a test to the GPUs and back, so that the conformance tests of
// transports run, with two seeds; what NCCL does not carry goes by the local
// transport.
//
// Its own tests are about ends: which communicators are destroyed or aborted,
// in which order and how many, after success, an error, or a rank that does not
// come. A large all-reduce must send the fewest bytes. Nothing may be left
// allocated, and the machine must have found no fault.
//
//===----------------------------------------------------------------------===//

#include "transport/nccl/NcclTransport.h"
#include "TransportConformance.h"
#include "TransportScenario.h"
#include "cuda/test/Machine.h"

#include <atomic>
#include <barrier>
#include <cstring>
#include <thread>

using namespace whale::runtime;
using namespace whale::runtime::test;

namespace {

using cuda::test::Machine;
using cuda::test::MachineOptions;

std::vector<std::string> alone(const std::string &mine) { return {mine}; }

std::unique_ptr<NcclTransport>
makeNccl(const whale::format::Program &program, Machine &machine,
         std::vector<std::shared_ptr<cuda::Gpu>> gpus, Exchange exchange) {
  return withChannels(createNcclTransport(machine.libraries(), std::move(gpus),
                                          std::move(exchange)),
                      program);
}

/// Processes that have read those channels only that their ranks are in.
TEST(NcclTransportTest, ProcessesMayLackChannels) {
  auto program = programOf(4, {makeSend(0, 1), makeSend(2, 3), makeSend(1, 2)});
  Machine machine({.gpus = 4});
  std::barrier all(2);
  std::vector<std::string> given(2);
  std::vector<std::thread> processes;
  for (int process : {0, 1})
    processes.emplace_back([&, process] {
      std::vector<std::shared_ptr<cuda::Gpu>> gpus(4);
      for (int rank : {2 * process, 2 * process + 1})
        gpus[rank] = std::make_shared<cuda::Gpu>(machine.libraries(), rank);
      auto exchange = [&, process](const std::string &mine) {
        given[process] = mine;
        all.arrive_and_wait();
        std::vector<std::string> copy = given;
        all.arrive_and_wait();
        return copy;
      };
      Channels own = program.channels;
      own.erase(1 - process);
      auto transport = createNcclTransport(machine.libraries(), gpus, exchange);
      transport->addChannels(own, 3);
      EXPECT_TRUE(transport->carriesMessages());
      transport->connectMessages();
    });
  for (std::thread &process : processes)
    process.join();
  // Those of each pair, and those of all.
  EXPECT_EQ(machine.destroyed, 3 * 2 + 4);
  EXPECT_EQ(machine.aborted, 0);
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
}

/// Where one of them cannot begin a communicator, all learn of it, and go on
/// with those that they have; the next one is made.
TEST(NcclTransportTest, ProcessesRefuseTogether) {
  Machine machine({.gpus = 2, .failingCommunicator = 2});
  std::barrier all(2);
  std::vector<std::string> given(2), refusals(2);
  std::vector<std::thread> processes;
  for (int process : {0, 1})
    processes.emplace_back([&, process] {
      std::vector<std::shared_ptr<cuda::Gpu>> gpus(2);
      gpus[process] = std::make_shared<cuda::Gpu>(machine.libraries(), process);
      auto exchange = [&, process](const std::string &mine) {
        given[process] = mine;
        all.arrive_and_wait();
        std::vector<std::string> copy = given;
        all.arrive_and_wait();
        return copy;
      };
      auto transport = createNcclTransport(machine.libraries(), gpus, exchange);
      // In another order, so that messages have a communicator of their own.
      Collective returning = makeSend(1, 0);
      returning.groups = {{1, 0}};
      transport->addChannels(programOf(2, {returning}).channels, 1);
      refusals[process] = transport->connectMessages();
      EXPECT_FALSE(transport->aborted());
      EXPECT_EQ(transport->connectMessages(), "");
      transport->settle();
    });
  for (std::thread &process : processes)
    process.join();
  EXPECT_NE(refusals[0].find("ncclCommInitRankConfig"), std::string::npos)
      << refusals[0];
  EXPECT_EQ(refusals[0], refusals[1]);
  EXPECT_EQ(machine.aborted, 1);
  EXPECT_EQ(machine.destroyed, 2 + 2);
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
}

TEST(NcclTransportTest, NamesTheCommunicatorThatFails) {
  Machine machine({.gpus = 2, .failingCommunicator = 2});
  std::vector<std::shared_ptr<cuda::Gpu>> gpus;
  for (int rank : {0, 1})
    gpus.push_back(std::make_shared<cuda::Gpu>(machine.libraries(), rank));
  auto transport = createNcclTransport(
      machine.libraries(), gpus,
      [](const std::string &mine) { return std::vector{mine}; });
  Collective returning = makeSend(1, 0);
  returning.groups = {{1, 0}};
  std::string message;
  try {
    transport->addChannels(programOf(2, {makeSend(0, 1), returning}).channels,
                           2);
  } catch (const Error &error) {
    message = error.what();
  }
  EXPECT_EQ(message.find("the communicator of the ranks 1,0 cannot be made: "
                         "NCCL: ncclCommInitRankConfig"),
            0u)
      << message;
  transport->settle();
}

/// A transport with the machine that its ranks are on, in threads of one
/// process: brings the buffers to the GPUs and back. What NCCL does not carry
/// goes through the host.
class OnMachine : public Transport {
public:
  OnMachine(const whale::format::Program &program,
            const MachineOptions &options)
      : program(program), machine(options), ranks(program.ranks.size()),
        local(localTransportOf(program)) {
    std::vector<std::shared_ptr<cuda::Gpu>> given;
    for (int rank = 0; rank < options.gpus; ++rank) {
      auto gpu = std::make_shared<cuda::Gpu>(machine.libraries(), rank);
      ranks[rank].gpu = gpu.get();
      given.push_back(std::move(gpu));
    }
    inner = makeNccl(program, machine, given, alone);
    inner->connectMessages();
  }
  ~OnMachine() override {
    inner->settle();
    bool isWell = !inner->aborted();
    int64_t aborted = machine.aborted;
    drop();
    inner.reset();
    // Nothing is aborted at the end of what went well.
    if (isWell)
      EXPECT_EQ(machine.aborted, aborted);
    EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
    EXPECT_TRUE(machine.memory.empty());
  }

  int64_t addChannels(const Channels &channels, int64_t end) override {
    return local->addChannels(channels, end);
  }
  void dropChannels(int64_t first) override { local->dropChannels(first); }
  using Transport::start;
  Ticket start(int64_t rank, int64_t channel,
               std::span<const PartBuffers> parts) override;
  Ticket startMessages(int64_t rank, std::span<const RankMessage> sends,
                       std::span<const RankMessage> receives) override;
  bool test(int64_t rank, const Ticket &ticket) override {
    Use &use = ranks[rank].uses.at(ticket.number);
    return use.isDone ||
           (carries(ticket) ? inner->test(rank, use.ticket) && take(rank, use)
                            : local->test(rank, use.ticket));
  }
  Traffic wait(int64_t rank, const Ticket &ticket) override {
    Use &use = ranks[rank].uses.at(ticket.number);
    if (!carries(ticket))
      return local->wait(rank, use.ticket);
    Traffic traffic = inner->wait(rank, use.ticket);
    take(rank, use);
    return traffic;
  }
  void finish(int64_t rank) override { local->finish(rank); }
  void abort() override {
    inner->abort();
    local->abort();
  }
  bool aborted() const override { return inner->aborted(); }
  bool settle() override { return inner->settle(); }
  void reset() override {
    inner->settle();
    drop();
    inner->reset();
    local->reset();
  }

  const Machine &gpus() const { return machine; }

  /// How many transfers went by NCCL.
  std::atomic<int64_t> count = 0;

private:
  struct Use {
    Ticket ticket;
    /// By part of the channel, on the GPU, and where what comes is wanted.
    struct OfPart {
      void *src = nullptr, *dst = nullptr, *target = nullptr;
      int64_t bytes = 0;
    };
    std::vector<OfPart> parts;
    bool isDone = false;
    /// Messages on the GPU, and where those that come are wanted.
    std::vector<RankMessage> sends, receives;
    std::vector<void *> targets;
  };
  struct OfRank {
    cuda::Gpu *gpu = nullptr;
    std::map<int64_t, Use> uses;
  };
  bool carries(const Ticket &ticket) const {
    return ticket.channel == Ticket::ofMessages ||
           inner->carries(ticket.channel);
  }
  void *bring(cuda::Gpu &gpu, const void *data, int64_t bytes) {
    auto *there = reinterpret_cast<void *>(gpu.allocate(bytes));
    std::memcpy(there, data, static_cast<size_t>(bytes));
    return there;
  }
  bool take(int64_t rank, Use &use) {
    for (const Use::OfPart &part : use.parts)
      if (part.dst && !use.isDone)
        std::memcpy(part.target, part.dst, static_cast<size_t>(part.bytes));
    for (size_t i = 0; i < use.receives.size(); ++i)
      std::memcpy(use.targets[i], use.receives[i].data,
                  static_cast<size_t>(use.receives[i].bytes));
    use.isDone = true;
    release(*ranks[rank].gpu, use);
    return true;
  }
  static void release(cuda::Gpu &gpu, Use &use) {
    for (const Use::OfPart &part : use.parts)
      for (void *memory : {part.src, part.dst == part.src ? nullptr : part.dst})
        if (memory)
          gpu.driver.memFree.function(cuda::addressOf(memory));
    use.parts.clear();
    for (std::vector<RankMessage> *list : {&use.sends, &use.receives}) {
      for (const RankMessage &message : *list)
        gpu.driver.memFree.function(cuda::addressOf(message.data));
      list->clear();
    }
  }
  /// What a run that was aborted has left.
  void drop() {
    for (OfRank &rank : ranks) {
      rank.gpu->attach();
      for (auto &[number, use] : rank.uses)
        release(*rank.gpu, use);
      rank.uses.clear();
    }
  }

  const whale::format::Program &program;
  Machine machine;
  std::vector<OfRank> ranks;
  std::unique_ptr<NcclTransport> inner;
  std::unique_ptr<Transport> local;
};

Ticket OnMachine::start(int64_t rank, int64_t channel,
                        std::span<const PartBuffers> parts) {
  OfRank &its = ranks[rank];
  auto number = static_cast<int64_t>(its.uses.size());
  if (!inner->carries(channel)) {
    Ticket ticket = local->start(rank, channel, parts);
    its.uses[number].ticket = ticket;
    return {channel, number};
  }
  ++count;
  its.gpu->attach();
  const Collective &collective = *program.channels.at(channel);
  Use &use = its.uses[number];
  std::vector<PartBuffers> there;
  for (size_t i = 0; i < parts.size(); ++i) {
    const ChannelPart &part = collective.parts[i];
    auto [src, dst] = parts[i];
    auto bytesOf = [&](const std::map<int64_t, whale::format::Shape> &shapes) {
      auto it = shapes.find(rank);
      return it == shapes.end()
                 ? 0
                 : elementCount(it->second) * byteSize(part.dtype);
    };
    Use::OfPart &own = use.parts.emplace_back();
    own.target = dst;
    own.bytes = bytesOf(part.dstShapes);
    if (src)
      own.src = bring(*its.gpu, src, bytesOf(part.srcShapes));
    if (dst)
      own.dst = dst == src ? own.src : bring(*its.gpu, dst, own.bytes);
    there.push_back({own.src, own.dst});
  }
  use.ticket = inner->start(rank, channel, there);
  return {channel, number};
}

Ticket OnMachine::startMessages(int64_t rank,
                                std::span<const RankMessage> sends,
                                std::span<const RankMessage> receives) {
  OfRank &its = ranks[rank];
  its.gpu->attach();
  auto number = static_cast<int64_t>(its.uses.size());
  Use &use = its.uses[number];
  use.sends.assign(sends.begin(), sends.end());
  use.receives.assign(receives.begin(), receives.end());
  for (const RankMessage &message : receives)
    use.targets.push_back(message.data);
  for (std::vector<RankMessage> *list : {&use.sends, &use.receives})
    for (RankMessage &message : *list)
      message.data = bring(*its.gpu, message.data, message.bytes);
  use.ticket = inner->startMessages(rank, use.sends, use.receives);
  return {Ticket::ofMessages, number};
}

TransportMaker onMachine(uint64_t seed) {
  return [seed](const whale::format::Program &program) {
    return std::make_unique<OnMachine>(
        program,
        MachineOptions{.seed = seed,
                       .gpus = static_cast<int>(program.ranks.size())});
  };
}

INSTANTIATE_TEST_SUITE_P(Nccl, TransportConformance,
                         testing::Values(onMachine(0), onMachine(1)));

TEST(NcclTransportTest, AnErrorOfNcclEndsTheRunAndTheNextOneIsWell) {
  auto program = programOf(3, {makeCollective("all_gather", {2, 0, 3})});
  OnMachine transport(program, {.gpus = 3, .failingGroup = 1});
  auto job = [&](int64_t rank) {
    int32_t src[3] = {1, 2, 3}, dst[5];
    run(transport, rank, 0, src, dst);
  };
  Outcome outcome = runRanks(transport, 3, job);
  EXPECT_GE(outcome.errors, 1);
  EXPECT_EQ(outcome.errors + outcome.aborted, 3);
  EXPECT_EQ(runRanks(transport, 3, job), Outcome());
}

/// Ranks that are in two groups, and so have two communicators.
const std::vector<Collective> &inTwoGroups() {
  static const std::vector<Collective> channels = [] {
    Collective all = makeCollective("all_reduce", {4, 0, 0});
    Collective pair = all;
    pair.groups = {{0, 1}};
    pair.participants = {0, 1};
    ChannelPart &part = pair.parts.front();
    for (auto *shapes : {&part.srcShapes, &part.dstShapes})
      shapes->erase(2);
    return std::vector<Collective>{all, pair};
  }();
  return channels;
}

TEST(NcclTransportTest, CommunicatorsEndInOrder) {
  auto program = programOf(3, inTwoGroups());
  Machine machine({.gpus = 3});
  std::vector<std::shared_ptr<cuda::Gpu>> gpus;
  for (int rank = 0; rank < 3; ++rank)
    gpus.push_back(std::make_shared<cuda::Gpu>(machine.libraries(), rank));
  auto make = [&] { return makeNccl(program, machine, gpus, alone); };
  make().reset();
  EXPECT_EQ(machine.destroyed, 5);
  EXPECT_EQ(machine.aborted, 0);
  // After an error they are aborted, those of a rank at once.
  auto transport = make();
  transport->abort();
  EXPECT_TRUE(transport->settle());
  transport.reset();
  EXPECT_EQ(machine.destroyed, 5);
  EXPECT_EQ(machine.aborted, 5);
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
}

TEST(NcclTransportTest, AnOldNcclAbortsOneAfterTheOther) {
  auto program = programOf(3, inTwoGroups());
  OnMachine transport(program, {.gpus = 3, .ncclVersion = 21400});
  transport.abort();
  EXPECT_TRUE(transport.settle());
  EXPECT_EQ(transport.gpus().aborted, 5);
}

TEST(NcclTransportTest, WaitingForARankThatDoesNotComeIsAborted) {
  auto program = programOf(2, {makeCollective("all_gather", {2, 3})});
  Machine machine({.gpus = 2});
  std::vector<std::shared_ptr<cuda::Gpu>> gpus = {
      std::make_shared<cuda::Gpu>(machine.libraries(), 0), nullptr};
  // The other process says which GPU it has, and nothing more.
  auto exchange = [calls = 0](const std::string &mine) mutable {
    std::string its = calls++ == 0 ? "1 " + std::string(32, 'a') : "";
    return std::vector<std::string>{mine, its};
  };
  auto transport = createNcclTransport(machine.libraries(), gpus, exchange);
  std::thread other([&] { transport->abort(); });
  EXPECT_THROW(transport->addChannels(program.channels, 1), Aborted);
  other.join();
  transport.reset();
  EXPECT_EQ(machine.aborted, 1);
  EXPECT_EQ(machine.takeFaults(), std::vector<std::string>());
}

TEST(NcclTransportTest, ProcessesOfDifferentHostIdsMayShareAGpu) {
  Machine machine({.gpus = 1});
  std::vector<std::shared_ptr<cuda::Gpu>> gpus = {
      std::make_shared<cuda::Gpu>(machine.libraries(), 0), nullptr};
  auto carries = [&](const char *own, const std::string &other) {
    setenv("NCCL_HOSTID", own, 1);
    auto exchange = [&](const std::string &mine) {
      return std::vector<std::string>{mine, "1 " + std::string(32, '0') + "-" +
                                                other};
    };
    auto transport = createNcclTransport(machine.libraries(), gpus, exchange);
    unsetenv("NCCL_HOSTID");
    return transport->carriesMessages();
  };
  EXPECT_FALSE(carries("a b", "612062"));
  EXPECT_TRUE(carries("a b", "62"));
  EXPECT_FALSE(carries("", ""));
}

TEST(NcclTransportTest, ALargeAllReduceMovesTheLeastBytes) {
  constexpr int64_t ranks = 3, count = 3 * 64 * 1024;
  Collective sum = makeCollective("all_reduce", {count, 0, 0});
  auto program = programOf(ranks, {sum});
  OnMachine transport(program, {.gpus = ranks});
  std::vector<std::vector<int32_t>> values;
  for (int32_t rank = 0; rank < ranks; ++rank)
    values.emplace_back(count, rank + 1);
  std::atomic<int64_t> sent = 0;
  EXPECT_EQ(runRanks(transport, ranks,
                     [&](int64_t rank) {
                       int32_t *own = values[rank].data();
                       sent += run(transport, rank, 0, own, own).sent;
                     }),
            Outcome());
  for (const std::vector<int32_t> &each : values)
    EXPECT_EQ(each, std::vector<int32_t>(count, 6));
  EXPECT_EQ(sent, 2 * (ranks - 1) * count * 4);
  EXPECT_EQ(transport.count, ranks);
}

} // namespace
