//===- ResolverTest.cpp - Tests of the resolver ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The resolver, which turns a change of placement into collectives, and the
// oracle that judges its results. Each case states by hand the kinds of the
// steps, their groups, and how many elements the busiest device receives in
// all.
//
// The oracle also verifies, element by element, that the steps give each device
// what the target says; it is itself tested on tables with one fault each. A
// failure means that a reshard costs more than it should, or is wrong. The last
// test resolves placements of 512 devices and fails after 5 seconds: regular
// steps must not cost a table of cells.
//
//===----------------------------------------------------------------------===//

#include "whale/Placement/DivideByNode.h"
#include "whale/Placement/GroupReduction.h"
#include "whale/Placement/Oracle.h"
#include "gtest/gtest.h"
#include <chrono>
#include <set>

using namespace llvm;
using namespace whale;

namespace {

Placement parse(StringRef text) {
  return cantFail(Placement::parse(text), text.str().c_str());
}

/// The kinds of the steps, with the groups of each, and the elements that the
/// busiest device receives in all; verified.
std::string plan(StringRef from, StringRef to, const Topology &topology = {}) {
  Placement source = parse(from), target = parse(to);
  std::vector<Step> steps = resolve(source.view(), source, target, topology);
  EXPECT_EQ(verifySteps(steps, source, target, topology), std::nullopt);
  std::string text;
  raw_string_ostream os(text);
  int64_t busiest = 0;
  for (const Step &step : steps) {
    CellTable table = cells(step, topology);
    os << stringifyStepKind(step.kind) << ' ';
    EXPECT_EQ(groups(step, topology), table.groups);
    for (const auto &group : table.groups) {
      os << '{';
      interleaveComma(group, os);
      os << "} ";
    }
    int64_t most = 0;
    for (const Receiver &receiver : table.receivers)
      most = std::max(most, table.elementsReceived(receiver.device));
    busiest += most;
  }
  os << busiest;
  return text;
}

TEST(Resolver, NothingToDo) {
  EXPECT_EQ(
      plan("[8] split 0 (3, 5) on [0, 1]", "[8] split 0 (3, 5) on [0, 1]"),
      "0");
  // Another tree, another view: the same.
  EXPECT_EQ(plan("[8] replicate 2 split 0 (4, 4) on [0 to 3]",
                 "[2, 4] split 0 (1, 1) replicate 2 on [0, 2, 1, 3]"),
            "0");
  EXPECT_EQ(plan("[0, 4] on [0]", "[0, 4] replicate 2 on [0, 1]"),
            "local_slice 0");
}

TEST(Resolver, LocalSlice) {
  EXPECT_EQ(plan("[8] replicate 2 on [0, 1]", "[8] split 0 (3, 5) on [0, 1]"),
            "local_slice 0");
  EXPECT_EQ(plan("[8] replicate 3 on [0, 1, 2]", "[8] replicate 2 on [1, 2]"),
            "local_slice 0");
  // A term of a new partial value is the identity, which costs nothing.
  EXPECT_EQ(plan("[8] replicate 2 on [0, 1]", "[8] partial sum 2 on [0, 1]"),
            "local_slice 0");
  EXPECT_EQ(plan("[8] split 0 (3, 5) on [0, 1]", "[8] partial sum 2 on [0, 1]"),
            "local_slice 0");
}

TEST(Resolver, Collectives) {
  EXPECT_EQ(plan("[8] partial sum 2 on [0, 1]", "[8] replicate 2 on [0, 1]"),
            "all_reduce {0, 1} 8");
  EXPECT_EQ(plan("[8] partial sum 2 on [0, 1]", "[8] split 0 (3, 5) on [0, 1]"),
            "reduce_scatter {0, 1} 5");
  EXPECT_EQ(plan("[8] split 0 (3, 5) on [0, 1]", "[8] replicate 2 on [0, 1]"),
            "all_gather {0, 1} 5");
  EXPECT_EQ(plan("[8, 4] split 0 (3, 5) on [0, 1]",
                 "[8, 4] split 1 (2, 2) on [0, 1]"),
            "all_to_all {0, 1} 10");
  EXPECT_EQ(plan("[8] on [0]", "[8] replicate 3 on [0, 1, 2]"),
            "broadcast {0, 1, 2} 8");
  EXPECT_EQ(plan("[8] on [0]", "[8] on [1]"), "send_recv 8");
  EXPECT_EQ(
      plan("[8] split 0 (3, 5) on [0, 1]", "[8] split 0 (3, 5) on [2, 3]"),
      "send_recv 5");
  EXPECT_EQ(plan("[] partial max 2 on [0, 1]", "[] replicate 2 on [0, 1]"),
            "all_reduce {0, 1} 1");
}

// One device ends without the sum, so it is no all-reduce.
TEST(Resolver, SumsOfScalars) {
  EXPECT_EQ(plan("[] partial sum 2 on [0, 1]", "[] replicate 2 on [0, 1]"),
            "all_reduce {0, 1} 1");
  EXPECT_EQ(plan("[] partial sum 2 on [0, 1]", "[] on [0]"),
            "reduce_scatter {0, 1} 1");
}

TEST(Resolver, EmptyShares) {
  EXPECT_EQ(plan("[8] split 0 (3, 0, 5) on [0, 1, 2]",
                 "[8] replicate 3 on [0, 1, 2]"),
            "all_gather {0, 2, 1} 8");
  EXPECT_EQ(plan("[8] partial sum 3 on [0, 1, 2]",
                 "[8] split 0 (3, 0, 5) on [0, 1, 2]"),
            "reduce_scatter {0, 1, 2} 10");
  EXPECT_EQ(plan("[8] split 0 (0, 8) on [0, 1]", "[8] replicate 2 on [0, 1]"),
            "broadcast {1, 0} 8");
}

TEST(Resolver, TermsOfNothing) {
  EXPECT_EQ(plan("[8] split 0 (8, 0) {on [0], partial sum 2 on [1, 2]}",
                 "[8] split 0 (8, 0) {on [0], replicate 2 on [1, 2]}"),
            "send_recv 0");
  EXPECT_EQ(plan("[0] partial sum 2 on [0, 1]", "[0] replicate 2 on [0, 1]"),
            "send_recv 0");
}

TEST(Resolver, GroupsSideBySide) {
  EXPECT_EQ(plan("[8, 4] split 0 (3, 5) partial sum 2 on [0 to 3]",
                 "[8, 4] split 0 (3, 5) replicate 2 on [0 to 3]"),
            "all_reduce {0, 1} {2, 3} 20");
  EXPECT_EQ(plan("[8] replicate 2 partial sum 2 on [0 to 3]",
                 "[8] replicate 4 on [0 to 3]"),
            "all_reduce {0, 1} {2, 3} 8");
  EXPECT_EQ(plan("[8] split 0 (4, 4) replicate 2 on [0 to 3]",
                 "[8] replicate 4 on [0 to 3]"),
            "all_gather {0, 2} {1, 3} 4");
  EXPECT_EQ(plan("[8, 4] split 0 (4, 4) split 1 (2, 2) on [0 to 3]",
                 "[8, 4] split 1 (2, 2) split 1 (1, 1) on [0, 2, 1, 3]"),
            "all_to_all {0, 2} {1, 3} 4");
  // Replicas of different degree, as groups of unlike devices have.
  EXPECT_EQ(plan("[6] replicate 2 {split 0 (3, 3) on [0, 1], split 0 (2, 2, 2) "
                 "on [2, 3, 4]}",
                 "[6] replicate 5 on [0 to 4]"),
            "all_gather {0, 1} {2, 3, 4} 4");
  // Of the replicas of a part, those in the same node form a group.
  Topology topology;
  topology.node = {0, 1, 1, 0};
  EXPECT_EQ(plan("[8] split 0 (4, 4) replicate 2 on [0 to 3]",
                 "[8] replicate 4 on [0 to 3]", topology),
            "all_gather {0, 3} {1, 2} 4");
}

TEST(Resolver, SeveralSteps) {
  // Each keeps its quarter and gathers the other: no byte more than messages.
  EXPECT_EQ(plan("[8, 8] split 0 (4, 4) replicate 2 on [0 to 3]",
                 "[8, 8] replicate 2 split 1 (4, 4) on [0 to 3]"),
            "local_slice all_gather {0, 2} {1, 3} 16");
  // The terms of a gradient become parts, then replicas of parts.
  EXPECT_EQ(plan("[8] partial sum 4 on [0 to 3]",
                 "[8] split 0 (4, 4) replicate 2 on [0 to 3]"),
            "reduce_scatter {0, 1, 2, 3} all_gather {0, 1} {2, 3} 8");
  EXPECT_EQ(plan("[8] partial sum 4 on [0 to 3]",
                 "[8] split 0 (4, 4) replicate 2 on [0, 2, 1, 3]"),
            "reduce_scatter {0, 1, 2, 3} all_gather {0, 2} {1, 3} 8");
  // The terms' holders share the work; the parts go where they are needed.
  EXPECT_EQ(plan("[8] partial sum 2 on [0, 1]", "[8] replicate 2 on [0, 2]"),
            "reduce_scatter {0, 1} send_recv 12");
  EXPECT_EQ(plan("[] partial sum 2 on [0, 1]", "[] replicate 2 on [2, 3]"),
            "reduce_scatter {0, 1} broadcast {0, 2, 3} 2");
}

TEST(GroupReduction, DividesByNode) {
  Topology topology;
  topology.node = {0, 0, 1, 1};
  auto reductionOf = [&](StringRef from, StringRef to) {
    return GroupReduction::of({StepKind::AllReduce, parse(from), parse(to)},
                              topology);
  };
  std::optional<GroupReduction> reduction = reductionOf(
      "[8] partial sum 4 on [0 to 3]", "[8] replicate 4 on [0 to 3]");
  ASSERT_TRUE(reduction);
  EXPECT_EQ(reduction->membersByNode(topology), 2);
  std::vector<Step> steps = reduction->divideByNode(topology);
  Step whole = reduction->asStep();
  EXPECT_EQ(verifySteps(steps, whole.from, whole.to, topology), std::nullopt);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].to.str(),
            "[8] partial sum 2 split 0 (4, 4) on [0, 1, 2, 3]");
  EXPECT_EQ(steps[2].from.str(),
            "[8] split 0 (4, 4) replicate 2 on [0, 2, 1, 3]");
  for (const Step &step : steps)
    EXPECT_EQ(classify(step.from, step.to, topology), step.kind);

  // Groups side by side, each with elements of its own.
  topology.node = {0, 0, 0, 0, 1, 1, 1, 1};
  reduction = reductionOf(
      "[3, 4] split 0 (2, 1) partial sum 4 on [0, 1, 4, 5, 2, 3, 6, 7]",
      "[3, 4] split 0 (2, 1) replicate 4 on [0, 1, 4, 5, 2, 3, 6, 7]");
  ASSERT_TRUE(reduction);
  EXPECT_EQ(reduction->elements, (Extents{8, 4}));
  EXPECT_EQ(reduction->membersByNode(topology), 2);
  steps = reduction->divideByNode(topology);
  whole = reduction->asStep();
  EXPECT_EQ(verifySteps(steps, whole.from, whole.to, topology), std::nullopt);

  // One node, nodes of one member, nodes of unlike size.
  for (std::vector<unsigned> nodes :
       {std::vector<unsigned>{0, 0, 0, 0}, {0, 1, 2, 3}, {0, 0, 0, 1}}) {
    topology.node = nodes;
    EXPECT_EQ(reductionOf("[8] partial sum 4 on [0 to 3]",
                          "[8] replicate 4 on [0 to 3]")
                  ->membersByNode(topology),
              std::nullopt);
  }
  // A part without elements, and a device without a partner.
  EXPECT_FALSE(reductionOf("[2] split 0 (2, 0) partial sum 2 on [0 to 3]",
                           "[2] split 0 (2, 0) replicate 2 on [0 to 3]"));
  EXPECT_FALSE(
      reductionOf("[2] split 0 (1, 1) {partial sum 2 on [0, 1], on [2]}",
                  "[2] split 0 (1, 1) {replicate 2 on [0, 1], on [2]}"));
}

/// Elements that leave the first node, and messages that do.
std::pair<int64_t, int64_t> countLeaving(const Step &step,
                                         const Topology &topology) {
  int64_t elements = 0;
  std::set<std::pair<DeviceId, DeviceId>> messages;
  for (const Receiver &receiver : cells(step, topology).receivers)
    for (const Cell &cell : receiver.cells)
      for (const Contribution &from : cell.contributions)
        if (topology.nodeOf(from.peer) == 0 &&
            topology.nodeOf(receiver.device) != 0) {
          elements += cell.box.volume();
          messages.insert({from.peer, receiver.device});
        }
  return {elements, int64_t(messages.size())};
}

TEST(DivideByNode, LeavesNodesAsOftenAsItMust) {
  for (auto [nodes, inNode] :
       {std::pair<int64_t, int64_t>{2, 8}, {4, 8}, {16, 8}, {3, 2}}) {
    int64_t count = nodes * inNode, all = count * count;
    Topology topology;
    std::vector<DeviceId> devices;
    for (int64_t i = 0; i < count; ++i) {
      topology.node.push_back(unsigned(i / inNode));
      devices.push_back(i);
    }
    Placement whole = Placement::replicated({count, count}, devices),
              terms =
                  Placement::partial({count, count}, Reduction::Sum, devices),
              rows = Placement::split({count, count}, 0, Extents(count, 1),
                                      devices),
              columns = Placement::split({count, count}, 1, Extents(count, 1),
                                         devices);
    auto divide = [&](StepKind kind, const Placement &from,
                      const Placement &to) {
      std::optional<NodeDivision> division =
          divideByNode({kind, from, to}, topology);
      EXPECT_TRUE(division);
      EXPECT_EQ(verifySteps({division->first, division->second},
                            division->first.from, division->second.to,
                            topology),
                std::nullopt);
      return *division;
    };
    // Each other node gets what this one has, once.
    NodeDivision gather = divide(StepKind::AllGather, rows, whole);
    EXPECT_EQ(countLeaving(gather.first, topology).first,
              all / nodes * (nodes - 1));
    EXPECT_EQ(countLeaving(gather.second, topology).first, 0);
    NodeDivision scatter = divide(StepKind::ReduceScatter, terms, rows);
    EXPECT_EQ(countLeaving(scatter.first, topology).first, 0);
    EXPECT_EQ(countLeaving(scatter.second, topology).first,
              all / nodes * (nodes - 1));
    // An all-reduce is both, of parts in each place of a node.
    auto reduction =
        GroupReduction::of({StepKind::AllReduce, terms, whole}, topology);
    ASSERT_TRUE(reduction);
    CellTable across = cells(reduction->divideByNode(topology)[1], topology);
    int64_t sent = 0;
    for (DeviceId device = 0; device < inNode; ++device)
      sent += across.elementsSent(device);
    EXPECT_EQ(sent, 2 * all / nodes * (nodes - 1));
    // As much crosses as in one step, in as many fewer messages as a node has
    // devices.
    NodeDivision exchange = divide(StepKind::AllToAll, rows, columns);
    auto [elements, messages] =
        countLeaving({StepKind::AllToAll, rows, columns}, topology);
    EXPECT_EQ(countLeaving(exchange.first, topology).first, 0);
    auto [crossed, fewer] = countLeaving(exchange.second, topology);
    EXPECT_EQ(crossed, elements);
    EXPECT_EQ(elements, all / nodes / nodes * (nodes - 1));
    EXPECT_EQ(fewer * inNode, messages);
  }
}

TEST(DivideByNode, GathersAndScattersPartsOfAnySizes) {
  Topology topology;
  topology.node = {0, 0, 1, 1, 2, 2};
  Placement parts = parse("[2, 12] split 1 (3, 2, 1, 1, 4, 1) on [0 to 5]");
  Placement between = parse("[2, 12] replicate 3 split 1 (6, 6) on [0 to 5]");
  Placement whole = parse("[2, 12] replicate 6 on [0 to 5]");
  Placement terms = parse("[2, 12] partial sum 6 on [0 to 5]");
  for (auto [kind, from, to] :
       {std::tuple(StepKind::AllGather, parts, whole),
        std::tuple(StepKind::ReduceScatter, terms, parts)}) {
    std::optional<NodeDivision> division =
        divideByNode({kind, from, to}, topology);
    ASSERT_TRUE(division);
    EXPECT_EQ(division->shape, Extents({2, 6}));
    EXPECT_EQ(
        verifySteps({division->first, division->second}, from, to, topology),
        std::nullopt);
    bool gathers = kind == StepKind::AllGather;
    const Step &inNodes = gathers ? division->second : division->first;
    const Step &across = gathers ? division->first : division->second;
    EXPECT_EQ(inNodes.kind, kind);
    EXPECT_EQ(countLeaving(inNodes, topology).first, 0);
    // What node 0 has, or has summed, goes to each other node once.
    EXPECT_EQ(countLeaving(across, topology).first,
              gathers ? 2 * 2 * (3 + 2) : 2 * (24 / 2 - (3 + 2)));
    if (gathers)
      EXPECT_EQ(division->first.to, between);
  }
  auto divides = [&](StringRef from) {
    return divideByNode({StepKind::AllGather, parse(from), whole}, topology)
        .has_value();
  };
  // Nodes by turns, nothing on one device, and a whole that two can't halve.
  EXPECT_FALSE(divides("[2, 12] split 1 (3, 2, 1, 1, 4, 1) on "
                       "[0, 2, 1, 3, 4, 5]"));
  EXPECT_FALSE(divides("[2, 12] split 1 (3, 2, 2, 0, 4, 1) on [0 to 5]"));
  whole = parse("[2, 13] replicate 6 on [0 to 5]");
  EXPECT_FALSE(divides("[2, 13] split 1 (3, 2, 1, 1, 5, 1) on [0 to 5]"));
}

TEST(DivideByNode, LeavesUnequalExchangesAlone) {
  Topology topology;
  topology.node = {0, 0, 1, 1};
  auto divide = [&](StringRef from, StringRef to) {
    return divideByNode({StepKind::AllToAll, parse(from), parse(to)}, topology)
        .has_value();
  };
  EXPECT_TRUE(divide("[4, 8] split 0 (1, 1, 1, 1) on [0 to 3]",
                     "[4, 8] split 1 (2, 2, 2, 2) on [0 to 3]"));
  // Groups side by side, in one node each or in both.
  EXPECT_FALSE(divide("[2, 4, 4] split 0 (1, 1) split 1 (2, 2) on [0 to 3]",
                      "[2, 4, 4] split 0 (1, 1) split 2 (2, 2) on [0 to 3]"));
  EXPECT_FALSE(
      divide("[2, 4, 4] split 0 (1, 1) split 1 (2, 2) on [0, 2, 1, 3]",
             "[2, 4, 4] split 0 (1, 1) split 2 (2, 2) on [0, 2, 1, 3]"));
  EXPECT_FALSE(divide("[4, 8] split 0 (1, 1, 1, 1) on [0 to 3]",
                      "[4, 8] split 1 (1, 3, 2, 2) on [0 to 3]"));
  EXPECT_FALSE(divide("[4, 8] split 0 (1, 1, 1, 1) on [0, 2, 1, 3]",
                      "[4, 8] split 1 (2, 2, 2, 2) on [0, 2, 1, 3]"));
  EXPECT_FALSE(divide("[4, 8] split 0 (1, 1, 1, 1) on [0, 1, 2, 3]",
                      "[4, 8] split 1 (2, 2, 2, 2) on [1, 0, 2, 3]"));
}

TEST(Resolver, PartialStaysPartial) {
  // The terms' layout changes, not their number.
  EXPECT_EQ(plan("[8] partial sum 2 split 0 (4, 4) on [0 to 3]",
                 "[8] partial sum 2 replicate 2 on [0 to 3]"),
            "all_gather {0, 1} {2, 3} 4");
  EXPECT_EQ(plan("[8] partial sum 2 replicate 2 on [0 to 3]",
                 "[8] partial sum 2 split 0 (4, 4) on [0 to 3]"),
            "local_slice 0");
  EXPECT_EQ(plan("[8] partial sum 2 on [0, 1]", "[8] partial sum 2 on [2, 3]"),
            "send_recv 8");
  EXPECT_EQ(
      plan("[8] partial sum 2 on [0, 1]", "[8] partial sum 4 on [0 to 3]"),
      "local_slice 0");
}

TEST(Resolver, Views) {
  // [4, 6] seen flat, and as [4, 2, 3]: parts of a fused projection.
  EXPECT_EQ(plan("[24] split 0 (12, 12) on [0, 1]",
                 "[4, 2, 3] replicate 2 on [0, 1]"),
            "all_gather {0, 1} 12");
  EXPECT_EQ(plan("[4, 6] split 1 (3, 3) on [0, 1]",
                 "[4, 2, 3] split 1 (1, 1) on [0, 1]"),
            "0");
  // Sizes that are no multiples: intervals of row-major order.
  EXPECT_EQ(plan("[4, 6] split 1 (2, 4) on [0, 1]",
                 "[24] split 0 (11, 13) on [0, 1]"),
            "send_recv 7");
  EXPECT_EQ(plan("[6, 4] split 1 (2, 2) on [0, 1]",
                 "[4, 6] split 1 (3, 3) on [0, 1]"),
            "send_recv 6");
}

TEST(Resolver, OwnersAreLocalThenNearThenIdle) {
  Topology topology;
  topology.node = {0, 1, 0, 1, 1, 1};
  Placement from = parse("[8] replicate 2 on [0, 1]");
  Placement to = parse("[8] split 0 (4 x 2) on [2, 3, 4, 0]");
  std::vector<Step> steps = resolve({8}, from, to, topology);
  ASSERT_EQ(steps.size(), 1u);
  std::vector<DeviceId> peers;
  for (const Receiver &receiver : cells(steps[0], topology).receivers)
    peers.push_back(receiver.cells[0].contributions[0].peer);
  EXPECT_EQ(peers, (std::vector<DeviceId>{0, 1, 1, 0}));
  peers.clear();
  for (const Receiver &receiver : cells(steps[0]).receivers)
    peers.push_back(receiver.cells[0].contributions[0].peer);
  EXPECT_EQ(peers, (std::vector<DeviceId>{0, 1, 0, 0}));
}

TEST(Resolver, Tables) {
  Step step{StepKind::SendRecv, parse("[4, 6] split 1 (2, 4) on [0, 1]"),
            parse("[4, 6] split 0 (1, 3) on [0, 2]")};
  CellTable table = cells(step);
  ASSERT_EQ(table.receivers.size(), 2u);
  const Receiver &second = table.receivers[1];
  EXPECT_EQ(second.device, 2);
  EXPECT_EQ(second.shape, (Extents{3, 6}));
  ASSERT_EQ(second.cells.size(), 2u);
  EXPECT_EQ(second.cells[1].box, (Box{{0, 2}, {3, 4}}));
  ASSERT_EQ(second.cells[1].contributions.size(), 1u);
  EXPECT_EQ(second.cells[1].contributions[0], (Contribution{1, {1, 0}}));
  EXPECT_EQ(table.elementsReceived(0), 4);
  EXPECT_EQ(table.elementsReceived(2), 18);
  EXPECT_EQ(table.elementsSent(0), 6);
  EXPECT_EQ(table.bytesSent(1, 2), 32);
  EXPECT_EQ(elementsMissing(step.from, step.to, 0), 4);
  EXPECT_EQ(table.reduction, std::nullopt);
}

TEST(Resolver, AllReduceVolumeIsThatOfItsParts) {
  Step step{StepKind::AllReduce, parse("[9] partial sum 4 on [0 to 3]"),
            parse("[9] replicate 4 on [0 to 3]")};
  CellTable table = cells(step);
  EXPECT_EQ(table.reduction, Reduction::Sum);
  // Part sizes 3, 2, 2, 2.
  EXPECT_EQ(table.elementsReceived(0), 3 * 3 + 6);
  EXPECT_EQ(table.elementsSent(0), 6 + 3 * 3);
  EXPECT_EQ(table.elementsReceived(1), 3 * 2 + 7);
  int64_t received = 0, sent = 0;
  for (DeviceId device = 0; device != 4; ++device) {
    received += table.elementsReceived(device);
    sent += table.elementsSent(device);
  }
  EXPECT_EQ(received, sent);
}

TEST(Resolver, Classify) {
  Placement halves = parse("[8] split 0 (4, 4) on [0, 1]");
  Placement both = parse("[8] replicate 2 on [0, 1]");
  EXPECT_EQ(classify(halves, both), StepKind::AllGather);
  EXPECT_EQ(classify(both, halves), StepKind::LocalSlice);
  EXPECT_EQ(classify(halves, parse("[8] split 0 (4, 4) on [2, 3]")),
            StepKind::SendRecv);
}

TEST(Oracle, NamesTheFirstFault) {
  Placement from = parse("[4] split 0 (2, 2) on [0, 1]");
  Placement to = parse("[4] replicate 2 on [0, 1]");
  Step step{StepKind::AllGather, from, to};
  CellTable right = cells(step);
  EXPECT_EQ(verifyTable(step, right), std::nullopt);
  CellTable table = right;
  table.receivers[1].cells.pop_back();
  EXPECT_EQ(verifyTable(step, table),
            "all_gather: device 1 never receives element [2]");
  table = right;
  table.receivers[0].cells.push_back(table.receivers[0].cells[0]);
  EXPECT_EQ(verifyTable(step, table),
            "all_gather: device 0 receives element [0] twice");
  table = right;
  table.receivers[0].cells[1].contributions[0].peer = 7;
  EXPECT_EQ(verifyTable(step, table),
            "all_gather: device 0 takes element [2] from device 7, which does "
            "not hold it");
  table = right;
  table.receivers[0].cells[1].contributions[0].peer = 0;
  EXPECT_EQ(verifyTable(step, table),
            "all_gather: device 0 takes for element [2] another element of "
            "device 0");
  table = right;
  table.receivers[0].cells[1].box.start[0] = 3;
  EXPECT_EQ(verifyTable(step, table),
            "all_gather: device 0 has a cell outside its shard");
  table = right;
  table.receivers[0].cells[1].contributions.clear();
  EXPECT_EQ(verifyTable(step, table),
            "all_gather: device 0 has a cell of 0 terms, but nothing is "
            "reduced");
  Step reduce{StepKind::AllReduce, parse("[4] partial sum 3 on [0, 1, 2]"),
              parse("[4] replicate 3 on [0, 1, 2]")};
  table = cells(reduce);
  table.receivers[1].cells[0].contributions.pop_back();
  EXPECT_EQ(verifyTable(reduce, table),
            "all_reduce: element [0] on device 1 is not the whole value: it "
            "has the terms of devices 0, 1");
}

TEST(Oracle, StepsMustMeet) {
  Placement a = parse("[4] split 0 (2, 2) on [0, 1]");
  Placement b = parse("[4] replicate 2 on [0, 1]");
  EXPECT_EQ(verifySteps({}, a, a), std::nullopt);
  EXPECT_NE(verifySteps({}, a, b), std::nullopt);
  Step gather{StepKind::AllGather, a, b};
  EXPECT_EQ(verifySteps(gather, a, b), std::nullopt);
  EXPECT_NE(verifySteps(gather, b, b), std::nullopt);
  EXPECT_NE(verifySteps(gather, a, a), std::nullopt);
}

/// Regular steps of many devices must not cost a table.
TEST(Resolver, ManyDevicesAreFast) {
  auto begin = std::chrono::steady_clock::now();
  Topology topology;
  for (int i = 0; i != 512; ++i)
    topology.node.push_back(i / 8);
  for (auto [from, to] : {
           std::pair("[4096, 512] partial sum 512 on [0 to 511]",
                     "[4096, 512] replicate 512 on [0 to 511]"),
           std::pair("[4096, 512] split 0 (512 x 8) on [0 to 511]",
                     "[4096, 512] replicate 512 on [0 to 511]"),
           std::pair("[4096, 512] replicate 512 on [0 to 511]",
                     "[4096, 512] split 0 (512 x 8) on [0 to 511]"),
           std::pair("[4096, 512] partial sum 512 on [0 to 511]",
                     "[4096, 512] split 0 (512 x 8) on [0 to 511]"),
           std::pair("[4096, 512] split 0 (512 x 8) on [0 to 511]",
                     "[4096, 512] split 1 (512 x 1) on [0 to 511]"),
           std::pair("[4096, 512] split 0 (256 x 16) on [0 to 255]",
                     "[4096, 512] split 1 (256 x 2) on [256 to 511]"),
       }) {
    Placement source = parse(from), target = parse(to);
    auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(resolve({4096, 512}, source, target, topology).size(), 1u);
    std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - start;
    if (getenv("WHALE_SHOW_TIMES"))
      errs() << to << ": " << taken.count() * 1e3 << " ms\n";
  }
  if (getenv("WHALE_SHOW_TIMES"))
    errs() << "all: "
           << std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                            begin)
                  .count()
           << " s\n";
  // Milliseconds each; the limit leaves room for loaded machines.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

} // namespace
