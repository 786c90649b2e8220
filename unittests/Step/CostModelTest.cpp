//===- CostModelTest.cpp - How long things take ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/CostModel.h"
#include "gtest/gtest.h"

using namespace whale;

/// Two nodes of two devices; the second's run at half speed.
static Cluster twoNodes() {
  return Cluster::parse(R"({
    "kinds": {"k": {"flops": {"f32": 100, "f16": 400}, "memory_bytes": 1000,
      "memory_bandwidth": 10,
      "efficiency": {"matmul": 0.5, "reduction": [[10, 0.1], [1000, 1]]}}},
    "nodes": [
      {"devices": [{"kind": "k", "count": 2}],
       "link": {"bandwidth": 8, "latency": 0.5}},
      {"devices": [{"kind": "k", "count": 2, "slowdown": 2}],
       "link": {"bandwidth": 8, "latency": 0.5}}],
    "network": {"bandwidth": 2, "latency": 3}})");
}

static double secondsOf(const CostModel &model,
                        const std::vector<Exchange> &exchanges) {
  return model.exchangeSeconds(exchanges);
}

TEST(CostModel, Operations) {
  Cluster cluster = twoNodes();
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  EXPECT_EQ(model->opSeconds({OpClass::Matmul, "f32", 1000, 20}, 0), 20);
  EXPECT_EQ(model->opSeconds({OpClass::Matmul, "f16", 1000, 20}, 0), 5);
  EXPECT_EQ(model->opSeconds({OpClass::Matmul, "f32", 1000, 20}, 2), 40);
  // Bound by memory.
  EXPECT_EQ(model->opSeconds({OpClass::Elementwise, "f32", 10, 200}, 0), 20);
  EXPECT_EQ(model->opSeconds({}, 0), 0);
  // By a curve.
  EXPECT_EQ(model->opSeconds({OpClass::Reduction, "f32", 1000, 0}, 0), 10);
  EXPECT_EQ(model->opSeconds({OpClass::Reduction, "f32", 10, 0}, 0), 1);
}

TEST(CostModel, WhatIsReachedOfPeaks) {
  Cluster cluster = Cluster::parse(R"({
    "kinds": {"k": {"flops": {"f32": 100, "tf32": 800}, "memory_bytes": 1000,
      "memory_bandwidth": 10, "memory_efficiency": 0.5, "kernel_start": 1,
      "efficiency": {"matmul": {"flops": 0.5, "smallest_dimension":
        [[4, 0.1], [64, 0.8]]}}}},
    "nodes": [{"devices": [{"kind": "k", "count": 2, "slowdown": 3}],
      "link": {"bandwidth": 8, "efficiency": [[8, 0.25], [800, 1]]}}]})");
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  EXPECT_EQ(model->opSeconds({OpClass::Matmul, "f32", 1000, 0, 4}, 0),
            3 * (100 + 1));
  EXPECT_EQ(model->opSeconds({OpClass::Matmul, "f32", 1000, 0, 64}, 0),
            3 * (20 + 1));
  EXPECT_EQ(model->opSeconds({OpClass::Matmul, "tf32", 800, 0, 64}, 0),
            3 * (2 + 1));
  EXPECT_EQ(model->opSeconds({OpClass::Elementwise, "f32", 0, 20}, 0),
            3 * (4 + 1));
  // Nothing is no kernel.
  EXPECT_EQ(model->opSeconds({}, 0), 0);
  Exchange exchange;
  exchange.transfers = {{0, 1, 8}};
  EXPECT_EQ(model->exchangeSeconds(exchange), 4);
}

TEST(CostModel, MessagesInsideANode) {
  Cluster cluster = twoNodes();
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  using Kind = Exchange::Kind;
  // Few bytes go whole to the other device; of many each has its half to add
  // up, and sends the sum back.
  EXPECT_EQ(secondsOf(*model, {{Kind::AllReduce, {0, 1}, {16, 16}, {}}}),
            2 + 0.5);
  EXPECT_EQ(secondsOf(*model, {{Kind::AllReduce, {0, 1}, {64e3, 64e3}, {}}}),
            8e3 + 1);
  EXPECT_EQ(secondsOf(*model, {{Kind::AllGather, {0, 1}, {16, 16}, {}}}),
            2 + 0.5);
  // Whoever has less receives more.
  EXPECT_EQ(secondsOf(*model, {{Kind::ReduceScatter, {0, 1}, {8, 24}, {}}}),
            3 + 0.5);
  EXPECT_EQ(secondsOf(*model, {{Kind::AllReduce, {0}, {16}, {}}}), 0);
  EXPECT_EQ(secondsOf(*model, {{Kind::Broadcast, {0, 1}, {16}, {}}}), 2 + 0.5);
}

TEST(CostModel, MessagesBetweenNodes) {
  Cluster cluster = twoNodes();
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  using Kind = Exchange::Kind;
  EXPECT_EQ(secondsOf(*model, {{Kind::AllReduce, {0, 2}, {16, 16}, {}}}),
            8 + 3);
  // Each device of a node receives a quarter from two of the other.
  std::vector<double> many(4, 64e3);
  EXPECT_EQ(secondsOf(*model, {{Kind::AllReduce, {0, 1, 2, 3}, many, {}}}),
            2 * (2 * 2 * 16e3 / 2 + 3));
  // Each device of a node receives what all of the other have.
  EXPECT_EQ(secondsOf(*model, {{Kind::AllGather, {0, 1, 2, 3}, many, {}}}),
            2 * 2 * 64e3 / 2 + 3);
  // Two groups share the network.
  EXPECT_EQ(secondsOf(*model, {{Kind::AllReduce, {0, 2}, {16, 16}, {}},
                               {Kind::AllReduce, {1, 3}, {16, 16}, {}}}),
            16 + 3);
}

/// By the rule of NCCL: seconds, and the algorithm.
static std::pair<double, std::string>
byNccl(const Cluster &cluster, const std::vector<Exchange> &exchanges) {
  std::unique_ptr<CostModel> model =
      createRooflineModel(cluster, CollectiveRule::Nccl);
  return {model->exchangeSeconds(exchanges),
          std::string(model->linkLoads(exchanges).choice)};
}

TEST(CostModel, RingsTreesAndHierarchies) {
  Cluster cluster = twoNodes();
  using Kind = Exchange::Kind;
  using Priced = std::pair<double, std::string>;
  // 2 (n - 1) / n * S / bandwidth + 2 (n - 1) * latency
  EXPECT_EQ(byNccl(cluster, {{Kind::AllReduce, {0, 1}, {16, 16}, {}}}),
            Priced(2 + 1, "ring"));
  EXPECT_EQ(byNccl(cluster, {{Kind::AllGather, {0, 1}, {16, 16}, {}}}),
            Priced(2 + 0.5, "ring"));
  EXPECT_EQ(byNccl(cluster, {{Kind::AllReduce, {0, 2}, {16, 16}, {}}}),
            Priced(8 + 6, "ring"));
  // A node contributes each byte once, however many devices share it.
  EXPECT_EQ(
      byNccl(cluster, {{Kind::AllReduce, {0, 1, 2, 3}, {16, 16, 16, 16}, {}}}),
      Priced(8 + 7, "hierarchical"));
  EXPECT_EQ(byNccl(cluster, {{Kind::AllReduce, {0, 2}, {16, 16}, {}},
                             {Kind::AllReduce, {1, 3}, {16, 16}, {}}})
                .first,
            16 + 6);
  // Over many nodes the latencies of a ring add up; those of a tree grow with
  // the logarithm: 2 * 6 rounds of 1 s, and 2 * 4 B at 0.9 * 4 B/s.
  Cluster many = Cluster::parse(R"({
    "nodes": [{"count": 64, "devices": [{"kind": "cpu"}]}],
    "network": {"bandwidth": 4, "latency": 1}})");
  Exchange all;
  all.kind = Kind::AllReduce;
  for (int64_t device = 0; device < 64; ++device)
    all.devices.push_back(device);
  all.bytes.assign(64, 4);
  auto [seconds, choice] = byNccl(many, {all});
  EXPECT_EQ(choice, "tree");
  EXPECT_DOUBLE_EQ(seconds, 12 + 8 / (0.9 * 4));
}

TEST(CostModel, Transfers) {
  Cluster cluster = twoNodes();
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  auto seconds = [&](std::vector<Transfer> transfers) {
    Exchange exchange;
    exchange.transfers = std::move(transfers);
    return model->exchangeSeconds(exchange);
  };
  EXPECT_EQ(seconds({{0, 1, 16}}), 2.5);
  EXPECT_EQ(seconds({{0, 1, 16}, {1, 0, 16}}), 2.5);
  EXPECT_EQ(seconds({{0, 2, 16}, {1, 3, 16}}), 16 + 3);
  EXPECT_EQ(seconds({{0, 0, 16}}), 0);
  EXPECT_EQ(seconds({}), 0);
}

TEST(CostModel, AllToAllIsMessagesBetweenAll) {
  Cluster cluster = twoNodes();
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  for (std::vector<int64_t> group :
       {std::vector<int64_t>{0, 1}, {0, 2}, {0, 1, 2}, {0, 1, 2, 3}, {3}}) {
    Exchange messages, allToAll;
    allToAll.kind = Exchange::Kind::AllToAll;
    messages.isAllToAll = true;
    for (int64_t from : group) {
      double bytes = double(16 + from);
      allToAll.devices.push_back(from);
      allToAll.bytes.push_back(bytes);
      for (int64_t to : group)
        if (to != from)
          messages.transfers.push_back({from, to, bytes / group.size()});
    }
    EXPECT_NEAR(model->exchangeSeconds(allToAll),
                model->exchangeSeconds(messages), 1e-12);
  }
}

TEST(CostModel, MessagesOfAnAllToAllGoOneAfterAnother) {
  Cluster cluster = twoNodes();
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  double link = cluster.nodeOf(0).link.latency,
         network = cluster.network.latency;
  auto secondsOfTiny = [&](std::vector<int64_t> group) {
    Exchange exchange;
    exchange.kind = Exchange::Kind::AllToAll;
    exchange.bytes.assign(group.size(), 1e-12);
    exchange.devices = std::move(group);
    return model->exchangeSeconds(exchange);
  };
  EXPECT_NEAR(secondsOfTiny({0, 1}), link, 1e-9);
  EXPECT_NEAR(secondsOfTiny({0, 2}), network, 1e-9);
  EXPECT_NEAR(secondsOfTiny({0, 1, 2, 3}),
              network + kMessageGap * (network + link), 1e-9);
}

TEST(CostModel, FreeWhereNothingIsSaid) {
  Cluster cluster = Cluster::ofRanks(2);
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  EXPECT_EQ(
      secondsOf(*model, {{Exchange::Kind::AllReduce, {0, 1}, {16, 16}, {}}}),
      0);
}
