//===- TransportTest.cpp - Collectives against a serial oracle --*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/Transport.h"

#include "Numeric.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>
#include <thread>

using namespace whale::runtime;

namespace {

using Bytes = std::vector<uint8_t>;

/// The operation as the documentation says it, one element at a time.
template <typename C>
C apply(Reduction reduction, C a, C b) {
  switch (reduction) {
  case Reduction::Sum:
    if constexpr (std::is_same_v<C, bool>)
      return a || b;
    else
      return static_cast<C>(a + b);
  case Reduction::Product:
    return static_cast<C>(a * b);
  case Reduction::Min:
    if constexpr (!std::is_arithmetic_v<C>)
      return a;
    else
      return a < b ? a : b;
  case Reduction::Max:
    if constexpr (!std::is_arithmetic_v<C>)
      return a;
    else
      return a > b ? a : b;
  case Reduction::And:
    if constexpr (std::is_integral_v<C>)
      return static_cast<C>(a & b);
    break;
  case Reduction::Or:
    if constexpr (std::is_integral_v<C>)
      return static_cast<C>(a | b);
    break;
  }
  return a;
}

bool allowed(DType dtype, Reduction reduction) {
  bool bitwise = reduction == Reduction::And || reduction == Reduction::Or;
  bool ordered = reduction == Reduction::Min || reduction == Reduction::Max;
  return hasArithmetic(dtype) && !(bitwise && !isInteger(dtype)) &&
         !(ordered && isComplex(dtype));
}

/// Small numbers that every type has, with different bits in each place.
Bytes randomElements(std::mt19937 &random, DType dtype, int64_t count) {
  Bytes bytes(count * byteSize(dtype));
  dispatch(dtype, [&]<typename T>() {
    if constexpr (isOpaque<T>) {
      for (uint8_t &byte : bytes)
        byte = static_cast<uint8_t>(random() & 15);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        auto value = static_cast<float>(random() % 97) / 16 + 0.25f;
        using Compute = typename Element<T>::Compute;
        T element = Element<T>::store(static_cast<Compute>(value));
        std::memcpy(&bytes[i * sizeof(T)], &element, sizeof(T));
      }
    }
  });
  return bytes;
}

int64_t flatten(const Shape &index, const Shape &shape) {
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    flat = flat * shape[d] + index[d];
  return flat;
}

/// One channel with its buffers by rank.
struct Scenario {
  whale::format::Program program;
  std::shared_ptr<Collective> channel;
  std::vector<Bytes> src, dst;
  bool inPlace = false;

  void oracle(std::vector<Bytes> &out) const;
  void run();
};

void reduceElement(const Collective &channel, const std::vector<Bytes> &src,
                   std::span<const std::pair<int64_t, int64_t>> from,
                   uint8_t *out) {
  dispatch(channel.dtype, [&]<typename T>() {
    auto at = [&](size_t i) {
      T value;
      std::memcpy(&value, &src[from[i].first][from[i].second * sizeof(T)],
                  sizeof(T));
      return value;
    };
    T result = at(0);
    if constexpr (!isOpaque<T>) {
      if (from.size() > 1) {
        auto sum = Element<T>::load(at(0));
        for (size_t i = 1; i < from.size(); ++i)
          sum = apply(*channel.reduction, sum, Element<T>::load(at(i)));
        result = Element<T>::store(sum);
      }
    }
    std::memcpy(out, &result, sizeof(T));
  });
}

void Scenario::oracle(std::vector<Bytes> &out) const {
  int64_t bytes = byteSize(channel->dtype);
  out = inPlace ? src : dst;
  for (const auto &group : channel->groups)
    for (int64_t rank : group)
      for (int64_t i = 0; i < elementCount(channel->dstShapes.at(rank)); ++i) {
        std::vector<std::pair<int64_t, int64_t>> from;
        for (int64_t peer : group)
          from.emplace_back(peer, i);
        reduceElement(*channel, src, from, &out[rank][i * bytes]);
      }
  for (const auto &[rank, cells] : channel->cells)
    for (const Cell &cell : *cells)
      for (int64_t i = 0; i < elementCount(cell.size); ++i) {
        Shape index(cell.size.size());
        for (int64_t rest = i, d = static_cast<int64_t>(index.size()); d-- > 0;
             rest /= cell.size[d])
          index[d] = rest % cell.size[d];
        auto shifted = [&](const Shape &start) {
          Shape sum = index;
          for (size_t d = 0; d < sum.size(); ++d)
            sum[d] += start[d];
          return sum;
        };
        std::vector<std::pair<int64_t, int64_t>> from;
        for (const auto &entry : cell.from)
          from.emplace_back(
              entry.peer,
              flatten(shifted(entry.start), channel->srcShapes.at(entry.peer)));
        int64_t to =
            flatten(shifted(cell.dstStart), channel->dstShapes.at(rank));
        reduceElement(*channel, src, from, &out[rank][to * bytes]);
      }
}

/// Executes the channel a few times on all ranks and compares with the oracle.
void Scenario::run() {
  std::vector<Bytes> expected;
  oracle(expected);
  std::vector<Bytes> source = src;
  auto transport = createLocalTransport(program);
  std::vector<Traffic> traffic(src.size());
  for (int round = 0; round < 2; ++round) {
    src = source;
    transport->reset();
    std::vector<std::thread> threads;
    for (int64_t rank : channel->participants)
      threads.emplace_back([&, rank] {
        void *to = inPlace ? src[rank].data() : dst[rank].data();
        traffic[rank] = transport->run(rank, 5, src[rank].data(), to);
        if (!inPlace)
          traffic[rank] = transport->run(rank, 5, src[rank].data(), to);
        transport->finish(rank);
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(inPlace ? src : dst, expected);
  }
  int64_t sent = 0, received = 0;
  for (const Traffic &entry : traffic) {
    sent += entry.sent;
    received += entry.received;
  }
  EXPECT_EQ(sent, received);
}

Scenario randomScenario(std::mt19937 &random, DType dtype,
                        std::optional<Reduction> reduction, bool groups) {
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  Scenario scenario;
  int64_t ranks = 1 + pick(8);
  scenario.program.ranks.resize(ranks);
  scenario.channel = std::make_shared<Collective>();
  scenario.program.channels[5] = {scenario.channel};
  Collective &channel = *scenario.channel;
  channel.kind = "all_to_all";
  channel.dtype = dtype;
  channel.reduction = reduction;
  scenario.src.resize(ranks);
  scenario.dst.resize(ranks);
  for (int64_t rank = 0; rank < ranks; ++rank)
    channel.participants.push_back(rank);
  if (groups) {
    scenario.inPlace = pick(2);
    std::vector<int64_t> order = channel.participants;
    std::shuffle(order.begin(), order.end(), random);
    for (size_t begin = 0; begin < order.size();) {
      size_t size = 1 + pick(order.size() - begin);
      channel.groups.emplace_back(order.begin() + begin,
                                  order.begin() + begin + size);
      Shape shape = {pick(4) ? pick(300) : 0};
      for (size_t i = begin; i < begin + size; ++i) {
        channel.srcShapes[order[i]] = channel.dstShapes[order[i]] = shape;
        scenario.src[order[i]] = randomElements(random, dtype, shape[0]);
        scenario.dst[order[i]] = Bytes(shape[0] * byteSize(dtype), 1);
      }
      begin += size;
    }
    return scenario;
  }
  // Random boxes: receivers' shards in slabs along the first dimension.
  size_t dims = pick(4);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    Shape srcShape, dstShape;
    for (size_t d = 0; d < dims; ++d) {
      srcShape.push_back(1 + pick(9));
      dstShape.push_back(pick(10));
    }
    channel.srcShapes[rank] = srcShape;
    channel.dstShapes[rank] = dstShape;
    scenario.src[rank] = randomElements(random, dtype, elementCount(srcShape));
    scenario.dst[rank] = Bytes(elementCount(dstShape) * byteSize(dtype), 2);
  }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (pick(5) == 0)
      continue;
    const Shape &dstShape = channel.dstShapes[rank];
    int64_t end = dims ? dstShape[0] : 1, begin = 0;
    std::vector<Cell> cells;
    while (begin < end) {
      Cell cell;
      int64_t contributions = reduction ? 1 + pick(ranks) : 1;
      cell.dstStart = Shape(dims, 0);
      cell.size = dstShape;
      if (dims) {
        cell.dstStart[0] = begin;
        cell.size[0] = 1 + pick(end - begin);
      }
      std::vector<int64_t> peers = channel.participants;
      std::shuffle(peers.begin(), peers.end(), random);
      peers.resize(contributions);
      // A box that every peer has room for.
      for (int64_t peer : peers)
        for (size_t d = 0; d < dims; ++d)
          cell.size[d] = std::min(cell.size[d], channel.srcShapes[peer][d]);
      for (int64_t peer : peers) {
        Shape start;
        for (size_t d = 0; d < dims; ++d)
          start.push_back(pick(channel.srcShapes[peer][d] - cell.size[d] + 1));
        cell.from.push_back({peer, start});
      }
      begin += dims ? std::max<int64_t>(cell.size[0], 1) : 1;
      cells.push_back(std::move(cell));
    }
    channel.cells[rank] = std::make_shared<std::vector<Cell>>(std::move(cells));
  }
  return scenario;
}

TEST(TransportTest, RandomCollectives) {
  std::mt19937 random(11);
  for (int i = 0; i <= static_cast<int>(DType::C128); ++i) {
    auto dtype = static_cast<DType>(i);
    for (int round = 0; round < 3; ++round)
      randomScenario(random, dtype, std::nullopt, false).run();
    for (int r = 0; r <= static_cast<int>(Reduction::Or); ++r) {
      auto reduction = static_cast<Reduction>(r);
      if (!allowed(dtype, reduction))
        continue;
      for (int round = 0; round < 3; ++round) {
        randomScenario(random, dtype, reduction, false).run();
        randomScenario(random, dtype, reduction, true).run();
      }
      if (HasFailure())
        FAIL() << name(dtype) << " reduction " << r;
    }
  }
}

/// Two ranks, two channels between them.
whale::format::Program twoChannels() {
  Collective collective;
  collective.kind = "all_reduce";
  collective.dtype = DType::F32;
  collective.reduction = Reduction::Sum;
  collective.participants = {0, 1};
  collective.groups = {{0, 1}};
  for (int64_t rank : {0, 1})
    collective.srcShapes[rank] = collective.dstShapes[rank] = {1};
  whale::format::Program program;
  program.ranks.resize(2);
  program.channels[1] = program.channels[2] =
      std::make_shared<Collective>(std::move(collective));
  return program;
}

TEST(TransportTest, DifferentOrderIsAnErrorNotAHang) {
  whale::format::Program program = twoChannels();
  auto transport = createLocalTransport(program);
  transport->reset();
  std::atomic<int> errors = 0, aborts = 0;
  std::vector<std::thread> threads;
  for (int64_t rank : {0, 1})
    threads.emplace_back([&, rank] {
      float x = 1, y = 0;
      try {
        transport->run(rank, rank ? 1 : 2, &x, &y);
      } catch (const Error &) {
        ++errors;
        transport->abort();
      } catch (const Aborted &) {
        ++aborts;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(errors, 1);
  EXPECT_EQ(aborts, 1);
}

TEST(TransportTest, MissingPartnerIsAnErrorNotAHang) {
  whale::format::Program program = twoChannels();
  auto transport = createLocalTransport(program);
  transport->reset();
  std::atomic<int> stopped = 0;
  std::thread waiting([&] {
    float x = 1, y = 0;
    try {
      transport->run(0, 1, &x, &y);
    } catch (const std::exception &) {
      ++stopped;
      transport->abort();
    }
  });
  std::thread absent([&] {
    try {
      transport->finish(1);
    } catch (const Error &) {
      ++stopped;
      transport->abort();
    }
  });
  waiting.join();
  absent.join();
  EXPECT_GE(stopped, 1);
}

TEST(TransportTest, AbortWakesWaitingRanks) {
  whale::format::Program program = twoChannels();
  auto transport = createLocalTransport(program);
  transport->reset();
  std::atomic<bool> aborted = false;
  std::thread waiting([&] {
    float x = 1, y = 0;
    try {
      transport->run(0, 1, &x, &y);
    } catch (const Aborted &) {
      aborted = true;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  auto begin = std::chrono::steady_clock::now();
  transport->abort();
  waiting.join();
  EXPECT_TRUE(aborted);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

} // namespace
