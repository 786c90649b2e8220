//===- TransportOrders.cpp - Transports under random orders ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lists of starts and waits for each rank, beside two simple models: what total
// orders compute, and which orders get stuck.
//
//===----------------------------------------------------------------------===//

#include "TransportConformance.h"
#include "TransportScenario.h"

#include <algorithm>
#include <deque>
#include <set>

using namespace whale::runtime;
using namespace whale::runtime::test;

namespace {

constexpr int64_t ranks = 5;

/// Start or wait number `transfer` of the whole program.
struct Step {
  bool isStart;
  size_t transfer;
};

struct Schedule {
  std::vector<Collective> channels;
  /// The channel of each transfer.
  std::vector<int64_t> transfers;
  std::vector<std::vector<Step>> steps{ranks};
};

int64_t pick(std::mt19937 &random, int64_t n) {
  return static_cast<int64_t>(random() % n);
}

/// All-reduces of groups, exchanges and sends, of two i32 each.
std::vector<Collective> randomChannels(std::mt19937 &random) {
  std::vector<Collective> channels;
  for (int64_t count = 2 + pick(random, 5); count > 0; --count) {
    std::vector<int64_t> order = {0, 1, 2, 3, 4};
    std::shuffle(order.begin(), order.end(), random);
    Collective channel;
    channel.parts[0].dtype = DType::I32;
    order.resize(2 + pick(random, ranks - 1));
    if (pick(random, 2)) {
      channel.kind = "all_reduce";
      channel.parts[0].reduction = Reduction::Sum;
      size_t middle = 1 + pick(random, static_cast<int64_t>(order.size()));
      for (Group group : {Group(order.begin(), order.begin() + middle),
                          Group(order.begin() + middle, order.end())})
        if (group.size() > 1)
          channel.groups.insert(group);
    } else {
      channel.kind = "all_to_all";
      // Some of them take one element from each of two others.
      for (size_t i = 0; i < order.size(); ++i) {
        if (pick(random, 3) == 0)
          continue;
        std::vector<Cell> cells;
        for (int64_t at : {0, 1}) {
          int64_t peer =
              order[pick(random, static_cast<int64_t>(order.size()))];
          cells.push_back({{at}, {1}, {{peer, {pick(random, 2)}}}});
        }
        channel.parts[0].cells[order[i]] =
            std::make_shared<std::vector<Cell>>(cells);
      }
    }
    std::sort(order.begin(), order.end());
    channel.participants = order;
    if (!channel.isAllReduce())
      channel.groups = {order};
    for (int64_t rank : order)
      channel.parts[0].srcShapes[rank] = channel.parts[0].dstShapes[rank] = {2};
    channels.push_back(std::move(channel));
  }
  return channels;
}

bool takesPart(const Collective &channel, int64_t rank) {
  return std::ranges::binary_search(channel.participants, rank);
}

/// Waits stand anywhere behind their starts. In order, each rank's starts are a
/// part of one list; otherwise some have changed places.
Schedule randomSchedule(std::mt19937 &random, bool inOrder) {
  Schedule schedule;
  schedule.channels = randomChannels(random);
  for (int64_t count = 5 + pick(random, 25); count > 0; --count)
    schedule.transfers.push_back(
        pick(random, static_cast<int64_t>(schedule.channels.size())));
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<size_t> own, open;
    for (size_t i = 0; i < schedule.transfers.size(); ++i)
      if (takesPart(schedule.channels[schedule.transfers[i]], rank))
        own.push_back(i);
    if (!inOrder && own.size() > 1 && pick(random, 2)) {
      size_t at = pick(random, static_cast<int64_t>(own.size()) - 1);
      std::swap(own[at], own[at + 1]);
    }
    std::vector<Step> &steps = schedule.steps[rank];
    auto waitForOne = [&] {
      size_t at = pick(random, static_cast<int64_t>(open.size()));
      steps.push_back({false, open[at]});
      open.erase(open.begin() + at);
    };
    int64_t eagerness = 1 + pick(random, 4);
    for (size_t transfer : own) {
      steps.push_back({true, transfer});
      open.push_back(transfer);
      while (!open.empty() && pick(random, eagerness) == 0)
        waitForOne();
    }
    while (!open.empty())
      waitForOne();
  }
  return schedule;
}

/// What each transfer of a rank reads: values of its own, or the result of an
/// earlier one that it has waited for.
struct Data {
  /// By transfer, then by rank.
  std::vector<std::vector<Bytes>> src, dst;
  std::vector<std::vector<int64_t>> reads;
};

Data randomData(std::mt19937 &random, const Schedule &schedule) {
  Data data;
  size_t count = schedule.transfers.size();
  data.src.assign(count, std::vector<Bytes>(ranks));
  data.dst.assign(count, std::vector<Bytes>(ranks, Bytes(8)));
  data.reads.assign(count, std::vector<int64_t>(ranks, -1));
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<size_t> complete;
    for (const Step &step : schedule.steps[rank]) {
      if (!step.isStart) {
        complete.push_back(step.transfer);
        continue;
      }
      data.src[step.transfer][rank] = randomElements(random, DType::I32, 2);
      if (!complete.empty() && pick(random, 3) > 0)
        data.reads[step.transfer][rank] = static_cast<int64_t>(
            complete[pick(random, static_cast<int64_t>(complete.size()))]);
    }
  }
  return data;
}

Bytes &sourceOf(Data &data, size_t transfer, int64_t rank) {
  int64_t from = data.reads[transfer][rank];
  return from < 0 ? data.src[transfer][rank] : data.dst[from][rank];
}

/// One transfer after the other.
void runInOrder(const Schedule &schedule, Data &data) {
  for (size_t i = 0; i < schedule.transfers.size(); ++i) {
    std::vector<Bytes> sources;
    for (int64_t rank = 0; rank < ranks; ++rank)
      sources.push_back(sourceOf(data, i, rank));
    apply(schedule.channels[schedule.transfers[i]], 0, sources, data.dst[i]);
  }
}

Outcome runOn(Transport &transport, const Schedule &schedule, Data &data,
              unsigned seed) {
  return runRanks(transport, ranks, [&](int64_t rank) {
    std::mt19937 random(seed * ranks + rank);
    std::map<size_t, Ticket> open;
    for (const Step &step : schedule.steps[rank]) {
      if (step.isStart) {
        open[step.transfer] =
            transport.start(rank, schedule.transfers[step.transfer],
                            sourceOf(data, step.transfer, rank).data(),
                            data.dst[step.transfer][rank].data());
        continue;
      }
      if (pick(random, 3) == 0)
        transport.test(rank, open.begin()->second);
      transport.wait(rank, open.at(step.transfer));
      open.erase(step.transfer);
    }
  });
}

/// Whether ranks come to the end of their lists, by the rules of Transport.h.
class Model {
public:
  explicit Model(const Schedule &schedule) : schedule(schedule), states(ranks) {
    for (const Collective &channel : schedule.channels) {
      auto &peers = allPeers.emplace_back(ranks);
      auto &readers = allReaders.emplace_back(ranks);
      if (channel.isAllReduce())
        for (const auto &group : channel.groups)
          for (int64_t rank : group)
            peers[rank].insert(group.begin(), group.end());
      for (const auto &[rank, cells] : channel.parts[0].cells)
        for (const Cell &cell : *cells)
          for (const auto &from : cell.from) {
            peers[rank].insert(from.peer);
            peers[from.peer].insert(rank);
            readers[from.peer].insert(rank);
          }
    }
  }

  bool getsStuck() {
    for (bool changed = true; changed;) {
      changed = false;
      for (int64_t rank = 0; rank < ranks; ++rank)
        changed |= advance(rank);
    }
    for (int64_t rank = 0; rank < ranks; ++rank)
      if (states[rank].next < schedule.steps[rank].size())
        return true;
    return false;
  }

private:
  struct State {
    size_t next = 0;
    std::deque<size_t> queue;
    std::set<size_t> done;
    /// By channel, how many uses have reached the head, and have begun.
    std::map<int64_t, int> reached, begun;
  };

  bool advance(int64_t rank) {
    State &state = states[rank];
    bool changed = false;
    const std::vector<Step> &steps = schedule.steps[rank];
    while (state.next < steps.size()) {
      const Step &step = steps[state.next];
      if (!step.isStart && !state.done.contains(step.transfer))
        break;
      if (step.isStart) {
        state.queue.push_back(step.transfer);
        if (state.queue.size() == 1)
          ++state.reached[schedule.transfers[step.transfer]];
      }
      ++state.next;
      changed = true;
    }
    if (state.queue.empty())
      return changed;
    int64_t channel = schedule.transfers[state.queue.front()];
    int use = state.reached[channel];
    if (state.begun[channel] < use) {
      for (int64_t peer : allPeers[channel][rank])
        if (states[peer].reached[channel] < use)
          return changed;
      state.begun[channel] = use;
      changed = true;
    }
    for (int64_t reader : allReaders[channel][rank])
      if (states[reader].begun[channel] < use)
        return changed;
    state.done.insert(state.queue.front());
    state.queue.pop_front();
    if (!state.queue.empty())
      ++state.reached[schedule.transfers[state.queue.front()]];
    return true;
  }

  const Schedule &schedule;
  std::vector<std::vector<std::set<int64_t>>> allPeers, allReaders;
  std::vector<State> states;
};

TEST_P(TransportConformance, TotalOrdersComputeWhatTheySay) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Schedule schedule = randomSchedule(random, /*inOrder=*/true);
    Data data = randomData(random, schedule), expected = data;
    runInOrder(schedule, expected);
    ASSERT_FALSE(Model(schedule).getsStuck());
    whale::format::Program program = programOf(ranks, schedule.channels);
    auto transport = GetParam()(program);
    ASSERT_EQ(runOn(*transport, schedule, data, seed), Outcome());
    ASSERT_EQ(data.dst, expected.dst);
  }
}

TEST_P(StuckTransport, OtherOrdersAreStuckWhereTheModelIs) {
  int stuck = 0, through = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Schedule schedule = randomSchedule(random, /*inOrder=*/false);
    Data data = randomData(random, schedule);
    bool expected = Model(schedule).getsStuck();
    ++(expected ? stuck : through);
    whale::format::Program program = programOf(ranks, schedule.channels);
    auto transport = GetParam()(program);
    ASSERT_EQ(runOn(*transport, schedule, data, seed).errors,
              static_cast<int>(expected));
  }
  EXPECT_GT(stuck, 20);
  EXPECT_GT(through, 20);
}

} // namespace
