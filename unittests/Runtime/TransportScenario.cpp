//===- TransportScenario.cpp - Collectives and what they compute ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a collective and what each rank sends. Out: what each rank must have
// after it. Also collectives to test with: one of each kind, by the share of
// each rank, and random ones.
//
// The oracle works element by element, from the description of the channel
// alone, and reduces terms in their order, as a transport must for equal bits.
// Elements are small multiples of 1/16, rounded to their type. Random scenarios
// have up to 8 ranks, in random groups or with random boxes of up to 3
// dimensions; a cell may have any number of terms. Cost: linear in the elements
// times their terms, slow on purpose.
//
//===----------------------------------------------------------------------===//

#include "TransportScenario.h"

#include "Numeric.h"

#include <algorithm>
#include <cstring>

namespace whale::runtime::test {

/// The operation as the documentation says it, one element at a time.
template <typename C>
static C combine(Reduction reduction, C a, C b) {
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

bool isAllowed(DType dtype, Reduction reduction) {
  bool bitwise = reduction == Reduction::And || reduction == Reduction::Or;
  bool ordered = reduction == Reduction::Min || reduction == Reduction::Max;
  return hasArithmetic(dtype) && !(bitwise && !isInteger(dtype)) &&
         !(ordered && isComplex(dtype));
}

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

static int64_t flatten(const Shape &index, const Shape &shape) {
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    flat = flat * shape[d] + index[d];
  return flat;
}

static void reduceElement(const ChannelPart &part,
                          const std::vector<Bytes> &src,
                          std::span<const std::pair<int64_t, int64_t>> from,
                          uint8_t *out) {
  dispatch(part.dtype, [&]<typename T>() {
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
          sum = combine(*part.reduction, sum, Element<T>::load(at(i)));
        result = Element<T>::store(sum);
      }
    }
    std::memcpy(out, &result, sizeof(T));
  });
}

/// The groups of an all-reduce, and each rank that is in none.
static Groups reducedTogether(const Collective &channel) {
  Groups groups;
  if (!channel.isAllReduce())
    return groups;
  for (int64_t rank : channel.participants)
    if (std::ranges::none_of(channel.groups, [&](const Group &group) {
          return std::ranges::count(group, rank) != 0;
        }))
      groups.insert({rank});
  groups.insert(channel.groups.begin(), channel.groups.end());
  return groups;
}

void apply(const Collective &channel, size_t number,
           const std::vector<Bytes> &src, std::vector<Bytes> &out) {
  const ChannelPart &part = channel.parts[number];
  int64_t bytes = byteSize(part.dtype);
  for (const auto &group : reducedTogether(channel))
    for (int64_t rank : group)
      for (int64_t i = 0; i < elementCount(part.dstShapes.at(rank)); ++i) {
        std::vector<std::pair<int64_t, int64_t>> from;
        for (int64_t peer : group)
          from.emplace_back(peer, i);
        reduceElement(part, src, from, &out[rank][i * bytes]);
      }
  for (const auto &[rank, cells] : part.cells)
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
          from.emplace_back(entry.peer, flatten(shifted(entry.start),
                                                part.srcShapes.at(entry.peer)));
        int64_t to = flatten(shifted(cell.dstStart), part.dstShapes.at(rank));
        reduceElement(part, src, from, &out[rank][to * bytes]);
      }
}

Scenario randomScenario(std::mt19937 &random, DType dtype,
                        std::optional<Reduction> reduction, bool groups,
                        int64_t ranks) {
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  Scenario scenario;
  if (ranks == 0)
    ranks = 1 + pick(8);
  Collective &channel = scenario.channel;
  ChannelPart &part = channel.parts.front();
  channel.kind = groups ? "all_reduce" : "all_to_all";
  part.dtype = dtype;
  part.reduction = reduction;
  std::vector<Bytes> &src = scenario.src.emplace_back(ranks);
  std::vector<Bytes> &dst = scenario.dst.emplace_back(ranks);
  for (int64_t rank = 0; rank < ranks; ++rank)
    channel.participants.push_back(rank);
  if (groups) {
    scenario.inPlace = pick(2);
    std::vector<int64_t> order = channel.participants;
    std::shuffle(order.begin(), order.end(), random);
    for (size_t begin = 0; begin < order.size();) {
      size_t size = 1 + pick(order.size() - begin);
      if (size > 1)
        channel.groups.emplace(order.begin() + begin,
                               order.begin() + begin + size);
      Shape shape = {pick(4) ? pick(300) : 0};
      for (size_t i = begin; i < begin + size; ++i) {
        part.srcShapes[order[i]] = part.dstShapes[order[i]] = shape;
        src[order[i]] = randomElements(random, dtype, shape[0]);
        dst[order[i]] = Bytes(shape[0] * byteSize(dtype), 1);
      }
      begin += size;
    }
    return scenario;
  }
  if (ranks > 1)
    channel.groups = {channel.participants};
  // Random boxes: receivers' shards in slabs along the first dimension.
  size_t dims = pick(4);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    Shape srcShape, dstShape;
    for (size_t d = 0; d < dims; ++d) {
      srcShape.push_back(1 + pick(9));
      dstShape.push_back(pick(10));
    }
    part.srcShapes[rank] = srcShape;
    part.dstShapes[rank] = dstShape;
    src[rank] = randomElements(random, dtype, elementCount(srcShape));
    dst[rank] = Bytes(elementCount(dstShape) * byteSize(dtype), 2);
  }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (pick(5) == 0)
      continue;
    const Shape &dstShape = part.dstShapes[rank];
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
          cell.size[d] = std::min(cell.size[d], part.srcShapes[peer][d]);
      for (int64_t peer : peers) {
        Shape start;
        for (size_t d = 0; d < dims; ++d)
          start.push_back(pick(part.srcShapes[peer][d] - cell.size[d] + 1));
        cell.from.push_back({peer, start});
      }
      begin += dims ? std::max<int64_t>(cell.size[0], 1) : 1;
      cells.push_back(std::move(cell));
    }
    part.cells[rank] = std::make_shared<std::vector<Cell>>(std::move(cells));
  }
  return scenario;
}

Collective makeCollective(const std::string &kind,
                          const std::vector<int64_t> &shares) {
  Collective channel;
  ChannelPart &part = channel.parts.front();
  channel.kind = kind;
  part.dtype = DType::I32;
  auto ranks = static_cast<int64_t>(shares.size());
  std::vector<int64_t> offsets;
  int64_t sum = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    channel.participants.push_back(rank);
    offsets.push_back(sum);
    sum += shares[rank];
  }
  if (kind == "all_reduce" || kind == "reduce_scatter")
    part.reduction = Reduction::Sum;
  if (ranks > 1 && kind != "local_slice")
    channel.groups = {channel.participants};
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t share = shares[rank], left = (rank + ranks - 1) % ranks;
    Shape src, dst;
    std::vector<Cell> cells;
    if (kind == "all_reduce") {
      src = dst = {sum};
    } else if (kind == "all_gather") {
      src = {share};
      dst = {sum};
      for (int64_t peer = 0; peer < ranks; ++peer)
        cells.push_back({{offsets[peer]}, {shares[peer]}, {{peer, {0}}}});
    } else if (kind == "reduce_scatter") {
      src = {sum};
      dst = {share};
      Cell cell{{0}, {share}, {}};
      for (int64_t peer = 0; peer < ranks; ++peer)
        cell.from.push_back({peer, {offsets[rank]}});
      cells.push_back(cell);
    } else if (kind == "all_to_all") {
      src = {share, sum};
      dst = {sum, share};
      for (int64_t peer = 0; peer < ranks; ++peer)
        cells.push_back({{offsets[peer], 0},
                         {shares[peer], share},
                         {{peer, {0, offsets[rank]}}}});
    } else if (kind == "broadcast") {
      src = dst = {sum};
      if (rank > 0)
        cells.push_back({{0}, {sum}, {{0, {0}}}});
    } else if (kind == "send_recv") {
      src = {share};
      dst = {shares[left]};
      cells.push_back({{0}, dst, {{left, {0}}}});
    } else {
      src = {sum};
      dst = {share};
      cells.push_back({{0}, {share}, {{rank, {offsets[rank]}}}});
    }
    part.srcShapes[rank] = src;
    part.dstShapes[rank] = dst;
    if (!cells.empty())
      part.cells[rank] = std::make_shared<std::vector<Cell>>(cells);
  }
  return channel;
}

Collective makeSend(int64_t from, int64_t to) {
  Collective channel;
  ChannelPart &part = channel.parts.front();
  channel.kind = "send_recv";
  part.dtype = DType::I32;
  channel.participants = {std::min(from, to), std::max(from, to)};
  channel.groups = {channel.participants};
  part.srcShapes[from] = part.dstShapes[to] = {1};
  part.cells[to] = std::make_shared<std::vector<Cell>>(
      std::vector<Cell>{{{0}, {1}, {{from, {0}}}}});
  return channel;
}

Scenario scenarioOf(std::mt19937 &random, Collective channel, bool inPlace) {
  Scenario scenario;
  scenario.inPlace = inPlace;
  auto elements = [](const std::map<int64_t, Shape> &shapes, int64_t rank) {
    auto it = shapes.find(rank);
    return it == shapes.end() ? 0 : elementCount(it->second);
  };
  for (const ChannelPart &part : channel.parts) {
    std::vector<Bytes> &src = scenario.src.emplace_back();
    std::vector<Bytes> &dst = scenario.dst.emplace_back();
    for (int64_t rank = 0; rank <= channel.participants.back(); ++rank) {
      src.push_back(
          randomElements(random, part.dtype, elements(part.srcShapes, rank)));
      dst.emplace_back(elements(part.dstShapes, rank) * byteSize(part.dtype));
    }
  }
  scenario.channel = std::move(channel);
  return scenario;
}

Scenario join(std::vector<Scenario> scenarios) {
  Scenario all = std::move(scenarios.front());
  for (Scenario &next : std::span(scenarios).subspan(1)) {
    all.channel.parts.push_back(std::move(next.channel.parts.front()));
    all.src.push_back(std::move(next.src.front()));
    all.dst.push_back(std::move(next.dst.front()));
  }
  return all;
}

Scenario::Buffers expectedOf(const Scenario &scenario) {
  Scenario::Buffers out = scenario.inPlace ? scenario.src : scenario.dst;
  for (size_t part = 0; part < out.size(); ++part)
    apply(scenario.channel, part, scenario.src[part], out[part]);
  return out;
}

std::vector<PartBuffers> buffersOf(const Scenario &scenario,
                                   const Scenario::Buffers &src,
                                   Scenario::Buffers &dst, int64_t rank) {
  std::vector<PartBuffers> buffers;
  for (size_t part = 0; part < src.size(); ++part) {
    const uint8_t *from = src[part][rank].data();
    buffers.push_back({from, scenario.inPlace ? const_cast<uint8_t *>(from)
                                              : dst[part][rank].data()});
  }
  return buffers;
}

format::Program programOf(int64_t ranks, const std::vector<Collective> &list) {
  format::Program program;
  program.ranks.resize(ranks);
  program.classes.emplace_back();
  program.classes.back().workspaceBytes = 1 << 12;
  for (size_t i = 0; i < list.size(); ++i)
    program.channels[static_cast<int64_t>(i)] =
        std::make_shared<Collective>(list[i]);
  return program;
}

std::unique_ptr<Transport> localTransportOf(const format::Program &program,
                                            const Network &network) {
  return withChannels(createLocalTransport(program.ranks.size(), network),
                      program);
}

} // namespace whale::runtime::test
