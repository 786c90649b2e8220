//===- MessageTransportTest.cpp - Ranks in several processes --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The transport between processes, by UCX or MPI. All processes are in this
// one: with UCX each has its own worker and communication thread, and they
// exchange addresses by a barrier; MPI has one process with all ranks.
//
// It runs the conformance tests of transports with 2 and 16 processes. Further
// ones: an all-reduce of many chunks, simulated links, an abort while the
// library still uses memory, and files that stay open. Tests of links sleep for
// up to 50 ms and check lower bounds. What needs real processes is in
// ProcessesTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "transport/message/MessageTransport.h"
#include "Networks.h"
#include "TransportConformance.h"
#include "TransportScenario.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <semaphore>
#include <thread>

using namespace whale::runtime;
using namespace whale::runtime::test;

namespace {

using MoverMaker = std::function<std::unique_ptr<Mover>(const Exchange &)>;

/// The transports of several processes, all in this one: each with a worker
/// and a communication thread of its own.
class Processes : public Transport {
public:
  Processes(const whale::format::Program &program, int64_t count,
            const Network &network = nullptr,
            const MoverMaker &makeMover = createUcxMover) {
    count = std::min(count, static_cast<int64_t>(program.ranks.size()));
    processOfRank = RankMap::inRuns(program.ranks.size(), count, 0).processOf;
    std::vector<std::string> given(count);
    std::barrier all(count);
    transports.resize(count);
    std::vector<std::thread> threads;
    for (int64_t process = 0; process < count; ++process)
      threads.emplace_back([&, process] {
        auto exchange = [&](const std::string &mine) {
          given[process] = mine;
          all.arrive_and_wait();
          std::vector<std::string> copy = given;
          all.arrive_and_wait();
          return copy;
        };
        transports[process] =
            withChannels(createMessageTransport(RankMap(processOfRank, process),
                                                makeMover(exchange), network),
                         program);
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  int64_t addChannels(const Channels &channels, int64_t end) override {
    int64_t first = 0;
    for (const auto &transport : transports)
      first = transport->addChannels(channels, end);
    return first;
  }
  void dropChannels(int64_t first) override {
    for (const auto &transport : transports)
      transport->dropChannels(first);
  }
  using Transport::start;
  Ticket start(int64_t rank, int64_t channel,
               std::span<const PartBuffers> parts) override {
    return of(rank).start(rank, channel, parts);
  }
  Ticket startMessages(int64_t rank, std::span<const RankMessage> sends,
                       std::span<const RankMessage> receives) override {
    return of(rank).startMessages(rank, sends, receives);
  }
  bool test(int64_t rank, const Ticket &ticket) override {
    return of(rank).test(rank, ticket);
  }
  Traffic wait(int64_t rank, const Ticket &ticket) override {
    return of(rank).wait(rank, ticket);
  }
  void finish(int64_t rank) override { of(rank).finish(rank); }
  void abort() override {
    for (const auto &transport : transports)
      transport->abort();
  }
  bool aborted() const override {
    return std::ranges::all_of(
        transports, [](const auto &each) { return each->aborted(); });
  }
  bool settle() override {
    bool isSettled = true;
    for (const auto &transport : transports)
      isSettled &= transport->settle();
    return isSettled;
  }
  void reset() override {
    for (const auto &transport : transports)
      transport->reset();
  }

  Transport &of(int64_t rank) { return *transports[processOfRank[rank]]; }
  void end(int64_t process) { transports[process].reset(); }

private:
  std::vector<int64_t> processOfRank;
  std::vector<std::unique_ptr<Transport>> transports;
};

TransportMaker makeProcesses(int64_t count) {
  return [count](const whale::format::Program &program) {
    return std::make_unique<Processes>(program, count);
  };
}

INSTANTIATE_TEST_SUITE_P(Ucx, TransportConformance,
                         testing::Values(makeProcesses(2), makeProcesses(16)));
INSTANTIATE_TEST_SUITE_P(Ucx, DirectTransport,
                         testing::Values(makeProcesses(2), makeProcesses(16)));

/// Tags for two channels between eight ranks of each process, where MPI has
/// millions.
class FewTags : public Mover {
public:
  explicit FewTags(const Exchange &exchange)
      : mover(createUcxMover(exchange)) {}
  Tag maxTag() const override { return 511; }
  void send(int64_t process, Tag tag, const void *data, size_t bytes,
            bool isSynchronous, int64_t &pending) override {
    EXPECT_LE(tag, maxTag());
    mover->send(process, tag, data, bytes, isSynchronous, pending);
  }
  void receive(int64_t process, Tag tag, void *data, size_t bytes,
               int64_t &pending) override {
    mover->receive(process, tag, data, bytes, pending);
  }
  bool progress() override { return mover->progress(); }
  void sleep() override { mover->sleep(); }
  void wake() override { mover->wake(); }
  const std::string &lossOf(int64_t process) const override {
    return mover->lossOf(process);
  }
  void flush() override { mover->flush(); }
  bool cancel() override { return mover->cancel(); }

private:
  const std::unique_ptr<Mover> mover;
};

std::unique_ptr<Transport>
makeWithFewTags(const whale::format::Program &program) {
  return std::make_unique<Processes>(
      program, 2, nullptr, [](const Exchange &exchange) {
        return std::make_unique<FewTags>(exchange);
      });
}

INSTANTIATE_TEST_SUITE_P(FewTags, TransportConformance,
                         testing::Values(makeWithFewTags));

/// MPI is one for all of a process, so that all ranks are in this one.
std::unique_ptr<Transport> makeMpi(const whale::format::Program &program) {
  auto exchange = [](const std::string &mine) {
    return std::vector<std::string>{mine};
  };
  return withChannels(
      createMessageTransport(RankMap::inRuns(program.ranks.size(), 1, 0),
                             createMpiMover(exchange)),
      program);
}

INSTANTIATE_TEST_SUITE_P(Mpi, TransportConformance, testing::Values(makeMpi));

/// The elements of an all-reduce that takes many chunks of each slice.
TEST(MessageTransport, ReducesManyChunks) {
  constexpr int64_t ranks = 3, count = 1'000'003;
  std::vector<int64_t> shares = {count, 0, 0};
  whale::format::Program program =
      programOf(ranks, {makeCollective("all_reduce", shares)});
  for (bool inPlace : {false, true}) {
    Processes transport(program, ranks);
    std::vector<std::vector<int32_t>> src(ranks), dst(ranks);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      dst[rank].resize(count);
      for (int64_t i = 0; i < count; ++i)
        src[rank].push_back(static_cast<int32_t>(i * (rank + 1)));
    }
    Outcome outcome = runRanks(transport, ranks, [&](int64_t rank) {
      void *to = inPlace ? src[rank].data() : dst[rank].data();
      run(transport, rank, 0, src[rank].data(), to);
    });
    EXPECT_EQ(outcome, Outcome());
    for (int64_t rank = 0; rank < ranks; ++rank)
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ((inPlace ? src : dst)[rank][i], static_cast<int32_t>(i * 6));
  }
}

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Linked : public testing::TestWithParam<int64_t> {};

TEST_P(Linked, TransfersTakeTheirTimeOneAfterTheOther) {
  whale::format::Program program =
      programOf(2, {makeCollective("send_recv", {1, 1})});
  Processes transport(program, GetParam(), networkOf(2, 0.02));
  std::array<int32_t, 2> sent = {1, 2}, received = {};
  std::atomic<int> tooEarly = 0;
  auto begin = Clock::now();
  EXPECT_EQ(runRanks(transport, 2,
                     [&](int64_t rank) {
                       std::array<Ticket, 2> tickets;
                       for (Ticket &ticket : tickets)
                         ticket = transport.start(rank, 0, &sent[rank],
                                                  &received[rank]);
                       tooEarly += transport.test(rank, tickets[0]) &&
                                   Clock::now() - begin < milliseconds(20);
                       transport.wait(rank, tickets[1]);
                       tooEarly += Clock::now() - begin < milliseconds(40);
                       EXPECT_TRUE(transport.test(rank, tickets[0]));
                       transport.wait(rank, tickets[0]);
                     }),
            Outcome());
  EXPECT_EQ(tooEarly, 0);
}

TEST_P(Linked, ATransferBeginsWithTheLastToComeThere) {
  whale::format::Program program =
      programOf(2, {makeCollective("all_reduce", {1, 1})});
  Processes transport(program, GetParam(), networkOf(2, 0.02));
  std::atomic<int> tooEarly = 0;
  auto begin = Clock::now();
  EXPECT_EQ(runRanks(transport, 2,
                     [&](int64_t rank) {
                       int32_t value[2] = {1, 2};
                       if (rank == 1)
                         std::this_thread::sleep_for(milliseconds(50));
                       run(transport, rank, 0, value, value);
                       // In one round.
                       tooEarly += Clock::now() - begin < milliseconds(70);
                     }),
            Outcome());
  EXPECT_EQ(tooEarly, 0);
}

TEST_P(Linked, AnAbortWakesThoseWhoWaitForLinks) {
  whale::format::Program program =
      programOf(2, {makeCollective("all_reduce", {1, 1})});
  Processes transport(program, GetParam(), networkOf(2, 1e3));
  std::thread user([&] {
    std::this_thread::sleep_for(milliseconds(20));
    transport.abort();
  });
  EXPECT_EQ(runRanks(transport, 2,
                     [&](int64_t rank) {
                       int32_t value[2] = {1, 2};
                       run(transport, rank, 0, value, value);
                     }),
            (Outcome{0, 2}));
  user.join();
}

INSTANTIATE_TEST_SUITE_P(Ucx, Linked, testing::Values(1, 2));

/// Nothing arrives, and messages keep their memory.
class Mute : public Mover {
public:
  Tag maxTag() const override { return ~Tag(0); }
  void send(int64_t, Tag, const void *, size_t, bool, int64_t &count) override {
    ++count;
  }
  void receive(int64_t, Tag, void *, size_t, int64_t &count) override {
    ++count;
  }
  bool progress() override { return false; }
  void sleep() override { awake.acquire(); }
  void wake() override { awake.release(); }
  const std::string &lossOf(int64_t) const override { return loss; }
  void flush() override {}
  bool cancel() override { return false; }

private:
  std::counting_semaphore<> awake{0};
  std::string loss;
};

TEST(MessageTransport, MemoryMayStayInUseAfterAnAbort) {
  whale::format::Program program =
      programOf(2, {makeCollective("all_reduce", {1, 1})});
  auto transport = withChannels(
      createMessageTransport(RankMap({0, 1}, 0), std::make_unique<Mute>()),
      program);
  int32_t value = 0;
  transport->start(0, 0, &value, &value);
  EXPECT_TRUE(transport->settle());
  transport->abort();
  EXPECT_FALSE(transport->settle());
}

size_t openFiles() {
  auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

TEST(MessageTransport, LeavesNothingOpen) {
  whale::format::Program program =
      programOf(2, {makeCollective("all_reduce", {1, 1})});
  Processes(program, 2);
  size_t before = openFiles();
  for (int i = 0; i < 5; ++i)
    Processes(program, 2);
  EXPECT_EQ(openFiles(), before);
}

TEST(MessageTransport, WithoutALibraryAMessageIsAnError) {
  whale::format::Program program = programOf(2, {makeSend(0, 1)});
  auto transport = withChannels(
      createMessageTransport(RankMap({0, 1}, 0), createNoMover("no library")),
      program);
  int32_t value = 1;
  auto send = [&] {
    transport->wait(0, transport->start(0, 0, &value, nullptr));
  };
  EXPECT_THROW(send(), Error);
  transport->abort();
  EXPECT_TRUE(transport->settle());
}

} // namespace
