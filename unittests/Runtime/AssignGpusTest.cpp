//===- AssignGpusTest.cpp - Which GPU each rank computes on ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executor/AssignGpus.h"

#include <gtest/gtest.h>

namespace whale::runtime::test {
namespace {

constexpr int64_t gib = int64_t(1) << 30;
using Found = std::vector<cuda::GpuFacts>;
using Wanted = std::vector<WantedGpu>;

Found gpus(std::initializer_list<std::pair<int, int64_t>> facts) {
  Found found;
  for (const auto &[capability, gibs] : facts)
    found.push_back({static_cast<int>(found.size()),
                     "G" + std::to_string(capability), capability, gibs * gib});
  return found;
}

/// Of a kind with this architecture and memory; without memory, of no kind but
/// of that architecture or later.
Wanted ranks(std::initializer_list<std::pair<int, int64_t>> kinds) {
  Wanted wanted;
  for (const auto &[capability, gibs] : kinds)
    wanted.push_back({.rank = static_cast<int64_t>(wanted.size()),
                      .kind = gibs ? "K" + std::to_string(capability) : "",
                      .capability = capability,
                      .isExact = gibs > 0,
                      .memoryBytes = gibs * gib});
  return wanted;
}

TEST(AssignGpus, RanksTakeTheirsInTurn) {
  EXPECT_EQ(assignGpus(ranks({{90, 0}, {90, 0}, {90, 0}}),
                       gpus({{90, 80}, {90, 40}})),
            (std::vector{0, 1, 0}));
  EXPECT_EQ(assignGpus(ranks({{90, 80}, {90, 80}}), gpus({{90, 80}, {90, 80}})),
            (std::vector{0, 1}));
}

TEST(AssignGpus, EachRankGetsItsKind) {
  // In whatever order the machine has them.
  EXPECT_EQ(assignGpus(ranks({{70, 32}, {80, 40}, {70, 32}}),
                       gpus({{80, 40}, {70, 32}, {70, 32}})),
            (std::vector{1, 0, 2}));
  // Of one architecture the larger ones are for those who need them.
  EXPECT_EQ(assignGpus(ranks({{80, 40}, {80, 80}}), gpus({{80, 80}, {80, 40}})),
            (std::vector{1, 0}));
  // More memory than a kind has is no fault.
  EXPECT_EQ(assignGpus(ranks({{80, 40}, {80, 40}}), gpus({{80, 80}, {80, 40}})),
            (std::vector{1, 0}));
  // Who takes any leaves those that others can take alone.
  EXPECT_EQ(assignGpus(ranks({{75, 0}, {80, 40}}), gpus({{80, 40}, {90, 80}})),
            (std::vector{1, 0}));
}

TEST(AssignGpus, AGpuSaysSomewhatLessThanItsName) {
  Found t4 = gpus({{75, 16}});
  t4[0].memoryBytes = int64_t(15109) << 20;
  EXPECT_EQ(assignGpus(ranks({{75, 16}}), t4), (std::vector{0}));
}

std::string errorOf(const Wanted &wanted, const Found &found) {
  try {
    assignGpus(wanted, found);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(AssignGpus, AMismatchIsOneErrorWithBothLists) {
  EXPECT_EQ(
      errorOf(ranks({{80, 40}, {80, 40}, {70, 32}}),
              gpus({{80, 40}, {80, 40}, {90, 80}})),
      "no GPU of this machine is what rank 2 was compiled for: wanted for "
      "ranks 0, 1 (K80, sm_80, 40.0 GiB); 2 (K70, sm_70, 32.0 GiB); "
      "found GPUs 0, 1 (G80, sm_80, 40.0 GiB); 2 (G90, sm_90, 80.0 GiB): "
      "compile for a cluster file with the kinds that there are, or with "
      "--gpu-arch");
  EXPECT_NE(errorOf(ranks({{80, 80}}), gpus({{80, 40}})), "");
  EXPECT_NE(errorOf(ranks({{90, 0}}), gpus({{80, 40}})), "");
  EXPECT_EQ(errorOf(ranks({{80, 0}}), gpus({{90, 40}})), "");
}

/// Other processes may see other GPUs, but count where they see these.
TEST(AssignGpus, RanksOfOtherProcesses) {
  Wanted wanted = ranks({{70, 16}, {80, 40}, {80, 40}});
  wanted[0].isHere = wanted[1].isHere = false;
  EXPECT_EQ(assignGpus(wanted, gpus({{80, 40}, {80, 40}})),
            (std::vector{-1, 0, 1}));
}

} // namespace
} // namespace whale::runtime::test
