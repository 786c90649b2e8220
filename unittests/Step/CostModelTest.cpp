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

TEST(CostModel, RingsInsideANode) {
  Cluster cluster = twoNodes();
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  using Kind = Exchange::Kind;
  // 2 (n - 1) / n * S / bandwidth + 2 (n - 1) * latency
  EXPECT_EQ(secondsOf(*model, {{Kind::AllReduce, {0, 1}, {16, 16}, {}}}),
            2 + 1);
  EXPECT_EQ(secondsOf(*model, {{Kind::AllGather, {0, 1}, {16, 16}, {}}}),
            2 + 0.5);
  // Whoever has less receives more.
  EXPECT_EQ(secondsOf(*model, {{Kind::ReduceScatter, {0, 1}, {8, 24}, {}}}),
            3 + 0.5);
  EXPECT_EQ(secondsOf(*model, {{Kind::AllReduce, {0}, {16}, {}}}), 0);
  EXPECT_EQ(secondsOf(*model, {{Kind::Broadcast, {0, 1}, {16}, {}}}), 2 + 0.5);
}

TEST(CostModel, RingsBetweenNodes) {
  Cluster cluster = twoNodes();
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  using Kind = Exchange::Kind;
  EXPECT_EQ(secondsOf(*model, {{Kind::AllReduce, {0, 2}, {16, 16}, {}}}),
            8 + 6);
  // A node contributes each byte once, however many devices share it.
  EXPECT_EQ(secondsOf(*model,
                      {{Kind::AllReduce, {0, 1, 2, 3}, {16, 16, 16, 16}, {}}}),
            8 + 7);
  // Two groups share the network.
  EXPECT_EQ(secondsOf(*model, {{Kind::AllReduce, {0, 2}, {16, 16}, {}},
                               {Kind::AllReduce, {1, 3}, {16, 16}, {}}}),
            16 + 6);
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

TEST(CostModel, FreeWhereNothingIsSaid) {
  Cluster cluster = Cluster::ofRanks(2);
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  EXPECT_EQ(
      secondsOf(*model, {{Exchange::Kind::AllReduce, {0, 1}, {16, 16}, {}}}),
      0);
}
