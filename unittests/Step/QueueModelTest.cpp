//===- QueueModelTest.cpp - Tests of the time of queues -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times that follow from the rules by hand: of a data-parallel backward whose
// gradients are reduced in buckets, of pipelines, and of queues that hold one
// another up. And a program that the compiler's order of transfers has times
// for, which has the same ones here.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/QueueModel.h"
#include "whale/Step/TransferOrder.h"
#include "gtest/gtest.h"

#include <limits>
#include <map>
#include <random>

using namespace whale;

namespace {

using Kind = QueueItem::Kind;
using Seconds = std::vector<double>;

/// Writes down a rank's items.
class Queue {
public:
  Queue &compute(double seconds) {
    queue.items.push_back({Kind::Compute, 0, seconds});
    return *this;
  }
  Queue &start(size_t transfer, double seconds) {
    queue.items.push_back({Kind::Start, queue.parts.size(), 0});
    queue.parts.push_back({transfer, seconds});
    return *this;
  }
  Queue &wait(size_t part, double seconds = 0) {
    queue.items.push_back({Kind::Wait, part, seconds});
    return *this;
  }
  operator RankQueue() const { return queue; }

private:
  RankQueue queue;
};

Seconds secondsOf(const std::vector<RankQueue> &ranks) {
  return rankSeconds(ranks).value_or(Seconds{-1});
}

TEST(QueueModel, Computation) {
  EXPECT_EQ(secondsOf({}), Seconds());
  EXPECT_EQ(secondsOf({Queue(), Queue().compute(2).compute(3)}),
            (Seconds{0, 5}));
}

TEST(QueueModel, BucketsOfGradientsHideBehindTheBackward) {
  // Four layers of 2 s, each followed by the start of its bucket of 3 s; the
  // second rank is 1 s late. 3 + 4 * 3, then 0.5 s for each copy.
  auto rank = [](double late) {
    Queue queue;
    queue.compute(late);
    for (size_t bucket = 0; bucket < 4; ++bucket)
      queue.compute(2).start(bucket, 3);
    for (size_t bucket = 0; bucket < 4; ++bucket)
      queue.wait(bucket, bucket == 3 ? 0.5 : 0);
    return queue;
  };
  EXPECT_EQ(secondsOf({rank(0), rank(1)}), (Seconds{15.5, 15.5}));
  // Where transfers take 1 s, only the last one is not hidden.
  auto fast = [] {
    Queue queue;
    for (size_t bucket = 0; bucket < 4; ++bucket)
      queue.compute(2).start(bucket, 1);
    for (size_t bucket = 0; bucket < 4; ++bucket)
      queue.wait(bucket);
    return queue;
  };
  EXPECT_EQ(secondsOf({fast(), fast()}), (Seconds{9, 9}));
}

/// A rank on the first host that computes once.
RankQueue onHost(double seconds, double bytes = 0, double ranks = 1) {
  RankQueue queue;
  queue.items.push_back(
      {Kind::Compute, 0, seconds, QueueItem::kNoSignal, bytes});
  queue.host = 0;
  queue.ranksOnHost = ranks;
  return queue;
}

Seconds secondsOn(SharedLinks::Host host, const std::vector<RankQueue> &ranks) {
  SharedLinks shared;
  shared.hosts = {host};
  std::vector<RankTimes> times = timeQueues(ranks, shared).value();
  Seconds seconds;
  for (const RankTimes &rank : times)
    seconds.push_back(rank.seconds);
  return seconds;
}

TEST(QueueModel, RanksShareTheCoresOfTheirHost) {
  // Each gets half of one core, until the second one is done at 4.
  EXPECT_EQ(secondsOn({.cores = 1}, {onHost(4), onHost(2)}), (Seconds{6, 4}));
  EXPECT_EQ(secondsOn({.cores = 2}, {onHost(4), onHost(2)}), (Seconds{4, 2}));
  // A queue that stands for three ranks.
  EXPECT_EQ(secondsOn({.cores = 2}, {onHost(2, 0, 3)}), (Seconds{3}));
  // Who waits computes nothing.
  RankQueue waits = Queue().start(0, 5).wait(0);
  waits.host = 0;
  RankQueue computes = Queue().start(0, 5).compute(6).compute(1);
  computes.host = 0;
  EXPECT_EQ(secondsOn({.cores = 1}, {waits, computes}), (Seconds{5, 7}));
  // The transfer makes it twice as slow: 2.5 of 7 s are done by 5.
  computes.overlapTax = 1;
  EXPECT_EQ(secondsOn({.cores = 1}, {waits, computes}), (Seconds{5, 9.5}));
  // Until 2 a third rank has half of the core: 0.5 s are done by then, and 1.5
  // more by 5.
  EXPECT_EQ(secondsOn({.cores = 1}, {waits, computes, onHost(1)}),
            (Seconds{5, 10, 2}));
}

TEST(QueueModel, RanksShareTheMemoryOfTheirHost) {
  // Alone the first one moves 10 B/s, the second 2 B/s, which it gets. At 2 the
  // first one has 2.4 s left of its 4.
  EXPECT_EQ(secondsOn({.memoryBandwidth = 10}, {onHost(4, 40), onHost(2, 4)}),
            (Seconds{4.4, 2}));
  // Three ranks want 30 B/s and get 12.
  EXPECT_EQ(secondsOn({.memoryBandwidth = 12}, {onHost(4, 40, 3)}),
            (Seconds{10}));
  // With half a core each they move 5 and 1 B/s, for which the memory is
  // enough. At 4 the first one has 2 s left, and moves 6 B/s instead of 10.
  EXPECT_EQ(secondsOn({.cores = 1, .memoryBandwidth = 6},
                      {onHost(4, 40), onHost(2, 4)}),
            (Seconds{4 + 2 * (10.0 / 6), 4}));
}

TEST(QueueModel, APipelineFillsAndDrains) {
  // Two stages, three micro-batches of 4 s, sends of 1 s. What is received one
  // ahead is there in time; else each computation waits for its transfer.
  Queue first, ahead, late;
  for (size_t i = 0; i < 3; ++i)
    first.compute(4).start(i, 1);
  ahead.start(0, 1);
  for (size_t i = 0; i < 3; ++i) {
    ahead.wait(i);
    if (i < 2)
      ahead.start(i + 1, 1);
    ahead.compute(4);
    late.start(i, 1).wait(i).compute(4);
  }
  EXPECT_EQ(secondsOf({first, ahead}), (Seconds{12, 17}));
  EXPECT_EQ(secondsOf({first, late}), (Seconds{12, 19}));
}

TEST(QueueModel, ATransferWaitsForThoseBeforeItInAnyQueue) {
  // Transfer 1 is posted on both sides at 0, but is behind 0 on the first rank,
  // which the third one posts at 5.
  EXPECT_EQ(
      secondsOf({Queue().start(0, 2).start(1, 1).wait(1),
                 Queue().start(1, 1).wait(0), Queue().compute(5).start(0, 2)}),
      (Seconds{8, 8, 5}));
}

TEST(QueueModel, PartsMayEndAtDifferentTimes) {
  EXPECT_EQ(secondsOf({Queue().start(0, 1).wait(0), Queue().start(0, 4).wait(0),
                       Queue().start(1, 2).wait(0)}),
            (Seconds{1, 4, 2}));
}

TEST(QueueModel, PeriodsOfItemsAndParts) {
  // The first rank waits from 2 to 4 for what the second posts at 3, and works
  // for 0.5 s in the wait.
  auto times = timeQueues({Queue().start(0, 1).compute(2).wait(0, 0.5),
                           Queue().compute(3).start(0, 1).wait(0)});
  ASSERT_TRUE(times);
  const RankTimes &first = times->front();
  EXPECT_EQ(first.seconds, 4.5);
  ASSERT_EQ(first.items.size(), 3u);
  EXPECT_EQ(first.items[1].begin, 0);
  EXPECT_EQ(first.items[1].end, 2);
  EXPECT_EQ(first.items[2].begin, 2);
  EXPECT_EQ(first.items[2].end, 4.5);
  ASSERT_EQ(first.parts.size(), 1u);
  EXPECT_EQ(first.parts[0].begin, 3);
  EXPECT_EQ(first.parts[0].end, 4);
}

/// Of transfers on links of 1 byte a second.
Seconds secondsOn(size_t links,
                  std::vector<std::vector<SharedLinks::Load>> loads,
                  const std::vector<RankQueue> &ranks) {
  SharedLinks shared;
  shared.bandwidths.assign(links, 1);
  for (std::vector<SharedLinks::Load> &each : loads)
    shared.cargos.push_back({std::move(each)});
  Seconds seconds;
  std::vector<RankTimes> times = timeQueues(ranks, shared).value();
  for (const RankTimes &rank : times)
    seconds.push_back(rank.seconds);
  return seconds;
}

TEST(QueueModel, TransfersShareLinks) {
  // Alone, 4 s after 1 s of latency.
  Queue own = Queue().start(0, 1).wait(0);
  EXPECT_EQ(secondsOn(1, {{{0, 4}}}, {own, own}), (Seconds{5, 5}));
  // Two of 4 s at once; a third one that begins at 4, when half of both is
  // there, takes a third of the link.
  auto rank = [](size_t transfer, double late) -> RankQueue {
    return Queue().compute(late).start(transfer, 0).wait(0);
  };
  EXPECT_EQ(secondsOn(1, {{{0, 4}}, {{0, 4}}}, {rank(0, 0), rank(1, 0)}),
            (Seconds{8, 8}));
  EXPECT_EQ(secondsOn(1, {{{0, 4}}, {{0, 4}}, {{0, 1}}},
                      {rank(0, 0), rank(1, 0), rank(2, 4)}),
            (Seconds{9, 9, 7}));
  // The first one shares with two others, each on another link, of which the
  // second has little to carry: what it leaves, the first one can't take.
  EXPECT_EQ(secondsOn(2, {{{0, 4}, {1, 4}}, {{0, 4}}, {{1, 2}}},
                      {rank(0, 0), rank(1, 0), rank(2, 0)}),
            (Seconds{8, 8, 4}));
  // Two that are alike and written down as one get two thirds beside another.
  SharedLinks alike;
  alike.bandwidths = {1};
  alike.cargos = {{{{0, 8}}, 4}, {{{0, 4}}}};
  EXPECT_EQ(timeQueues({rank(0, 0), rank(1, 0)}, alike)->back().seconds, 12);
  // A free link delays nobody.
  SharedLinks free;
  free.bandwidths = {std::numeric_limits<double>::infinity()};
  free.cargos = {{{{0, 4}}}};
  EXPECT_EQ(timeQueues({own, own}, free)->front().seconds, 1);
}

TEST(QueueModel, TransfersSlowComputingDown) {
  // A transfer from 2 to 6 makes each second of work take 1.5 s: of 10 s of
  // work 2 are done before, 4 / 1.5 meanwhile.
  RankQueue taxed = Queue().start(0, 4).compute(10).wait(0);
  taxed.overlapTax = 0.5;
  RankQueue late = Queue().compute(2).start(0, 4).wait(0);
  Seconds seconds = secondsOf({taxed, late});
  EXPECT_NEAR(seconds[0], 6 + (8 - 4 / 1.5), 1e-12);
  EXPECT_EQ(seconds[1], 6);
}

TEST(QueueModel, ACircleHasNoTime) {
  EXPECT_EQ(rankSeconds({Queue().start(0, 1).start(1, 1).wait(0),
                         Queue().start(1, 1).start(0, 1).wait(0)}),
            std::nullopt);
}

/// A step of two data-parallel ranks, as the compiler orders its transfers:
/// each reduction is ready behind some instruction and needed at the end.
TEST(QueueModel, AgreesWithTheOrderOfTransfers) {
  std::mt19937 random(7);
  auto draw = [&] { return std::uniform_int_distribution(1, 9)(random); };
  for (int round = 0; round < 200; ++round) {
    size_t instructions = draw(), count = draw();
    std::vector<ClassTimeline> timelines(2);
    Seconds transfers;
    for (size_t i = 0; i < count; ++i)
      transfers.push_back(draw());
    for (ClassTimeline &timeline : timelines) {
      for (size_t i = 0; i < instructions; ++i)
        timeline.seconds.push_back(draw());
      for (size_t i = 0; i < count; ++i) {
        TransferUse use;
        use.transfer = use.channel = i;
        use.ready = i % instructions;
        use.needed = instructions;
        timeline.uses.push_back(use);
      }
    }
    std::optional<TransferOrder> order = orderTransfers(timelines, transfers);
    ASSERT_TRUE(order);
    std::vector<RankQueue> ranks;
    for (size_t c = 0; c < 2; ++c) {
      Queue queue;
      std::vector<size_t> partOf(count);
      size_t parts = 0;
      for (size_t position = 0; position <= instructions; ++position) {
        for (size_t transfer : order->order)
          if (order->times[c][transfer].start == position) {
            queue.start(transfer, transfers[transfer]);
            partOf[transfer] = parts++;
          }
        for (size_t i = 0; i < count; ++i)
          if (order->times[c][i].wait == position)
            queue.wait(partOf[i]);
        if (position < instructions)
          queue.compute(timelines[c].seconds[position]);
      }
      ranks.push_back(queue);
    }
    Seconds seconds = secondsOf(ranks);
    EXPECT_EQ(std::max(seconds[0], seconds[1]), order->seconds);
  }
}

/// The times of queues as the least solution of their equations: walks all
/// queues again and again, with the begins of transfers that are known, until
/// nothing changes. Knows neither events nor an order of them.
class Equations {
public:
  explicit Equations(const std::vector<RankQueue> &ranks) : ranks(ranks) {}

  std::optional<Seconds> solve() {
    for (bool changes = true; changes;) {
      changes = false;
      for (size_t rank = 0; rank < ranks.size(); ++rank)
        changes |= walk(rank);
      changes |= findBegins();
    }
    if (ends.size() != ranks.size())
      return std::nullopt;
    Seconds seconds;
    for (auto [rank, end] : ends)
      seconds.push_back(end);
    return seconds;
  }

private:
  using PartOfRank = std::pair<size_t, size_t>;

  bool walk(size_t number) {
    const RankQueue &rank = ranks[number];
    double now = 0;
    bool isNew = false;
    for (const QueueItem &item : rank.items) {
      if (item.kind == Kind::Compute) {
        now += item.seconds;
      } else if (item.kind == Kind::Start) {
        isNew |= posts.try_emplace({number, item.part}, now).second;
      } else {
        auto begin = begins.find(rank.parts[item.part].transfer);
        if (begin == begins.end())
          return isNew;
        now = std::max(now, begin->second + rank.parts[item.part].seconds) +
              item.seconds;
      }
    }
    return ends.try_emplace(number, now).second || isNew;
  }

  /// A transfer begins when all have posted it, and what they posted before is
  /// over.
  bool findBegins() {
    std::map<size_t, std::optional<double>> found;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      std::optional<double> before = 0;
      for (size_t part = 0; part < ranks[rank].parts.size(); ++part) {
        auto [transfer, seconds, isCopy] = ranks[rank].parts[part];
        auto post = posts.find({rank, part});
        std::optional<double> from;
        if (before && post != posts.end())
          from = std::max(*before, post->second);
        auto [it, isFirst] = found.try_emplace(transfer, from);
        if (!isFirst)
          it->second = it->second && from
                           ? std::optional(std::max(*it->second, *from))
                           : std::nullopt;
        auto begin = begins.find(transfer);
        before = begin == begins.end() ? std::nullopt
                                       : std::optional(begin->second + seconds);
      }
    }
    bool isNew = false;
    for (auto [transfer, begin] : found)
      if (begin)
        isNew |= begins.try_emplace(transfer, *begin).second;
    return isNew;
  }

  const std::vector<RankQueue> &ranks;
  std::map<PartOfRank, double> posts;
  std::map<size_t, double> begins, ends;
};

/// Queues of a few ranks, each of whose transfers some of them take part in, in
/// an order of their own now and then: some wait in a circle.
std::vector<RankQueue> drawQueues(std::mt19937 &random) {
  auto draw = [&](int most) {
    return std::uniform_int_distribution(0, most)(random);
  };
  std::vector<RankQueue> ranks(2 + draw(2));
  std::vector<Queue> queues(ranks.size());
  std::vector<std::vector<size_t>> open(ranks.size());
  std::vector<size_t> parts(ranks.size());
  for (size_t transfer = 0, count = draw(8); transfer < count; ++transfer)
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (draw(2) == 0)
        queues[rank].compute(draw(5));
      if (!open[rank].empty() && draw(1) == 0) {
        size_t which = draw(int(open[rank].size()) - 1);
        queues[rank].wait(open[rank][which], draw(3));
        open[rank].erase(open[rank].begin() + which);
      }
      if (draw(3) == 0)
        continue;
      // A rank may post two transfers in the other order than its peers.
      size_t posted = draw(30) == 0 ? transfer ^ 1 : transfer;
      queues[rank].start(posted, draw(4));
      open[rank].push_back(parts[rank]++);
    }
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (size_t part : open[rank])
      queues[rank].wait(part);
    ranks[rank] = queues[rank];
  }
  return ranks;
}

TEST(QueueModel, AgreesWithTheEquationsOfRandomQueues) {
  std::mt19937 random(11);
  size_t circles = 0, solved = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<RankQueue> ranks = drawQueues(random);
    std::optional<Seconds> expected = Equations(ranks).solve();
    EXPECT_EQ(rankSeconds(ranks), expected);
    ++(expected ? solved : circles);
  }
  EXPECT_GT(circles, 50u);
  EXPECT_GT(solved, 1000u);
}

} // namespace
