//===- VirtualDevicesTest.cpp - Sequential grouping -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which devices each TaskGraph gets: in turn, repeated as often as the group
// fits, near one another, and with more memory for earlier stages. Expected
// lists are written by hand, from the rules in docs/planner.md; errors are
// compared word for word.
//
// The last test tries all requests of three TaskGraphs on up to 10 devices,
// under all options of sharing: some 24,000 cases. Each TaskGraph must have as
// many distinct devices as it asks for in each full group, and every device
// must be used where the requests fit into the cluster.
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/VirtualDevices.h"
#include "whale/Cluster/Cluster.h"
#include "gtest/gtest.h"
#include <numeric>
#include <set>

using namespace whale;

using Lists = std::vector<VirtualDevice>;

static std::vector<DeviceRequest>
requests(std::initializer_list<int64_t> counts) {
  std::vector<DeviceRequest> result;
  for (int64_t count : counts)
    result.push_back({"t" + std::to_string(result.size()),
                      count ? std::optional(count) : std::nullopt});
  return result;
}

static Lists grouped(std::initializer_list<int64_t> counts, int64_t devices,
                     VirtualDeviceOptions options = {}) {
  std::vector<int64_t> ids(devices);
  std::iota(ids.begin(), ids.end(), 0);
  return llvm::cantFail(virtualDevices(requests(counts), ids, options));
}

/// One node for each list of gigabytes of memory.
static Cluster
nodesOf(std::initializer_list<std::initializer_list<int64_t>> nodes) {
  Cluster cluster;
  for (llvm::ArrayRef<int64_t> node : nodes) {
    NodeGroup &group = cluster.nodes.emplace_back();
    for (int64_t gigabytes : node) {
      group.devices.push_back({unsigned(cluster.kinds.size())});
      cluster.kinds.emplace_back().memoryBytes = gigabytes << 30;
    }
  }
  cluster.numberDevices();
  return cluster;
}

static Lists placed(std::initializer_list<int64_t> counts,
                    const Cluster &cluster, VirtualDeviceOptions options = {}) {
  return llvm::cantFail(virtualDevices(requests(counts), cluster, options));
}

static std::string errorOf(std::initializer_list<int64_t> counts,
                           int64_t devices) {
  std::vector<int64_t> ids(devices);
  std::iota(ids.begin(), ids.end(), 0);
  llvm::Expected<Lists> result = virtualDevices(requests(counts), ids);
  return result ? "" : llvm::toString(result.takeError());
}

TEST(VirtualDevices, TheSumFits) {
  EXPECT_EQ(grouped({2, 2}, 8), (Lists{{{0, 1}, {4, 5}}, {{2, 3}, {6, 7}}}));
  EXPECT_EQ(grouped({1, 1}, 4), (Lists{{{0}, {2}}, {{1}, {3}}}));
  EXPECT_EQ(grouped({4}, 4), (Lists{{{0, 1, 2, 3}}}));
  EXPECT_EQ(grouped({1, 3}, 4), (Lists{{{0}}, {{1, 2, 3}}}));
  EXPECT_EQ(grouped({}, 4), Lists{});
}

TEST(VirtualDevices, LeftOutMeansAll) {
  EXPECT_EQ(grouped({0}, 3), (Lists{{{0, 1, 2}}}));
  EXPECT_EQ(grouped({0, 0}, 2), (Lists{{{0, 1}}, {{0, 1}}}));
}

TEST(VirtualDevices, TheSumDoesNotFit) {
  EXPECT_EQ(grouped({4, 4}, 4), (Lists{{{0, 1, 2, 3}}, {{0, 1, 2, 3}}}));
  // A group of 2, twice.
  EXPECT_EQ(grouped({2, 2, 1}, 4),
            (Lists{{{0, 1}, {2, 3}}, {{0, 1}, {2, 3}}, {{0}, {2}}}));
  // Handed out in turn, wrapping round.
  EXPECT_EQ(grouped({1, 3, 2}, 3), (Lists{{{0}}, {{1, 2, 0}}, {{1, 2}}}));
  // The whole cluster is the group.
  EXPECT_EQ(grouped({2, 2, 2}, 4, {.wholeCluster = true}),
            (Lists{{{0, 1}}, {{2, 3}}, {{0, 1}}}));
}

TEST(VirtualDevices, GivenOrder) {
  EXPECT_EQ(llvm::cantFail(virtualDevices(requests({1, 2}),
                                          llvm::ArrayRef<int64_t>{7, 2, 5})),
            (Lists{{{7}}, {{2, 5}}}));
}

TEST(VirtualDevices, NestedDataParallelism) {
  EXPECT_EQ(grouped({1, 1}, 8),
            (Lists{{{0}, {2}, {4}, {6}}, {{1}, {3}, {5}, {7}}}));
}

TEST(VirtualDevices, EqualDevicesAreTakenInTurn) {
  Cluster cluster = nodesOf({{8, 8, 8, 8}, {8, 8, 8, 8}});
  for (bool pipeline : {false, true}) {
    VirtualDeviceOptions options{.pipeline = pipeline};
    EXPECT_EQ(placed({2, 2}, cluster, options), grouped({2, 2}, 8));
    EXPECT_EQ(placed({1, 3}, cluster, options), grouped({1, 3}, 8));
    EXPECT_EQ(placed({8}, cluster, options), grouped({8}, 8));
    EXPECT_EQ(placed({8, 4}, cluster, options), grouped({8, 4}, 8));
  }
}

TEST(VirtualDevices, LinksInsideANodeArePreferred) {
  // The first would have a device of each node.
  EXPECT_EQ(placed({3, 1}, nodesOf({{8}, {8, 8, 8}})),
            (Lists{{{1, 2, 3}}, {{0}}}));
  EXPECT_EQ(placed({2, 1}, nodesOf({{8}, {8, 8}, {8, 8}, {8}})),
            (Lists{{{1, 2}, {3, 4}}, {{0}, {5}}}));
  // No node has enough: as it comes.
  EXPECT_EQ(placed({3, 1}, nodesOf({{8, 8}, {8, 8}})),
            (Lists{{{0, 1, 2}}, {{3}}}));
  // TaskGraphs that share devices take them in turn.
  EXPECT_EQ(placed({3, 2}, nodesOf({{8}, {8, 8}})),
            (Lists{{{0, 1, 2}}, {{0, 1}}}));
}

TEST(VirtualDevices, EarlierStagesGetMoreMemory) {
  VirtualDeviceOptions pipeline{.pipeline = true};
  Cluster cluster = nodesOf({{16, 16}, {32, 32}});
  EXPECT_EQ(placed({2, 2}, cluster, pipeline), (Lists{{{2, 3}}, {{0, 1}}}));
  EXPECT_EQ(placed({2, 2}, cluster), (Lists{{{0, 1}}, {{2, 3}}}));
  // In each group by itself.
  EXPECT_EQ(placed({1, 1}, nodesOf({{16, 32, 16, 32}}), pipeline),
            (Lists{{{1}, {3}}, {{0}, {2}}}));
  // Memory goes before links; a single TaskGraph has nothing to order.
  EXPECT_EQ(placed({2, 2}, nodesOf({{16, 32}, {16, 32}}), pipeline),
            (Lists{{{1, 3}}, {{0, 2}}}));
  EXPECT_EQ(placed({4}, cluster, pipeline), (Lists{{{0, 1, 2, 3}}}));
  // By what the stages need, where that is known.
  VirtualDeviceOptions known{.pipeline = true, .stageBytes = {1, 3, 2}};
  EXPECT_EQ(placed({1, 1, 2}, nodesOf({{16, 16, 32, 64}}), known),
            (Lists{{{1}}, {{3}}, {{0, 2}}}));
  // A last, smaller group too.
  EXPECT_EQ(placed({2, 2}, nodesOf({{8, 8, 8, 8, 8, 16}}),
                   {.unevenReplicas = true, .pipeline = true}),
            (Lists{{{0, 1}, {5}}, {{2, 3}, {4}}}));
}

TEST(VirtualDevices, UnevenReplicas) {
  VirtualDeviceOptions uneven{.unevenReplicas = true};
  EXPECT_EQ(grouped({4}, 6, uneven), (Lists{{{0, 1, 2, 3}, {4, 5}}}));
  EXPECT_EQ(grouped({2, 2}, 6, uneven), (Lists{{{0, 1}, {4}}, {{2, 3}, {5}}}));
  EXPECT_EQ(grouped({1, 3}, 7, uneven),
            (Lists{{{0}, {4}}, {{1, 2, 3}, {5, 6}}}));
  // Fewer devices than TaskGraphs: they share.
  EXPECT_EQ(grouped({1, 1, 1}, 4, uneven),
            (Lists{{{0}, {3}}, {{1}, {3}}, {{2}, {3}}}));
}

TEST(VirtualDevices, TheUsersOwn) {
  auto own = [](std::initializer_list<int64_t> counts,
                std::vector<std::vector<int64_t>> lists) {
    return ownVirtualDevices(requests(counts), lists, 4);
  };
  auto errorOf = [&](std::initializer_list<int64_t> counts,
                     std::vector<std::vector<int64_t>> lists) {
    return llvm::toString(own(counts, lists).takeError());
  };
  EXPECT_EQ(llvm::cantFail(own({2, 0}, {{0, 2}, {1, 3}})),
            (Lists{{{0, 2}}, {{1, 3}}}));
  EXPECT_EQ(llvm::cantFail(own({0}, {{3}})), (Lists{{{3}}}));
  EXPECT_EQ(llvm::cantFail(own({1, 1}, {{0}, {1}, {2}, {3}})),
            (Lists{{{0}, {2}}, {{1}, {3}}}));
  EXPECT_EQ(llvm::cantFail(own({0, 0, 0}, {{0, 1}, {1, 2, 3}})),
            (Lists{{{0, 1}}, {{1, 2, 3}}, {{0, 1}}}));
  EXPECT_EQ(errorOf({1, 1}, {{0}, {1}, {2}}),
            "3 virtual devices don't fit 2 task graphs; give a multiple of "
            "these, or fewer");
  EXPECT_EQ(errorOf({1, 1}, {{0}, {1, 2}}),
            "virtual device 1 has 2 devices, but task graph 't1' asks for 1");
  EXPECT_EQ(errorOf({0}, {{0, 4}}),
            "virtual device 0 names device 4, the cluster has 4");
  EXPECT_EQ(errorOf({0}, {{0, 1}, {2, 1}}),
            "virtual device 1 gives device 1 to task graph 't0' twice");
  EXPECT_EQ(errorOf({0}, {{}}), "virtual device 0 has no devices");
  EXPECT_EQ(errorOf({0}, {}), "there are no virtual devices");
}

TEST(VirtualDevices, Errors) {
  EXPECT_EQ(
      errorOf({5}, 4),
      "task graph 't0' asks for 5 devices, the cluster has 4; ask for that "
      "many at most");
  EXPECT_EQ(errorOf({1, -1}, 4),
            "task graph 't1' asks for -1 devices, at least 1 is needed");
  EXPECT_EQ(errorOf({1}, 0), "the cluster has no devices");
  EXPECT_EQ(errorOf({2, 2}, 6),
            "a group of 4 devices ('t0' asks for 2, 't1' asks for 2) doesn't "
            "divide the cluster's 6 devices; group sizes that fit are 1, 2, "
            "3, 6, and numbers of devices that fit this group are 4 and 8; or "
            "set cluster.uneven_replicas");
}

TEST(VirtualDevices, EveryRequestIsMet) {
  for (int64_t devices = 1; devices <= 10; ++devices)
    for (int64_t a = 1; a <= devices; ++a)
      for (int64_t b = 1; b <= devices; ++b)
        for (int64_t c = 1; c <= devices; ++c)
          for (int flags = 0; flags < 8; ++flags) {
            VirtualDeviceOptions options{bool(flags & 1), bool(flags & 2)};
            std::vector<int64_t> ids(devices);
            std::iota(ids.begin(), ids.end(), 0);
            llvm::Expected<Lists> result =
                flags & 4 ? virtualDevices(requests({a, b, c}),
                                           Cluster::ofRanks(devices), options)
                          : virtualDevices(requests({a, b, c}), ids, options);
            int64_t sum = a + b + c;
            int64_t size = sum <= devices         ? sum
                           : options.wholeCluster ? devices
                                                  : std::max({a, b, c});
            ASSERT_EQ(bool(result),
                      devices % size == 0 || options.unevenReplicas);
            if (!result) {
              llvm::consumeError(result.takeError());
              continue;
            }
            std::set<int64_t> used;
            int64_t wants[] = {a, b, c};
            for (int i = 0; i < 3; ++i) {
              const VirtualDevice &lists = (*result)[i];
              ASSERT_EQ(int64_t(lists.size()), (devices + size - 1) / size);
              for (int64_t r = 0; r < devices / size; ++r)
                ASSERT_EQ(int64_t(lists[r].size()), wants[i]);
              for (const std::vector<int64_t> &list : lists) {
                std::set<int64_t> distinct(list.begin(), list.end());
                ASSERT_EQ(distinct.size(), list.size());
                ASSERT_FALSE(list.empty());
                used.insert(list.begin(), list.end());
              }
            }
            ASSERT_TRUE(*used.begin() >= 0 && *used.rbegin() < devices);
            if (sum <= devices) {
              ASSERT_EQ(int64_t(used.size()), devices);
              // Of a rest that is enough for all, no two share a device.
              int64_t rest = devices % size, last = 0;
              for (int i = 0; i < 3; ++i)
                last += (*result)[i].back().size();
              if (rest >= 3) {
                ASSERT_EQ(last, rest);
              }
            }
          }
}
