//===- TransportConformance.cpp - What every transport must do ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What every transport must do; TransportConformance.h says how one gains these
// tests. Ranks are threads. All kinds of collectives, with equal, unequal and
// empty shares, and hundreds of random ones of all element types and reductions
// are compared in all bits with the oracle of TransportScenario.cpp.
//
// The other tests are about order: uses of a channel meet in the order of their
// starts, a wait moves other transfers on, an abort wakes all who wait. Those
// of StuckTransport expect an error where ranks wait for one another, not of
// every transport.
//
//===----------------------------------------------------------------------===//

#include "TransportConformance.h"

#include "TransportScenario.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <deque>
#include <sched.h>
#include <thread>

using namespace whale::runtime;
using namespace whale::runtime::test;

Outcome
whale::runtime::test::runRanks(Transport &transport, int64_t ranks,
                               const std::function<void(int64_t rank)> &job) {
  transport.reset();
  std::atomic<int> errors = 0, aborted = 0;
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        job(rank);
        transport.finish(rank);
      } catch (const Error &) {
        ++errors;
        transport.abort();
      } catch (const Aborted &) {
        ++aborted;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return {errors, aborted};
}

Traffic whale::runtime::test::run(Transport &transport, int64_t rank,
                                  int64_t channel, const void *src, void *dst) {
  return transport.wait(rank, transport.start(rank, channel, src, dst));
}

namespace {

const Outcome allWell;

const char *const kinds[] = {"all_reduce", "all_gather", "reduce_scatter",
                             "all_to_all", "broadcast",  "send_recv",
                             "local_slice"};

/// Runs a channel a few times on all its ranks and compares with the oracle.
void check(Transport &transport, int64_t channel, const Scenario &given) {
  auto ranks = static_cast<int64_t>(given.src.front().size());
  Scenario::Buffers expected = expectedOf(given);
  std::vector<Traffic> traffic(ranks);
  for (int round = 0; round < 2; ++round) {
    Scenario::Buffers src = given.src, dst = given.dst;
    EXPECT_EQ(runRanks(transport, ranks,
                       [&](int64_t rank) {
                         std::vector<PartBuffers> parts =
                             buffersOf(given, src, dst, rank);
                         for (int i = given.inPlace; i < 2; ++i)
                           traffic[rank] = transport.wait(
                               rank, transport.start(rank, channel, parts));
                       }),
              allWell);
    EXPECT_EQ(given.inPlace ? src : dst, expected);
  }
  int64_t sent = 0, received = 0;
  for (const Traffic &entry : traffic) {
    sent += entry.sent;
    received += entry.received;
  }
  EXPECT_EQ(sent, received);
}

/// As above, with one transport for all scenarios of as many ranks.
void check(const TransportMaker &make, const std::vector<Scenario> &given) {
  std::map<size_t, std::vector<const Scenario *>> byRanks;
  for (const Scenario &scenario : given)
    byRanks[scenario.src.front().size()].push_back(&scenario);
  for (const auto &[ranks, scenarios] : byRanks) {
    std::vector<Collective> channels;
    for (const Scenario *scenario : scenarios)
      channels.push_back(scenario->channel);
    whale::format::Program program =
        programOf(static_cast<int64_t>(ranks), channels);
    auto transport = make(program);
    for (size_t i = 0; i < scenarios.size(); ++i) {
      const Collective &channel = channels[i];
      std::string what = channel.kind;
      for (const ChannelPart &part : channel.parts)
        what += " of " + std::string(name(part.dtype)) +
                (part.reduction
                     ? " reduced by " + std::to_string(int(*part.reduction))
                     : "");
      SCOPED_TRACE(what);
      check(*transport, static_cast<int64_t>(i), *scenarios[i]);
    }
  }
}

TEST_P(TransportConformance, RandomCollectives) {
  std::mt19937 random(11);
  std::vector<Scenario> scenarios;
  auto add = [&](DType dtype, std::optional<Reduction> reduction, bool groups) {
    for (int round = 0; round < 3; ++round)
      scenarios.push_back(randomScenario(random, dtype, reduction, groups));
  };
  for (int i = 0; i <= static_cast<int>(DType::C128); ++i) {
    auto dtype = static_cast<DType>(i);
    add(dtype, std::nullopt, false);
    for (int r = 0; r <= static_cast<int>(Reduction::Or); ++r) {
      auto reduction = static_cast<Reduction>(r);
      if (!isAllowed(dtype, reduction))
        continue;
      add(dtype, reduction, false);
      add(dtype, reduction, true);
    }
  }
  check(GetParam(), scenarios);
}

/// Of any types, some with reductions; in some, ranks give or take nothing.
TEST_P(TransportConformance, SeveralPartsInAChannel) {
  std::mt19937 random(5);
  std::vector<Scenario> scenarios;
  for (int i = 0; i < 40; ++i) {
    int64_t ranks = 1 + random() % 6;
    std::vector<Scenario> parts(2 + random() % 5);
    for (Scenario &part : parts) {
      auto dtype = static_cast<DType>(random() % (int(DType::C128) + 1));
      bool isSum = random() % 2 && isAllowed(dtype, Reduction::Sum);
      part = randomScenario(
          random, dtype, isSum ? std::optional(Reduction::Sum) : std::nullopt,
          /*groups=*/false, ranks);
    }
    scenarios.push_back(join(std::move(parts)));
  }
  // Large ones, and more small ones than a message takes.
  auto add = [&](const char *kind,
                 const std::vector<std::vector<int64_t>> &shares) {
    std::vector<Scenario> parts;
    for (const std::vector<int64_t> &each : shares) {
      Collective channel = makeCollective(kind, each);
      channel.parts[0].dtype = DType::C128;
      parts.push_back(scenarioOf(random, channel, /*inPlace=*/false));
    }
    scenarios.push_back(join(std::move(parts)));
  };
  add("all_to_all", {{3, 0, 5}, {70, 1, 66}, {1, 1, 1}, {0, 0, 65}});
  add("send_recv", std::vector<std::vector<int64_t>>(18, {4000, 10}));
  check(GetParam(), scenarios);
}

TEST_P(TransportConformance, EveryKindWithEveryShare) {
  std::mt19937 random(3);
  const std::vector<int64_t> allShares[] = {
      {0, 5}, {5, 0},       {0, 0},     {0},          {7},     {3, 3},
      {1, 6}, {2, 0, 3, 1}, {0, 0, 70}, {1, 0, 0, 0}, {64, 65}};
  for (const char *kind : kinds)
    for (const std::vector<int64_t> &shares : allShares)
      for (bool inPlace : {false, true}) {
        if (inPlace && std::string(kind) != "all_reduce")
          continue;
        SCOPED_TRACE(std::string(kind) + " " + testing::PrintToString(shares));
        check(GetParam(),
              {scenarioOf(random, makeCollective(kind, shares), inPlace)});
      }
}

TEST_P(TransportConformance, UsesOfAChannelMeetInTheirOrder) {
  // All uses are in flight before the first wait; ranks wait in other orders.
  constexpr int uses = 20;
  for (const char *kind : {"all_reduce", "all_gather", "send_recv"}) {
    SCOPED_TRACE(kind);
    whale::format::Program program =
        programOf(3, {makeCollective(kind, {1, 1, 1})});
    auto transport = GetParam()(program);
    using Values = std::vector<int32_t>;
    std::vector<std::vector<Values>> dst(3, std::vector<Values>(uses));
    EXPECT_EQ(runRanks(*transport, 3,
                       [&](int64_t rank) {
                         std::vector<Values> src(uses);
                         std::vector<Ticket> tickets;
                         for (int use = 0; use < uses; ++use) {
                           int value = static_cast<int>(rank) * 100 + use;
                           src[use] = {value, value, value};
                           dst[rank][use] = {-1, -1, -1};
                           tickets.push_back(
                               transport->start(rank, 0, src[use].data(),
                                                dst[rank][use].data()));
                         }
                         for (int use = 0; use < uses; ++use)
                           transport->wait(
                               rank, tickets[rank == 1 ? uses - 1 - use : use]);
                       }),
              allWell);
    for (int rank = 0; rank < 3; ++rank)
      for (int use = 0; use < uses; ++use) {
        Values expected;
        if (std::string(kind) == "all_reduce")
          expected = Values(3, 300 + 3 * use);
        else if (std::string(kind) == "all_gather")
          expected = {use, 100 + use, 200 + use};
        else
          expected = {(rank + 2) % 3 * 100 + use, -1, -1};
        EXPECT_EQ(dst[rank][use], expected) << rank << " " << use;
      }
  }
}

TEST_P(TransportConformance, AWaitMovesOtherTransfersForward) {
  // Rank 1 waits for what comes after the reduction that rank 0 waits for.
  whale::format::Program program =
      programOf(2, {makeCollective("all_reduce", {1, 1}), makeSend(0, 1)});
  auto transport = GetParam()(program);
  std::vector<std::vector<int32_t>> sums = {{1, 2}, {10, 20}};
  int32_t received = 0;
  EXPECT_EQ(runRanks(*transport, 2,
                     [&](int64_t rank) {
                       Ticket sum = transport->start(rank, 0, sums[rank].data(),
                                                     sums[rank].data());
                       if (rank == 0) {
                         transport->wait(0, sum);
                         run(*transport, 0, 1, &sums[0][1], nullptr);
                         return;
                       }
                       Ticket send = transport->start(1, 1, nullptr, &received);
                       transport->wait(1, send);
                       transport->wait(1, sum);
                     }),
            allWell);
  EXPECT_EQ(received, 22);
  EXPECT_EQ(sums[1], (std::vector<int32_t>{11, 22}));
}

/// Each rank sends each other one some messages, some of them empty or large,
/// from wherever they are, among transfers of a channel.
TEST_P(TransportConformance, SendsMessagesWithoutAChannel) {
  constexpr int64_t ranks = 5, rounds = 4, messages = 3;
  whale::format::Program program = programOf(ranks, {makeSend(0, 1)});
  auto transport = GetParam()(program);
  auto sizeOf = [](int64_t from, int64_t to, int64_t message) {
    return (from * 7 + to * 3 + message) % 4 * (message == 2 ? 70'001 : 13);
  };
  auto byteOf = [](int64_t from, int64_t to, int64_t message, int64_t round) {
    return static_cast<char>(from * 64 + to * 16 + message * 4 + round);
  };
  // Some only give, some only take; there is no circle in the second round.
  auto areSent = [](int64_t from, int64_t to, int64_t round) {
    return from != to && (round != 1 || from < to);
  };
  Outcome outcome = runRanks(*transport, ranks, [&](int64_t rank) {
    for (int64_t round = 0; round < rounds; ++round) {
      std::deque<std::vector<char>> given, taken;
      std::vector<RankMessage> sends, receives;
      int64_t received = 0;
      for (int64_t peer = 0; peer < ranks; ++peer)
        for (int64_t message = 0; message < messages; ++message) {
          if (areSent(rank, peer, round)) {
            auto &out = given.emplace_back(sizeOf(rank, peer, message),
                                           byteOf(rank, peer, message, round));
            sends.push_back({peer, out.data(), std::ssize(out)});
          }
          if (areSent(peer, rank, round)) {
            auto &in = taken.emplace_back(sizeOf(peer, rank, message));
            receives.push_back({peer, in.data(), std::ssize(in)});
            received += std::ssize(in);
          }
        }
      Ticket ticket = transport->startMessages(rank, sends, receives);
      int32_t value = static_cast<int32_t>(7 + rank), other = 0;
      if (rank < 2)
        run(*transport, rank, 0, &value, &other);
      EXPECT_EQ(other, rank == 1 ? 7 : 0);
      EXPECT_EQ(transport->wait(rank, ticket).received, received);
      size_t next = 0;
      for (int64_t peer = 0; peer < ranks; ++peer)
        for (int64_t message = 0;
             areSent(peer, rank, round) && message < messages; ++message)
          for (char byte : taken[next++])
            ASSERT_EQ(byte, byteOf(peer, rank, message, round));
    }
  });
  EXPECT_EQ(outcome, allWell);
}

/// Two ranks send each other 5 and 6, in one order of the two channels or each
/// its own send first.
Outcome cross(const TransportMaker &make, bool oneOrder, int32_t *received) {
  whale::format::Program program =
      programOf(2, {makeSend(0, 1), makeSend(1, 0)});
  auto transport = make(program);
  int32_t sent[] = {5, 6};
  return runRanks(*transport, 2, [&](int64_t rank) {
    std::vector<Ticket> tickets;
    for (int64_t i : {0, 1}) {
      int64_t channel = oneOrder || rank == 0 ? i : 1 - i;
      tickets.push_back(
          channel == rank
              ? transport->start(rank, channel, &sent[rank], nullptr)
              : transport->start(rank, channel, nullptr, &received[rank]));
    }
    // What it receives first.
    for (int64_t i : {0, 1})
      transport->wait(rank, tickets[rank == 0 ? 1 - i : i]);
  });
}

TEST_P(TransportConformance, SendsMayCross) {
  int32_t received[] = {0, 0};
  EXPECT_EQ(cross(GetParam(), true, received), allWell);
  EXPECT_EQ(received[0], 6);
  EXPECT_EQ(received[1], 5);
}

TEST_P(StuckTransport, CrossingSendsBothFirst) {
  // Each rank posts its send first: neither receive is ever at the head.
  int32_t received[] = {0, 0};
  EXPECT_EQ(cross(GetParam(), false, received), (Outcome{1, 1}));
}

TEST_P(TransportConformance, ASendIsDoneOnlyWhenItIsReceived) {
  whale::format::Program program = programOf(2, {makeSend(0, 1)});
  auto transport = GetParam()(program);
  int32_t sent = 5, received = 0;
  std::barrier tested(2), posted(2);
  EXPECT_EQ(runRanks(*transport, 2,
                     [&](int64_t rank) {
                       if (rank == 0) {
                         Ticket send = transport->start(0, 0, &sent, nullptr);
                         for (int i = 0; i < 3; ++i)
                           EXPECT_FALSE(transport->test(0, send));
                         tested.arrive_and_wait();
                         posted.arrive_and_wait();
                         while (!transport->test(0, send))
                           std::this_thread::yield();
                         transport->wait(0, send);
                         sent = 7;
                         return;
                       }
                       tested.arrive_and_wait();
                       Ticket receive =
                           transport->start(1, 0, nullptr, &received);
                       posted.arrive_and_wait();
                       while (!transport->test(1, receive))
                         std::this_thread::yield();
                       EXPECT_EQ(received, 5);
                       transport->wait(1, receive);
                     }),
            allWell);
}

TEST_P(DirectTransport, WhatARankTakesFromItselfKeepsItsTurn) {
  // Rank 1 hands on to itself what it has yet to receive.
  Collective own;
  own.kind = "send_recv";
  own.parts[0].dtype = DType::I32;
  own.participants = {1};
  own.parts[0].srcShapes[1] = own.parts[0].dstShapes[1] = {1};
  own.parts[0].cells[1] = std::make_shared<std::vector<Cell>>(
      std::vector<Cell>{{{0}, {1}, {{1, {0}}}}});
  whale::format::Program program = programOf(2, {makeSend(0, 1), own});
  auto transport = GetParam()(program);
  int32_t sent = 5, received = 0, kept = 0;
  std::barrier posted(2);
  EXPECT_EQ(runRanks(*transport, 2,
                     [&](int64_t rank) {
                       if (rank == 0) {
                         posted.arrive_and_wait();
                         run(*transport, 0, 0, &sent, nullptr);
                         return;
                       }
                       Ticket receive =
                           transport->start(1, 0, nullptr, &received);
                       Ticket keep = transport->start(1, 1, &received, &kept);
                       posted.arrive_and_wait();
                       transport->wait(1, keep);
                       transport->wait(1, receive);
                     }),
            allWell);
  EXPECT_EQ(kept, 5);
}

TEST_P(StuckTransport, DifferentOrderIsAnErrorNotAHang) {
  Collective sum = makeCollective("all_reduce", {1, 1});
  whale::format::Program program = programOf(2, {sum, sum});
  auto transport = GetParam()(program);
  for (int round = 0; round < 20; ++round)
    EXPECT_EQ(runRanks(*transport, 2,
                       [&](int64_t rank) {
                         int32_t x[] = {1, 2}, y[] = {0, 0};
                         run(*transport, rank, rank, x, y);
                       }),
              (Outcome{1, 1}));
}

TEST_P(StuckTransport, MissingPartnerIsAnErrorNotAHang) {
  whale::format::Program program =
      programOf(2, {makeCollective("all_reduce", {1, 1})});
  auto transport = GetParam()(program);
  for (int round = 0; round < 20; ++round) {
    Outcome outcome = runRanks(*transport, 2, [&](int64_t rank) {
      int32_t x[] = {1, 2}, y[] = {0, 0};
      if (rank == 0)
        run(*transport, rank, 0, x, y);
    });
    EXPECT_EQ(outcome.errors, 1);
  }
}

TEST_P(TransportConformance, AbortWakesWaitingRanks) {
  whale::format::Program program = programOf(
      4, {makeCollective("all_reduce", {1, 1, 1, 1}), makeSend(0, 1)});
  auto transport = GetParam()(program);
  std::atomic<bool> aborted = false;
  std::thread user;
  // The last rank runs on, so the others are not stuck.
  Outcome outcome = runRanks(*transport, 4, [&](int64_t rank) {
    int32_t x[] = {1, 2, 3, 4}, y[] = {0, 0, 0, 0};
    if (rank < 3) {
      run(*transport, rank, 0, x, y);
      return;
    }
    user = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      aborted = true;
      transport->abort();
    });
    while (!transport->aborted())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(aborted);
    EXPECT_THROW(transport->start(rank, 0, x, y), Aborted);
    throw Aborted();
  });
  user.join();
  EXPECT_EQ(outcome, (Outcome{0, 4}));
}

/// Leaves this thread two cores.
void useTwoCores() {
  cpu_set_t all, two;
  CPU_ZERO(&two);
  if (sched_getaffinity(0, sizeof(all), &all) != 0)
    return;
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++cpu)
    if (CPU_ISSET(cpu, &all))
      CPU_SET(cpu, &two);
  sched_setaffinity(0, sizeof(two), &two);
}

TEST_P(TransportConformance, ManyRanksOnTwoCores) {
  constexpr int64_t ranks = 16, steps = 50;
  std::vector<int64_t> shares(ranks, 20);
  whale::format::Program program =
      programOf(ranks, {makeCollective("all_reduce", shares),
                        makeCollective("send_recv", shares)});
  auto transport = GetParam()(program);
  std::vector<std::vector<int32_t>> data(ranks);
  EXPECT_EQ(runRanks(*transport, ranks,
                     [&](int64_t rank) {
                       useTwoCores();
                       std::vector<int32_t> &sum = data[rank];
                       std::vector<int32_t> from(20, static_cast<int>(rank)),
                           to(20);
                       for (int step = 0; step < steps; ++step) {
                         sum.assign(20 * ranks, static_cast<int>(rank) + step);
                         Ticket first =
                             transport->start(rank, 0, sum.data(), sum.data());
                         Ticket second =
                             transport->start(rank, 1, from.data(), to.data());
                         transport->wait(rank, second);
                         transport->wait(rank, first);
                         from.swap(to);
                       }
                       EXPECT_EQ(from[19], (rank + ranks * 10 - steps) % ranks);
                     }),
            allWell);
  for (const std::vector<int32_t> &sum : data)
    EXPECT_EQ(sum, std::vector<int32_t>(20 * ranks, 120 + ranks * (steps - 1)));
}

} // namespace
