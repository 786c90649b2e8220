//===- PlanPageTest.cpp - Tests of the picture of a plan ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Report/PlanPage.h"
#include "gtest/gtest.h"

using namespace whale;

namespace {

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

TEST(PlanPage, ShowsSharesMemoryScheduleAndArguments) {
  std::string page = makePlanPage(R"({
    "task_graphs": [
      {"name": "<front>", "phase": "forward", "strategy": "#whale.split<>",
       "devices": [[0, 1]], "flops": 300, "shares": [0.25, 0.75]},
      {"name": "back", "phase": "forward", "strategy": "#whale.replicate<>",
       "devices": [[1]], "flops": 100, "shares": [1]}],
    "arguments": [
      {"label": "params['w']", "placement": "[8, 4] split 0 (2, 6) on [0, 1]",
       "bytes": 128},
      {"label": "params['v']", "placement": "[16] split 0 (2, 6) on [0, 1]",
       "bytes": 64},
      {"label": "x & y", "placement": "[] replicate 2 on [0, 1]", "bytes": 4}],
    "step_time_s": 0.5, "timeline_names": ["forward", "all_reduce"],
    "timeline_end": 100,
    "devices": [
      {"ranks": [0], "kind": "k", "memory_bytes": 100, "peak_memory_bytes": 50,
       "memory": {"arguments": 20, "constants": 30},
       "compute_s": 0.2, "communication_s": 0.05, "idle_s": 0.25,
       "computed": [[0, 40, 0, 3]], "transferred": [[40, 50, 1]]},
      {"ranks": [1], "kind": "k", "memory_bytes": 100, "peak_memory_bytes": 60,
       "memory": {"arguments": 60}, "compute_s": 0.2, "communication_s": 0,
       "idle_s": 0.3, "computed": [[0, 40, 0, 3]], "transferred": []}]})");
  // Names are text, not markup.
  EXPECT_EQ(count(page, "<front>"), 0u);
  EXPECT_EQ(count(page, "<th>&lt;front&gt;<br>"), 1u);
  EXPECT_EQ(count(page, "x &amp; y"), 1u);
  // Nothing is fetched, and nothing runs.
  EXPECT_EQ(count(page, "<script") + count(page, "src=") + count(page, "http"),
            0u);
  EXPECT_EQ(count(page, "--part:25.0%\">25 %"), 1u);
  EXPECT_EQ(count(page, "--part:75.0%\">75 %"), 1u);
  EXPECT_EQ(count(page, "--part:100.0%\">100 %"), 1u);
  // A bar is as long as its part of the memory of 700 units.
  EXPECT_EQ(count(page, "width=\"140.0\" height=\"16\""), 1u);
  EXPECT_EQ(count(page, "width=\"210.0\" height=\"16\""), 1u);
  EXPECT_EQ(count(page, "width=\"420.0\" height=\"16\""), 1u);
  EXPECT_EQ(count(page, "<title>constants: 30 B</title>"), 1u);
  // A piece begins where it does, of 900 units from 150 on.
  EXPECT_EQ(count(page, "x=\"150.0\" y=\"2\" width=\"360.0\" height=\"18\""),
            1u);
  EXPECT_EQ(count(page, "forward, micro-batch 3: 200 ms</title>"), 2u);
  EXPECT_EQ(count(page, "x=\"510.0\" y=\"22\" width=\"90.0\" height=\"8\""),
            1u);
  // What lies alike is one row.
  EXPECT_EQ(count(page, "<td>split 0 (2, 6) on [0, 1]</td>"), 1u);
  EXPECT_EQ(count(page, "<summary>2</summary>params['w']<br>params['v']"), 1u);
  for (const char *id :
       {"summary", "devices", "memory", "schedule", "arguments"})
    EXPECT_EQ(count(page, "<section id=\"" + std::string(id) + "\">"), 1u);
  EXPECT_EQ(count(page, "<section"), count(page, "</section>"));
}

TEST(PlanPage, ManyRowsAreCounted) {
  std::string devices, graphs;
  for (int i = 0; i < 70; ++i) {
    std::string number = std::to_string(i), comma = i ? "," : "";
    devices += comma + R"({"ranks": [)" + number +
               R"(], "kind": "k", "memory_bytes": 9, "peak_memory_bytes": 3,
               "memory": {"arguments": 3}})";
    graphs += comma + R"({"name": "g)" + number + R"(", "phase": "forward"})";
  }
  std::string page = makePlanPage(R"({"devices": [)" + devices +
                                  R"(], "task_graphs": [)" + graphs + "]}");
  EXPECT_EQ(count(page, "and 6 more rows"), 2u);
  EXPECT_EQ(count(page, "and 54 more task graphs"), 1u);
}

TEST(PlanPage, APlanThatSaysNothingIsAPage) {
  std::string page = makePlanPage("null");
  EXPECT_EQ(count(page, "the plan says nothing"), 1u);
  EXPECT_EQ(count(page, "<section"), 1u);
}

} // namespace
