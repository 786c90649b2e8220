//===- SummaryTest.cpp - Tests of a plan in ten lines ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Report/PlanText.h"
#include "whale/Report/TextTable.h"
#include "gtest/gtest.h"

#include <algorithm>

using namespace whale;

namespace {

TEST(Summary, AnswersInTenLines) {
  EXPECT_EQ(
      makeSummary(R"({
    "task_graphs": [
      {"name": "front", "phase": "forward", "strategy": "#whale.split<devices = 2>",
       "devices": [[0, 1]], "flops": 300},
      {"name": "back", "phase": "backward", "strategy": "#whale.replicate<>",
       "devices": [[2]], "flops": 100}],
    "collectives": {"all_reduce": {"count": 3, "bytes": 1500},
                    "local_slice": {"count": 1, "bytes": 3e9},
                    "send_recv": {"count": 8, "bytes": 2e9}},
    "links": [{"name": "a", "count": 3, "bytes": 1500, "seconds": 1e-6},
              {"name": "network", "count": 8, "bytes": 2e9, "seconds": 0.2}],
    "samples": 64, "step_time_s": 0.5,
    "devices": [
      {"ranks": [0, 1], "kind": "fast", "memory_bytes": 16e9,
       "peak_memory_bytes": 4e9, "memory": {"arguments": 3e9, "scratch": 1e9},
       "compute_s": 0.2, "communication_s": 0.05, "idle_s": 0.25},
      {"ranks": [2], "kind": "slow", "memory_bytes": 8e9,
       "peak_memory_bytes": 6e9, "memory": {"arguments": 1e9, "activations": 5e9},
       "compute_s": 0.4, "communication_s": 0.0995, "idle_s": 0.0005}]})"),
      R"(step          about 500 ms for 64 samples, 128 samples/s; by the cost model, not measured
devices       3: devices 0-1 are fast, device 2 is slow
fits          yes: device 2 is fullest, 6.00 GB of 8.00 GB (75 %), mostly activations
work          of the FLOPs front (split) 75 % on devices 0-1, back (replicate) 25 % on device 2
time          device 2: computing 80 %, communicating 20 %, idle 0.1 %
              devices 0-1: computing 40 %, communicating 10 %, idle 50 %
exchanges     8 send_recv 2.00 GB, 3 all_reduce 1.50 kB a step, in total of all devices
slowest link  the network between nodes: 200 ms of transfers, 2.00 GB in total
limit         computing on device 2, 80 % of a step
)");
}

TEST(Summary, ManyDevicesAndTaskGraphsAreCounted) {
  std::string devices, graphs;
  for (int i = 0; i < 40; ++i) {
    std::string number = std::to_string(i), comma = i ? "," : "";
    devices += comma + R"({"ranks": [)" + number + "," +
               std::to_string(100 + 2 * i) + R"(], "kind": "k)" + number +
               R"(", "memory_bytes": 10, "peak_memory_bytes": 20,
               "compute_s": 1, "communication_s": 2, "idle_s": )" +
               number + "}";
    graphs += comma + R"({"name": "g)" + number +
              R"(", "phase": "forward", "flops": 1})";
  }
  std::string text = makeSummary(R"({"devices": [)" + devices +
                                 R"(], "task_graphs": [)" + graphs +
                                 R"(], "step_time_s": 100,
                                 "collectives": {}})");
  EXPECT_LE(std::ranges::count(text, '\n'), 10) << text;
  EXPECT_NE(text.find("fits       no: "), text.npos) << text;
  EXPECT_NE(text.find("\n           76 others, on average: computing 1 %, "
                      "communicating 2 %, idle 20 %"),
            text.npos)
      << text;
  EXPECT_NE(text.find("g2 2 % and 37 more\n"), text.npos) << text;
  EXPECT_NE(
      text.find("limit      exchanges: they block devices 0, 100 for 2 %"),
      text.npos)
      << text;
}

TEST(Summary, SaysWhereNobodyIsBusy) {
  std::string text = makeSummary(R"({"step_time_s": 10, "devices": [
    {"ranks": [0], "kind": "k", "compute_s": 2, "communication_s": 1,
     "idle_s": 7}]})");
  EXPECT_NE(text.find("limit      waiting: even device 0 is idle for 70 % of"),
            text.npos)
      << text;
}

TEST(Summary, LeavesOutWhatThePlanLacks) {
  EXPECT_EQ(makeSummary("{}"), "the plan says nothing\n");
  EXPECT_EQ(makeSummary("null"), "the plan says nothing\n");
}

TEST(TextTable, Numbers) {
  EXPECT_EQ(describeBytes(0), "0 B");
  EXPECT_EQ(describeBytes(999), "999 B");
  EXPECT_EQ(describeBytes(999999), "1.00 MB");
  EXPECT_EQ(describeBytes(34359738368), "34.4 GB");
  EXPECT_EQ(withPrefix(1e60, ""), "1e+42 E");
  EXPECT_EQ(describeSeconds(0), "0 s");
  EXPECT_EQ(describeSeconds(1.5e-3), "1.50 ms");
  EXPECT_EQ(describeSeconds(123456), "123456 s");
  EXPECT_EQ(describeSeconds(1e60), "1e+60 s");
  EXPECT_EQ(describeDevices({3}), "device 3");
  EXPECT_EQ(describeDevices({0, 1, 2, 6}), "devices 0-2, 6");
}

} // namespace
