//===- PlanTableTest.cpp --------------------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Report/PlanText.h"

#include <gtest/gtest.h>

using namespace whale;

TEST(PlanTable, PhasesOfATaskGraphShareARow) {
  EXPECT_EQ(makePlanTable(R"({
    "task_graphs": [
      {"name": "a", "phase": "forward", "devices": [[0, 1, 2, 5]],
       "strategy": "#whale.split<devices = 4>", "flops": 999},
      {"name": "long", "phase": "forward", "flops": 99949},
      {"name": "a", "phase": "backward", "flops": 1e12},
      {"name": "a", "phase": "backward", "flops": 1e12}],
    "collectives": {"all_reduce": {"count": 3, "bytes": 1500}}})"),
            "task graph  strategy  devices  forward FLOP  backward FLOP  apply "
            "FLOP\n"
            "a           split     0-2, 5   999           2.00 T         -\n"
            "long                           99.9 k        -              -\n"
            "collectives of a step: 3 all_reduce (1.50 kB)\n");
}

TEST(PlanTable, ManyDevicesAreCounted) {
  std::string groups;
  for (int i = 0; i < 64; ++i)
    groups += (i ? ", [" : "[") + std::to_string(2 * i) + ", " +
              std::to_string(2 * i + 1) + "]";
  std::string table = makePlanTable(
      R"({"task_graphs": [{"name": "a", "phase": "apply", "devices": [)" +
      groups + R"(]}], "collectives": {}})");
  EXPECT_NE(table.find("  128 devices in 64 groups  "), std::string::npos)
      << table;
  EXPECT_NE(table.find("collectives of a step: none\n"), std::string::npos);
}
