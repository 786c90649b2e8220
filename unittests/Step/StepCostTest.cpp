//===- StepCostTest.cpp - What a resolver step costs ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Step/StepCost.h"
#include "whale/Placement/Resolver.h"
#include "whale/Step/ReductionCost.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace whale;

/// Four devices in two nodes.
static Cluster twoNodes() {
  return Cluster::parse(R"({
    "nodes": [{"count": 2, "devices": [{"kind": "cpu", "count": 2}],
               "link": {"bandwidth": 8}}],
    "network": {"bandwidth": 2}})");
}

static Placement placement(llvm::StringRef text) {
  return llvm::cantFail(Placement::parse(text));
}

/// Seconds of the one step from `from` to `to`, of elements of 4 bytes.
static double secondsOf(StepKind kind, llvm::StringRef from,
                        llvm::StringRef to) {
  Cluster cluster = twoNodes();
  std::unique_ptr<CostModel> model = createRooflineModel(cluster);
  Step step{kind, placement(from), placement(to)};
  return stepSeconds(*model, step, 4, Topology::of(cluster));
}

TEST(StepCost, Collectives) {
  EXPECT_EQ(secondsOf(StepKind::AllReduce, "[8] partial sum 2 on [0, 1]",
                      "[8] replicate 2 on [0, 1]"),
            4);
  EXPECT_EQ(secondsOf(StepKind::AllReduce, "[8] partial sum 2 on [0, 2]",
                      "[8] replicate 2 on [0, 2]"),
            16);
  EXPECT_EQ(secondsOf(StepKind::ReduceScatter, "[8] partial sum 2 on [0, 1]",
                      "[8] split 0 (2, 6) on [0, 1]"),
            3);
  EXPECT_EQ(secondsOf(StepKind::AllGather, "[8] split 0 (2, 6) on [0, 1]",
                      "[8] replicate 2 on [0, 1]"),
            3);
  EXPECT_EQ(
      secondsOf(StepKind::Broadcast, "[8] on [0]", "[8] replicate 2 on [0, 1]"),
      4);
}

TEST(StepCost, Messages) {
  // Each keeps half of its rows and sends the other half.
  EXPECT_EQ(secondsOf(StepKind::AllToAll, "[4, 4] split 0 (2, 2) on [0, 1]",
                      "[4, 4] split 1 (2, 2) on [0, 1]"),
            2);
  EXPECT_EQ(secondsOf(StepKind::SendRecv, "[8] on [0]",
                      "[8] split 0 (4, 4) on [2, 3]"),
            16);
  EXPECT_EQ(secondsOf(StepKind::LocalSlice, "[8] replicate 2 on [0, 1]",
                      "[8] split 0 (4, 4) on [0, 1]"),
            0);
}

TEST(StepCost, GroupsShareTheNetwork) {
  EXPECT_EQ(secondsOf(StepKind::AllReduce,
                      "[8] partial sum 2 split 0 (4, 4) on [0, 1, 2, 3]",
                      "[8] replicate 2 split 0 (4, 4) on [0, 1, 2, 3]"),
            16);
}

TEST(StepCost, ReductionsByNode) {
  Cluster cluster = Cluster::parse(R"({
    "nodes": [{"count": 2, "devices": [{"kind": "cpu", "count": 2}],
               "link": {"bandwidth": 1000, "latency": 1}}],
    "network": {"bandwidth": 100, "latency": 2}})");
  auto secondsOf = [&](int64_t elements) {
    GroupReduction reduction{Reduction::Sum, {{0, 1, 2, 3}}, {elements}};
    return reductionSeconds(reduction, /*elementBytes=*/4, cluster);
  };
  // 40 bytes: in one round, each of a node's two devices receives those of two
  // others over the network. Divided, two rounds inside of 20 bytes, and one
  // of 20 bytes of each of two devices across; and two more starts.
  constexpr double kStart = 2e-5;
  ReductionSeconds few = secondsOf(10);
  EXPECT_DOUBLE_EQ(few.whole, 2 + 4 * 40 / 100.0);
  EXPECT_DOUBLE_EQ(few.divided,
                   2 * (kStart + 1 + 20 / 1000.0) + 2 + 40 / 100.0);
  EXPECT_LT(few.whole, few.divided);
  // 4000 bytes are still one round.
  ReductionSeconds many = secondsOf(1000);
  EXPECT_DOUBLE_EQ(many.whole, 2 + 4 * 4000 / 100.0);
  EXPECT_DOUBLE_EQ(many.divided, 2 * (kStart + 1 + 2000 / 1000.0) + 2 + 40);
  EXPECT_GT(many.whole, many.divided);
  // Two groups share the network of a node: twice the seconds on it.
  GroupReduction two{Reduction::Sum, {{0, 2}, {1, 3}}, {1000, 1000}};
  GroupReduction one{Reduction::Sum, {{0, 2}}, {1000}};
  EXPECT_GT(reductionSeconds(two, 4, cluster).whole,
            1.9 * reductionSeconds(one, 4, cluster).whole - 4);
  // Links that cost nothing: one collective is started sooner than three.
  Cluster free = Cluster::parse(
      R"({"nodes": [{"count": 2, "devices": [{"kind": "cpu", "count": 2}]}]})");
  GroupReduction any{Reduction::Sum, {{0, 1, 2, 3}}, {1000}};
  EXPECT_EQ(reductionSeconds(any, 4, free).whole, 0);
  EXPECT_DOUBLE_EQ(reductionSeconds(any, 4, free).divided, 2 * kStart);
  // Nodes with unlike numbers of members, and a single node.
  GroupReduction uneven{Reduction::Sum, {{0, 1, 2}}, {1000}};
  EXPECT_TRUE(std::isinf(reductionSeconds(uneven, 4, free).divided));
  GroupReduction inside{Reduction::Sum, {{0, 1}}, {1000}};
  EXPECT_TRUE(std::isinf(reductionSeconds(inside, 4, free).divided));
}
