//===- ProgramModelTest.cpp - A program in the model of a step ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/ProgramModel.h"
#include "whale/Step/CriticalPath.h"
#include "whale/System/Error.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace whale;
using format::Instruction;

namespace {

/// Nodes of two devices that compute 1 FLOP/s; the second node's take twice as
/// long. 16 bytes take 2 s inside a node, and 8 s between nodes.
Cluster twoNodes() {
  return Cluster::parse(R"({
    "kinds": {"k": {"flops": {"f32": 1}, "memory_bytes": 1000,
      "memory_bandwidth": 10}},
    "nodes": [
      {"devices": [{"kind": "k", "count": 2}], "link": {"bandwidth": 8}},
      {"devices": [{"kind": "k", "count": 2, "slowdown": 2}],
       "link": {"bandwidth": 8}}],
    "network": {"bandwidth": 2}})");
}

Instruction kernel(int64_t flops) {
  return {{}, flops, 0, format::Kernel{"k", {0}, 1}};
}
Instruction start(int64_t channel, int64_t transfer) {
  return {{}, {}, {}, format::Start{channel, transfer, {{0, 0}}}};
}
Instruction wait(int64_t transfer) {
  return {{}, {}, {}, format::Wait{transfer}};
}

format::Collective allReduce(format::Groups groups) {
  format::Collective channel;
  channel.kind = "all_reduce";
  channel.parts[0].dtype = format::DType::F32;
  channel.groups = std::move(groups);
  for (const format::Group &group : channel.groups)
    for (int64_t rank : group) {
      channel.participants.push_back(rank);
      channel.parts[0].srcShapes[rank] = channel.parts[0].dstShapes[rank] = {4};
    }
  return channel;
}

format::BufferInfo bufferOf(int64_t elements) {
  format::BufferInfo buffer;
  buffer.bytes = 4 * elements;
  buffer.dtype = format::DType::F32;
  buffer.shape = {elements};
  return buffer;
}

format::Program programOf(std::vector<std::vector<int64_t>> classes) {
  format::Program program;
  for (std::vector<int64_t> &ranks : classes) {
    format::RankClass &rankClass = program.classes.emplace_back();
    rankClass.buffers.push_back(bufferOf(4));
    for (int64_t rank : ranks) {
      if (rank >= std::ssize(program.ranks))
        program.ranks.resize(rank + 1);
      program.ranks[rank].rankClass = std::ssize(program.classes) - 1;
    }
    rankClass.ranks = std::move(ranks);
  }
  return program;
}

void addChannel(format::Program &program, format::Collective channel) {
  program.channels[std::ssize(program.channels)] =
      std::make_shared<format::Collective>(std::move(channel));
}

TEST(ProgramModel, WaitsForTheSlowest) {
  format::Program program = programOf({{0, 1, 2, 3}});
  addChannel(program, allReduce({{0, 2}, {1, 3}}));
  program.classes[0].instructions = {kernel(10), start(0, 0), wait(0)};
  ModelledStep step = modelStep(program, twoNodes());
  // Both groups cross the network: 2 (n - 1) / n of 16 bytes each.
  EXPECT_EQ(step.seconds, 20 + 16);
  ASSERT_EQ(step.ranks.size(), 2u);
  EXPECT_EQ(step.ranks[0].ranks, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(step.ranks[0].computeSeconds, 10);
  EXPECT_EQ(step.ranks[0].communicationSeconds, 16);
  EXPECT_EQ(step.ranks[0].idleSeconds, 10);
  EXPECT_EQ(step.ranks[1].computeSeconds, 20);
  EXPECT_EQ(step.ranks[1].idleSeconds, 0);
  EXPECT_EQ(step.sentBytes, 4 * 16);
  EXPECT_TRUE(step.assumptions.empty());
}

TEST(ProgramModel, APeakThatAKindLacksIsAssumed) {
  format::Program program = programOf({{0, 1, 2, 3}});
  format::Matmul product;
  product.m = product.n = product.k = 1;
  program.classes[0].instructions.emplace_back().operation = product;
  EXPECT_TRUE(modelStep(program, twoNodes()).assumptions.empty());
  program.classes[0].buffers[0].dtype = format::DType::BF16;
  std::set<std::string> assumptions =
      modelStep(program, twoNodes()).assumptions;
  ASSERT_EQ(assumptions.size(), 1u);
  EXPECT_NE(assumptions.begin()->find("no peak of its own for bf16"),
            std::string::npos);
}

TEST(ProgramModel, InstructionsSayTheirClassAndType) {
  format::Program program = programOf({{0}});
  Cluster cluster = Cluster::parse(R"({
    "kinds": {"k": {"flops": {"f32": 4, "f64": 1}, "memory_bytes": 1000,
      "memory_bandwidth": 10, "efficiency": {"reduction": 0.5}}},
    "nodes": [{"devices": [{"kind": "k"}]}]})");
  Instruction &instruction =
      program.classes[0].instructions.emplace_back(kernel(40));
  EXPECT_EQ(modelStep(program, cluster).seconds, 10);
  instruction.opClass = OpClass::Reduction;
  EXPECT_EQ(modelStep(program, cluster).seconds, 20);
  instruction.computesIn = format::DType::F64;
  EXPECT_EQ(modelStep(program, cluster).seconds, 80);
  // Of what a product rounds nothing else is said.
  format::Matmul product;
  product.m = product.n = product.k = 1;
  product.tf32 = true;
  instruction.operation = product;
  std::optional<OpCost> work = workOf(instruction, program.classes[0], program);
  EXPECT_EQ(work->opClass, OpClass::Reduction);
  EXPECT_EQ(work->dtype, "tf32");
}

TEST(ProgramModel, RanksOfANodeShareItsCoresAndMemory) {
  // Three ranks compute at once on two cores, then one.
  format::Program program = programOf({{0, 1}, {2}});
  program.classes[0].instructions = {kernel(10)};
  program.classes[1].instructions = {kernel(16)};
  auto clusterWith = [](const std::string &fields) {
    return Cluster::parse(R"({"kinds": {"k": {"flops": {"f32": 1},
      "memory_bytes": 1000, "memory_bandwidth": 10}},
      "nodes": [{"devices": [{"kind": "k", "count": 3}])" +
                          fields + "}]}");
  };
  auto secondsOn = [&](const std::string &fields) {
    ModelledStep step = modelStep(program, clusterWith(fields));
    EXPECT_EQ(step.ranks.size(), 2u);
    return std::pair(step.ranks[0].computeSeconds,
                     step.ranks[1].computeSeconds);
  };
  EXPECT_EQ(secondsOn(""), std::pair(10.0, 16.0));
  EXPECT_EQ(secondsOn(R"(, "cores": 3)"), std::pair(10.0, 16.0));
  // 10 s of three at 2/3, then the 6 that are left.
  EXPECT_EQ(secondsOn(R"(, "cores": 2)"), std::pair(15.0, 21.0));
  // The first two move 10 B/s each, as much as there is for both, while the
  // third moves nothing.
  program.classes[0].instructions[0].bytes = 100;
  EXPECT_EQ(secondsOn(R"(, "memory_bandwidth": 10)"), std::pair(20.0, 16.0));
  // GPUs have their own.
  Cluster gpus = clusterWith(R"(, "cores": 1)");
  gpus.kinds[0].arch = "sm_90";
  EXPECT_EQ(modelStep(program, gpus).seconds, 16);
}

TEST(ProgramModel, TransfersGoOnBesideWork) {
  format::Program program = programOf({{0, 1}});
  program.ranks.resize(2);
  addChannel(program, allReduce({{0, 1}}));
  program.classes[0].instructions = {start(0, 0), kernel(1), wait(0),
                                     kernel(5)};
  Cluster cluster = twoNodes();
  EXPECT_THROW(modelStep(program, cluster), system::Error);
  cluster.nodes.pop_back();
  cluster.numberDevices();
  ModelledStep step = modelStep(program, cluster);
  EXPECT_EQ(step.seconds, 2 + 5);
  ASSERT_EQ(step.ranks.size(), 1u);
  EXPECT_EQ(step.ranks[0].communicationSeconds, 1);
}

TEST(ProgramModel, TheCriticalPathIsThatOfTheSlowest) {
  format::Program program = programOf({{0, 1}, {2, 3}});
  addChannel(program, allReduce({{0, 2}, {1, 3}}));
  program.classes[0].instructions = {kernel(30), start(0, 0), wait(0),
                                     kernel(1)};
  program.classes[1].instructions = {kernel(10), start(0, 0), wait(0),
                                     kernel(2)};
  ModelledStep step = modelStep(program, twoNodes());
  std::vector<PathPiece> path = findCriticalPath(step);
  // What the first ranks compute, the transfer, what the second ones compute.
  ASSERT_EQ(path.size(), 3u);
  EXPECT_EQ(path[0].ranks, 0u);
  EXPECT_EQ(path[0].seconds, 30);
  EXPECT_TRUE(path[1].part);
  EXPECT_EQ(path[1].seconds, 16);
  EXPECT_EQ(path[2].ranks, 1u);
  EXPECT_EQ(path[2].item, 3u);
  EXPECT_EQ(path[2].seconds, 4);
}

TEST(ProgramModel, LoopsTurnAsOftenAsTheyDo) {
  format::Program program = programOf({{0, 1, 2, 3}});
  addChannel(program, allReduce({{0, 1}, {2, 3}}));
  format::While inner;
  inner.body = {kernel(1)};
  inner.trips = 5;
  format::While loop;
  loop.cond = {kernel(2)};
  loop.body = {start(0, 0), wait(0), {{}, {}, {}, inner}};
  loop.trips = 3;
  program.classes[0].instructions = {{{}, {}, {}, loop}};
  ModelledStep step = modelStep(program, twoNodes());
  EXPECT_EQ(step.seconds, 2 * 3 * (2 + 5) + 3 * 2);
  EXPECT_EQ(step.sentBytes, 3 * 4 * 16);
  EXPECT_TRUE(step.assumptions.empty());
  std::get<format::While>(program.classes[0].instructions[0].operation).trips =
      std::nullopt;
  step = modelStep(program, twoNodes());
  EXPECT_EQ(step.seconds, 2 * (2 + 5) + 2);
  EXPECT_EQ(step.assumptions.size(), 1u);
}

TEST(ProgramModel, OfABranchTheLongest) {
  format::Program program = programOf({{0, 1, 2, 3}});
  format::Case choice;
  choice.branches = {{kernel(3)}, {kernel(4), kernel(5)}, {}};
  program.classes[0].instructions = {{{}, {}, {}, choice}};
  ModelledStep step = modelStep(program, twoNodes());
  EXPECT_EQ(step.seconds, 2 * 9);
  EXPECT_EQ(step.assumptions.size(), 1u);
}

TEST(ProgramModel, FunctionsTakeTheirInstructions) {
  format::Program program = programOf({{0, 1, 2, 3}});
  format::Function &function = program.functions.emplace_back();
  function.buffers.push_back(bufferOf(10));
  // Bound by memory: 80 bytes at 10 B/s.
  function.instructions = {kernel(2), {{}, {}, {}, format::Copy{0, 0}}};
  Instruction run = {{}, {}, {}, format::Run{}};
  program.classes[0].instructions = {run, run};
  EXPECT_EQ(modelStep(program, twoNodes()).seconds, 2 * 2 * (2 + 8));
}

TEST(ProgramModel, ACircleIsAnError) {
  format::Program program = programOf({{0, 1}, {2, 3}});
  addChannel(program, allReduce({{0, 2}}));
  addChannel(program, allReduce({{0, 2}}));
  program.classes[0].instructions = {start(0, 0), wait(0), start(1, 1),
                                     wait(1)};
  program.classes[1].instructions = {start(1, 0), wait(0), start(0, 1),
                                     wait(1)};
  EXPECT_THROW(modelStep(program, twoNodes()), system::Error);
}

TEST(ProgramModel, PricesOfChannels) {
  format::Collective gather;
  gather.kind = "all_gather";
  gather.parts[0].dtype = format::DType::BF16;
  gather.groups = {{0, 1}};
  gather.parts[0].srcShapes = {{0, {3}}, {1, {5}}};
  std::vector<Exchange> exchanges = exchangesOf(gather);
  ASSERT_EQ(exchanges.size(), 1u);
  EXPECT_EQ(exchanges[0].kind, Exchange::Kind::AllGather);
  EXPECT_EQ(exchanges[0].bytes, (std::vector<double>{6, 10}));
  EXPECT_EQ(sentBytes(exchanges[0]), 16);

  // What is broadcast is in rank 1.
  gather.kind = "broadcast";
  gather.parts[0].srcShapes = {{1, {5}}};
  exchanges = exchangesOf(gather);
  EXPECT_EQ(exchanges[0].devices, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(sentBytes(exchanges[0]), 10);
  // Rank 0 has a part of it, without elements.
  gather.parts[0].srcShapes = {{0, {0}}, {1, {5}}};
  exchanges = exchangesOf(gather);
  EXPECT_EQ(exchanges[0].devices, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(sentBytes(exchanges[0]), 10);

  format::Collective send;
  send.kind = "send_recv";
  send.parts[0].dtype = format::DType::F32;
  send.groups = {{0, 2}};
  send.parts[0].cells[2] = std::make_shared<std::vector<format::Cell>>(
      std::vector<format::Cell>{{{0}, {3}, {{0, {0}}}},
                                {{3}, {2}, {{0, {0}}}},
                                {{5}, {1}, {{2, {0}}}}});
  exchanges = exchangesOf(send);
  ASSERT_EQ(exchanges.size(), 1u);
  ASSERT_EQ(exchanges[0].transfers.size(), 1u);
  EXPECT_EQ(exchanges[0].transfers[0].bytes, 20);
  EXPECT_FALSE(exchanges[0].isAllToAll);
  send.kind = "all_to_all";
  EXPECT_TRUE(exchangesOf(send)[0].isAllToAll);
  send.kind = "send_recv";

  // What two ranks exchange of several parts is one message.
  send.parts.push_back(send.parts.front());
  send.parts[1].dtype = format::DType::F64;
  exchanges = exchangesOf(send);
  ASSERT_EQ(exchanges[0].transfers.size(), 1u);
  EXPECT_EQ(exchanges[0].transfers[0].bytes, 60);

  send.kind = "local_slice";
  EXPECT_TRUE(exchangesOf(send).empty());
}

/// Two ranks of a node fetch 16 bytes each from its host, whose link they
/// share, and compute meanwhile; exchanges go on beside copies.
TEST(ProgramModel, CopiesShareTheLinkOfTheirHost) {
  auto clusterOf = [](const char *host) {
    return Cluster::parse(std::string(R"({
      "kinds": {"k": {"flops": {"f32": 1}, "memory_bytes": 1000,
        "memory_bandwidth": 10}},
      "nodes": [{"count": 2, "devices": [{"kind": "k", "count": 2}])") +
                          host + R"(}], "network": {"bandwidth": 2}})");
  };
  Cluster cluster =
      clusterOf(R"(, "host": {"memory_bytes": 1000, "bandwidth": 4})");
  format::Program program = programOf({{0, 1, 2, 3}});
  format::Collective copy;
  copy.kind = "host_to_device";
  copy.participants = {0, 1, 2, 3};
  copy.parts[0].dtype = format::DType::F32;
  for (int64_t rank : copy.participants)
    copy.parts[0].srcShapes[rank] = copy.parts[0].dstShapes[rank] = {4};
  addChannel(program, copy);
  addChannel(program, allReduce({{0, 2}, {1, 3}}));
  program.classes[0].instructions = {start(0, 0), kernel(5), wait(0)};
  ModelledStep step = modelStep(program, cluster);
  EXPECT_EQ(step.seconds, 8);
  EXPECT_TRUE(step.assumptions.empty());
  EXPECT_EQ(step.sentBytes, 0);
  ASSERT_EQ(step.ranks.size(), 1u);
  EXPECT_EQ(step.ranks[0].computeSeconds, 5);
  EXPECT_EQ(step.ranks[0].communicationSeconds, 3);
  EXPECT_EQ(modelStep(program, cluster, CollectiveRule::Own, false).seconds, 8);
  // One copy after the other; both groups of the reduction cross the network.
  program.classes[0].instructions = {start(0, 0), start(1, 1), start(0, 2),
                                     wait(1),     wait(2),     wait(0)};
  EXPECT_EQ(modelStep(program, cluster).seconds, 16);
  program.classes[0].instructions = {start(0, 0), wait(0),     start(0, 1),
                                     wait(1),     start(0, 2), wait(2)};
  EXPECT_EQ(modelStep(program, cluster).seconds, 24);
  step = modelStep(program, clusterOf(""));
  EXPECT_EQ(step.seconds, 0);
  EXPECT_EQ(step.assumptions.size(), 1u);
}

/// Random programs on random clusters: what is alike is simulated once, with
/// the times of simulating each rank.
class Random {
public:
  explicit Random(unsigned seed) : random(seed) {}

  void check() {
    auto count = static_cast<int64_t>(2 + pick(7));
    Cluster cluster = makeCluster(count);
    format::Program program = makeProgram(count);
    ModelledStep joined = modelStep(program, cluster);
    ModelledStep each = modelStep(program, cluster, CollectiveRule::Own,
                                  /*joinsAlike=*/false);
    ASSERT_EQ(each.ranks.size(), static_cast<size_t>(count));
    EXPECT_NEAR(joined.seconds, each.seconds, 1e-9);
    EXPECT_NEAR(joined.sentBytes, each.sentBytes, 1e-9);
    for (const ModelledStep &step : {joined, each}) {
      double path = 0;
      for (const PathPiece &piece : findCriticalPath(step))
        path += piece.seconds;
      EXPECT_NEAR(path, step.seconds, 1e-9);
    }
    for (const ModelledRanks &ranks : joined.ranks)
      for (int64_t rank : ranks.ranks) {
        const ModelledRanks &own = each.ranks[rank];
        EXPECT_NEAR(ranks.computeSeconds, own.computeSeconds, 1e-9);
        EXPECT_NEAR(ranks.communicationSeconds, own.communicationSeconds, 1e-9);
        ASSERT_EQ(ranks.times.items.size(), own.times.items.size());
        for (size_t i = 0; i < ranks.times.items.size(); ++i)
          EXPECT_NEAR(ranks.times.items[i].end, own.times.items[i].end, 1e-9);
      }
    joins += joined.ranks.size() < each.ranks.size();
  }

  int joins = 0;

private:
  size_t pick(size_t count) { return random() % count; }

  Cluster makeCluster(int64_t count) {
    std::string nodes;
    for (int64_t device = 0; device < count;) {
      int64_t more =
          std::min(count - device, static_cast<int64_t>(1 + pick(3)));
      nodes += (nodes.empty() ? "" : ",") +
               std::string(R"({"devices": [{"kind": "k", "count": )") +
               std::to_string(more) + R"(, "slowdown": )" +
               std::to_string(1 + pick(2)) +
               R"(}], "link": {"bandwidth": 8, "latency": 1})";
      if (pick(2))
        nodes += R"(, "cores": )" + std::to_string(1 + pick(2));
      if (pick(2))
        nodes += R"(, "memory_bandwidth": )" + std::to_string(1 + pick(9));
      nodes += "}";
      device += more;
    }
    return Cluster::parse(R"({"kinds": {"k": {"flops": {"f32": 1},
      "memory_bytes": 1000, "memory_bandwidth": 10}},
      "network": {"bandwidth": 2}, "nodes": [)" +
                          nodes + "]}");
  }

  format::Groups makeGroups(int64_t count) {
    std::vector<int64_t> ranks(count);
    std::iota(ranks.begin(), ranks.end(), 0);
    std::ranges::shuffle(ranks, random);
    format::Groups groups;
    size_t size = 1 + pick(ranks.size());
    for (size_t i = 0; i < ranks.size(); i += size) {
      format::Group group(ranks.begin() + i,
                          ranks.begin() + std::min(i + size, ranks.size()));
      std::ranges::sort(group);
      if (group.size() > 1)
        groups.insert(group);
    }
    return groups;
  }

  /// All classes start the same channels in the same order, with other work.
  format::Program makeProgram(int64_t count) {
    std::vector<std::vector<int64_t>> classes(1 + pick(2));
    for (int64_t rank = 0; rank < count; ++rank)
      classes[pick(classes.size())].push_back(rank);
    std::erase_if(classes, [](const auto &ranks) { return ranks.empty(); });
    format::Program program = programOf(std::move(classes));
    size_t channels = 1 + pick(4);
    for (size_t i = 0; i < channels; ++i)
      addChannel(program, allReduce(makeGroups(count)));
    for (format::RankClass &rankClass : program.classes) {
      int64_t started = 0, waited = 0;
      for (size_t i = 0; i < 6; ++i) {
        rankClass.instructions.push_back(
            kernel(static_cast<int64_t>(pick(20))));
        rankClass.instructions.back().bytes =
            static_cast<int64_t>(pick(2) * pick(100));
        rankClass.instructions.push_back(
            start(static_cast<int64_t>(i % channels), started++));
        while (waited < started && pick(2))
          rankClass.instructions.push_back(wait(waited++));
      }
    }
    return program;
  }

  std::mt19937 random;
};

TEST(ProgramModel, RanksThatAreAlikeAreSimulatedOnce) {
  Random random(7);
  for (int i = 0; i < 300; ++i)
    random.check();
  EXPECT_GT(random.joins, 50);
}

} // namespace
