//===- WasteTest.cpp - Tests of what plans waste --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Report/Waste.h"
#include "gtest/gtest.h"

using namespace whale;

namespace {

/// A plan of four devices, of which the first three are GPUs. What the fourth
/// computes takes `seconds`.
std::string planOf(const std::string &graphs, const std::string &seconds) {
  return R"({"task_graphs": [)" + graphs + R"(], "devices": [
    {"ranks": [0, 2], "kind": "T4", "compute_s": 1},
    {"ranks": [1], "kind": "V100", "compute_s": 1},
    {"ranks": [3], "kind": "cpu", "compute_s": )" +
         seconds + "}]}";
}

/// A TaskGraph of the forward pass.
std::string graphOf(const std::string &name, const std::string &devices,
                    const std::string &flops, const std::string &more = "") {
  return R"({"name": ")" + name + R"(", "phase": "forward", "devices": )" +
         devices + R"(, "flops": )" + flops + more + "}";
}

TEST(Waste, DevicesWithoutWork) {
  EXPECT_EQ(findIdleDevices(planOf(graphOf("all", "[[0, 1, 2, 3]]", "4"), "1")),
            std::vector<std::string>());
  EXPECT_EQ(findIdleDevices(planOf(graphOf("a", "[[3]]", "4"), "1")),
            std::vector<std::string>(
                {"devices 0-2 (2 \u00d7 T4, 1 \u00d7 V100) have no work, as no "
                 "part of the step is placed there: give the scopes more "
                 "devices, or the cluster fewer"}));
  EXPECT_EQ(findIdleDevices(planOf(graphOf("a", "[[0, 1], [2, 3]]", "4"), "0")),
            std::vector<std::string>(
                {"device 3 (cpu) has no work in 'a': its share of what is "
                 "there is empty; give it fewer devices, or a larger "
                 "mini-batch"}));
}

TEST(Waste, StagesOfAFewOperations) {
  std::string body = graphOf("body", "[[0, 1, 2]]", "3e6");
  EXPECT_EQ(
      findIdleDevices(planOf(body + "," + graphOf("end", "[[3]]", "30"), "1")),
      std::vector<std::string>(
          {"device 3 (cpu) has little to do: 'end' has 1e-05 of the "
           "step's arithmetic; put it in the scope before, or after"}));
  // It also has what the others do.
  EXPECT_EQ(findIdleDevices(planOf(graphOf("body", "[[0, 1, 2, 3]]", "3e6") +
                                       "," + graphOf("end", "[[3]]", "30"),
                                   "1")),
            std::vector<std::string>());
  // Where everything else is, nothing says.
  EXPECT_EQ(findIdleDevices(planOf(
                R"({"name": "default", "phase": "forward", "flops": 9}, )" +
                    graphOf("end", "[[3]]", "30"),
                "1")),
            std::vector<std::string>());
  EXPECT_EQ(findIdleDevices(planOf(
                R"({"name": "default", "phase": "forward", "flops": 0}, )" +
                    graphOf("a", "[[0, 1]]", "4") + "," +
                    graphOf("b", "[[2, 3]]", "4"),
                "1")),
            std::vector<std::string>());
}

TEST(Waste, DevicesThatDoTheSame) {
  std::string whole = R"(, "shares": [1.0])";
  EXPECT_EQ(countRepetitions(planOf(graphOf("a", "[[0, 1]]", "4", whole), "1")),
            2u);
  EXPECT_EQ(countRepetitions(planOf(
                graphOf("a", "[[0, 1]]", "4", R"(, "shares": [0.5])"), "1")),
            0u);
  EXPECT_EQ(countRepetitions(planOf(graphOf("a", "[[0]]", "4", whole), "1")),
            0u);
  // What is small is not shared out.
  EXPECT_EQ(countRepetitions(planOf(
                graphOf("a", "[[0, 1]]", "4", whole) + "," +
                    graphOf("b", "[[2, 3]]", "9", R"(, "shares": [0.3, 0.7])"),
                "1")),
            0u);
  EXPECT_EQ(countRepetitions(planOf(
                R"({"name": "default", "phase": "forward", "flops": 9})", "1")),
            4u);
}

} // namespace
