//===- LocalTransportTest.cpp - Ranks as threads, and their links ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The transport between ranks that are threads of one process, with and without
// a simulated network. It runs all conformance tests of transports, each
// without links and with slight ones.
//
// The seconds that a network adds are compared with a calculation: all-reduces
// as rings, the cells of other collectives one after the other, each by its
// slowest link. Transfers must not be done before their time, and the links
// must work while ranks compute. These tests sleep for up to 50 ms and check
// lower bounds, except for one that expects two transfers of 20 ms within 45
// ms.
//
//===----------------------------------------------------------------------===//

#include "Networks.h"
#include "TransportConformance.h"
#include "TransportScenario.h"
#include "transport/LinkTimes.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>

using namespace whale::runtime;
using namespace whale::runtime::test;

namespace {

using Clock = std::chrono::steady_clock;

Network slightLinks() { return networkOf(16, 1e-6, 1e9); }

TransportMaker makeLocal(const Network &network) {
  return [network](const whale::format::Program &program) {
    return localTransportOf(program, network);
  };
}

INSTANTIATE_TEST_SUITE_P(Local, TransportConformance,
                         testing::Values(makeLocal(nullptr),
                                         makeLocal(slightLinks())));
INSTANTIATE_TEST_SUITE_P(Local, DirectTransport,
                         testing::Values(makeLocal(nullptr),
                                         makeLocal(slightLinks())));
INSTANTIATE_TEST_SUITE_P(Local, StuckTransport,
                         testing::Values(makeLocal(nullptr),
                                         makeLocal(slightLinks())));

/// A millisecond, and 10 ms for 8 bytes.
Network slowNetwork() { return networkOf(4, 1e-3, 800); }

TEST(LinkTimesTest, FewBytesOfAllReducesGoWhole) {
  // 3 ranks, 12 bytes: to each of the two others.
  Collective sum = makeCollective("all_reduce", {1, 1, 1});
  auto seconds = linkSeconds(sum, slowNetwork());
  for (int64_t rank : {0, 1, 2})
    EXPECT_DOUBLE_EQ(seconds.at(rank), 1e-3 + 2 * 12 * 1.25e-3);
  sum = makeCollective("all_reduce", {8});
  EXPECT_EQ(linkSeconds(sum, slowNetwork()).at(0), 0);
}

TEST(LinkTimesTest, OnlyGroupsTakeTime) {
  // Rank 0 sends 8 bytes to ranks 1 and 2, rank 3 takes its own.
  Collective channel = makeCollective("broadcast", {1, 1, 0});
  channel.participants.push_back(3);
  channel.parts[0].srcShapes[3] = channel.parts[0].dstShapes[3] = {2};
  channel.parts[0].cells[3] = std::make_shared<std::vector<Cell>>(
      std::vector<Cell>{{{0}, {2}, {{3, {0}}}}});
  auto seconds = linkSeconds(channel, slowNetwork());
  for (int64_t rank : {0, 1, 2})
    EXPECT_DOUBLE_EQ(seconds.at(rank), 2 * 1e-3 + 8 * 1.25e-3);
  EXPECT_EQ(seconds.at(3), 0);
  // What comes in does not wait for what goes out.
  seconds = linkSeconds(makeCollective("send_recv", {2, 2}), slowNetwork());
  EXPECT_DOUBLE_EQ(seconds.at(0), 1e-3 + 8 * 1.25e-3);
  EXPECT_EQ(linkSeconds(makeCollective("local_slice", {2, 2}), slowNetwork()),
            (std::map<int64_t, double>{{0, 0}, {1, 0}}));
}

TEST(LocalTransportTest, ATransferTakesItsTimeOnTheLinks) {
  whale::format::Program program = programOf(2, {makeSend(0, 1)});
  auto transport = localTransportOf(program, networkOf(2, 0.02));
  int32_t sent = 1, received = 0;
  std::atomic<int> tooEarly = 0;
  EXPECT_EQ(runRanks(*transport, 2,
                     [&](int64_t rank) {
                       auto begin = Clock::now();
                       Ticket first, second;
                       for (Ticket *ticket : {&first, &second})
                         *ticket = transport->start(rank, 0, &sent, &received);
                       tooEarly +=
                           transport->test(rank, first) &&
                           Clock::now() - begin < std::chrono::milliseconds(20);
                       transport->wait(rank, second);
                       // One goes after the other.
                       tooEarly +=
                           Clock::now() - begin < std::chrono::milliseconds(40);
                       EXPECT_TRUE(transport->test(rank, first));
                       transport->wait(rank, first);
                     }),
            Outcome());
  EXPECT_EQ(tooEarly, 0);
}

TEST(LocalTransportTest, LinksWorkWhileRanksCompute) {
  whale::format::Program program = programOf(2, {makeSend(0, 1)});
  auto transport = localTransportOf(program, networkOf(2, 0.02));
  int32_t sent[] = {1, 2}, received[] = {0, 0};
  std::barrier posted(2), moved(2);
  EXPECT_EQ(runRanks(*transport, 2,
                     [&](int64_t rank) {
                       std::vector<Ticket> tickets;
                       for (int i : {0, 1})
                         tickets.push_back(
                             transport->start(rank, 0, &sent[i], &received[i]));
                       posted.arrive_and_wait();
                       std::this_thread::sleep_for(
                           std::chrono::milliseconds(45));
                       // All that is left to do is to move the data.
                       if (rank == 1) {
                         EXPECT_TRUE(transport->test(rank, tickets[1]));
                         EXPECT_TRUE(transport->test(rank, tickets[0]));
                       }
                       moved.arrive_and_wait();
                       EXPECT_TRUE(transport->test(rank, tickets[1]));
                       for (const Ticket &ticket : tickets)
                         transport->wait(rank, ticket);
                     }),
            Outcome());
  EXPECT_EQ(received[1], 2);
}

/// A rank that sends waits, while the one that receives is at its work.
void sendToOneAtWork(bool postsFirst) {
  whale::format::Program program = programOf(2, {makeSend(0, 1)});
  auto transport = localTransportOf(program, nullptr);
  int32_t sent = 7, received = 0;
  std::promise<void> posted, taken;
  EXPECT_EQ(
      runRanks(*transport, 2,
               [&](int64_t rank) {
                 if (rank == 0) {
                   if (postsFirst)
                     posted.get_future().wait();
                   run(*transport, rank, 0, &sent, nullptr);
                   taken.set_value();
                   return;
                 }
                 if (!postsFirst)
                   // The other one is blocked by then, most times.
                   std::this_thread::sleep_for(std::chrono::milliseconds(20));
                 Ticket ticket = transport->start(rank, 0, nullptr, &received);
                 posted.set_value();
                 EXPECT_EQ(
                     taken.get_future().wait_for(std::chrono::seconds(60)),
                     std::future_status::ready);
                 EXPECT_EQ(received, 7);
                 transport->wait(rank, ticket);
               }),
      Outcome());
}

TEST(LocalTransportTest, WhoWaitsMovesDataOfRanksAtWork) {
  sendToOneAtWork(/*postsFirst=*/true);
  sendToOneAtWork(/*postsFirst=*/false);
}

TEST(LocalTransportTest, AbortWakesThoseWhoWaitForLinks) {
  whale::format::Program program = programOf(2, {makeSend(0, 1)});
  auto transport = localTransportOf(program, networkOf(2, 1e3));
  std::thread user;
  int32_t sent = 1, received = 0;
  EXPECT_EQ(runRanks(*transport, 2,
                     [&](int64_t rank) {
                       if (rank == 0)
                         user = std::thread([&] {
                           std::this_thread::sleep_for(
                               std::chrono::milliseconds(20));
                           transport->abort();
                         });
                       run(*transport, rank, 0, &sent, &received);
                     }),
            (Outcome{0, 2}));
  user.join();
}

} // namespace
