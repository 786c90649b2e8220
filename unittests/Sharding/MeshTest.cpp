//===- MeshTest.cpp - Shares of the devices of a mesh ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/Mesh.h"
#include "gtest/gtest.h"
#include <array>
#include <cmath>
#include <random>

using namespace whale;

namespace {

Cluster twoDevices() { return Cluster::ofRanks(2); }

// Both have work besides, on which the slower device 0 spends twice as long:
// that is why it gets less of what is shared out.
TEST(Mesh, SharesMakeUpForWhatIsNotShared) {
  Cluster cluster = twoDevices();
  Mesh mesh({{0, 1}}, cluster);
  MeshBalance balance = mesh.getBalance();
  balance.batch = {{{.seconds = 2}, {.seconds = 1}}};
  balance.inner[12] = {{{.seconds = 24}, {.seconds = 12}}};
  mesh.setBalance(balance);
  EXPECT_EQ(mesh.innerShares(12, 0), (Extents{4, 8}));
  EXPECT_EQ(mesh.batchShares(12), (std::vector<Extents>{{4, 8}}));
  balance.inner[12] = {
      {{.seconds = 24, .fixed = 12}, {.seconds = 12, .fixed = 6}}};
  balance.batch = {{{.seconds = 2, .fixed = 1}, {.seconds = 1, .fixed = 0.5}}};
  mesh.setBalance(balance);
  // 2 * 2 + 12 = 16 = 10 + 6.
  EXPECT_EQ(mesh.innerShares(12, 0), (Extents{2, 10}));
  EXPECT_EQ(mesh.batchShares(12), (std::vector<Extents>{{2, 10}}));
}

// Groups are replicas: what they add up in parts they add up in the same parts.
TEST(Mesh, GroupsOfUnlikeDevicesHaveEqualParts) {
  Cluster cluster = Cluster::ofRanks(4);
  Mesh mesh({{0, 1}, {2, 3}}, cluster);
  MeshBalance balance = mesh.getBalance();
  balance.inner[12] = {{{.seconds = 2}, {.seconds = 1}},
                       {{.seconds = 2}, {.seconds = 4}}};
  balance.otherInner = balance.inner[12];
  mesh.setBalance(balance);
  for (int64_t extent : {12, 24})
    for (size_t group : {0, 1})
      EXPECT_EQ(mesh.innerShares(extent, group),
                (Extents{extent / 3 * 2, extent / 3}));
  // Unless each has memory for all, but not the least of both.
  balance.inner[12] = {{{.most = 0.8}, {.most = 0.4}},
                       {{.most = 0.4}, {.most = 0.8}}};
  mesh.setBalance(balance);
  EXPECT_EQ(mesh.innerShares(12, 0), (Extents{8, 4}));
  EXPECT_EQ(mesh.innerShares(12, 1), (Extents{4, 8}));
}

// Devices of a replica take turns where there are fewer samples than devices,
// unless they wait for one another in each micro-batch.
TEST(Mesh, DevicesInLockstepTakeNoTurns) {
  Cluster cluster = Cluster::ofRanks(4);
  Mesh mesh({{0, 1}, {2, 3}}, cluster);
  MeshBalance balance = mesh.getBalance();
  balance.moments = {3, 3};
  balance.period = 2;
  auto sharesOfGroups = [&] {
    mesh.setBalance(balance);
    std::array<std::vector<Extents>, 2> shares;
    for (int64_t moment : {0, 1})
      for (size_t group : {0, 1})
        shares[group].push_back(mesh.batchShares(3, moment)[group]);
    return shares;
  };
  using Moments = std::vector<Extents>;
  for (bool hasReplicas : {false, true}) {
    balance.inner.clear();
    if (hasReplicas)
      balance.replicas = {{.seconds = 1}, {.seconds = 1}};
    auto [first, second] = sharesOfGroups();
    // Three samples in two moments: nobody rests twice.
    for (int device : {0, 1}) {
      EXPECT_GT(first[0][device] + first[1][device], 0);
      EXPECT_GT(second[0][device] + second[1][device], 0);
    }
    balance.inner[12] = balance.batch;
    auto [third, fourth] = sharesOfGroups();
    // Groups still take turns in having two samples.
    EXPECT_EQ(third, (Moments{{1, 1}, {1, 0}}));
    EXPECT_EQ(fourth, (Moments{{1, 0}, {1, 1}}));
    EXPECT_EQ(mesh.batchShares(6, 0), (Moments{{2, 2}, {2, 0}}));
  }
}

// A device that holds half of three samples holds one.
TEST(Mesh, DevicesInLockstepHoldWholeSamples) {
  Cluster cluster = Cluster::ofRanks(4);
  Mesh mesh({{0, 1}, {2, 3}}, cluster);
  MeshBalance balance = mesh.getBalance();
  ShareCost fast{.seconds = 1, .most = 0.5}, slow{.seconds = 10, .most = 0.5};
  balance.batch = {{fast, fast}, {slow, slow}};
  balance.inner[12] = balance.batch;
  balance.moments = {3, 3};
  balance.period = 2;
  mesh.setBalance(balance);
  for (int64_t moment : {0, 1})
    for (const Extents &group : mesh.batchShares(3, moment))
      for (int64_t share : group)
        EXPECT_LE(share, 1);
}

// Finish times differ by less than a grain of the slower device.
TEST(Mesh, RanksFinishTogether) {
  Cluster cluster = twoDevices();
  std::mt19937 random(3);
  std::uniform_real_distribution<double> slower(1, 5), part(0, 0.1);
  for (int round = 0; round < 200; ++round) {
    Mesh mesh({{0, 1}}, cluster);
    MeshBalance balance = mesh.getBalance();
    constexpr int64_t pieces = 64;
    double slow = slower(random), fixed = part(random);
    balance.inner[pieces] = {{{.seconds = slow, .fixed = fixed * slow},
                              {.seconds = 1, .fixed = fixed}}};
    mesh.setBalance(balance);
    Extents shares = mesh.innerShares(pieces, 0);
    double first = (double(shares[0]) / pieces + fixed) * slow;
    double second = double(shares[1]) / pieces + fixed;
    EXPECT_LT(std::abs(first - second), slow / pieces * (1 + 1e-9));
  }
}

} // namespace
