//===- TraceTest.cpp - Tests of traces ------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Trace.h"
#include "gtest/gtest.h"

#include <nlohmann/json.hpp>

using namespace whale::runtime;
using nlohmann::json;

namespace {

using std::chrono::microseconds;

/// The events of a kind.
std::vector<json> eventsOf(const Trace &trace, const std::string &kind) {
  std::vector<json> found;
  json text = json::parse(trace.json());
  for (const json &event : text["traceEvents"])
    if (event["ph"] == kind)
      found.push_back(event);
  return found;
}

TEST(Trace, ArrowsGoFromStartsToTheWaitsForThem) {
  Trace trace;
  auto begin = Trace::Clock::now();
  // Twice: rank 0 sends to 1 by channel 7.
  for (int step = 0; step < 2; ++step) {
    trace.beginStep({"rank 0: a", "rank 1: b"});
    auto from = begin + microseconds(1000 * step);
    Trace::Cost sent, received;
    sent.detail = received.detail = "wait";
    sent.exchange = {"send_recv", 4, 0, 0, from, 2e-6, 100e-6, {1}, 7, {1}, {}};
    trace.add(0, "send", sent, Queue::Communication, from + microseconds(90),
              from + microseconds(100));
    received.exchange = {"send_recv", 0,     4,   0, from + microseconds(40),
                         1e-6,        20e-6, {0}, 7, {},
                         {0}};
    trace.add(1, "receive", received, Queue::Communication,
              from + microseconds(40), from + microseconds(60));
  }
  std::vector<json> starts = eventsOf(trace, "s"), ends = eventsOf(trace, "f");
  ASSERT_EQ(starts.size(), 2u);
  ASSERT_EQ(ends.size(), 2u);
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(starts[step]["id"], ends[step]["id"]);
    EXPECT_EQ(starts[step]["pid"], 0);
    EXPECT_EQ(ends[step]["pid"], 1);
    EXPECT_EQ(ends[step]["bp"], "e");
    EXPECT_LT(starts[step]["ts"], ends[step]["ts"]);
    // An arrow begins at a bar.
    bool hasBar = false;
    for (const json &bar : eventsOf(trace, "X"))
      hasBar |= bar["tid"] == starts[step]["tid"] && bar["pid"] == 0 &&
                bar["ts"] == starts[step]["ts"] && bar["dur"] > 0;
    EXPECT_TRUE(hasBar);
  }
  EXPECT_NE(starts[0]["id"], starts[1]["id"]);
}

TEST(Trace, BarsSayNamePhaseAndMicroBatch) {
  Trace trace;
  trace.beginStep({"rank 0: V100 0 of node 0, front"});
  auto begin = Trace::Clock::now();
  Trace::Cost cost;
  cost.detail = "k1";
  cost.lines = {"model.py:3"};
  cost.moment = 2;
  // Faster than the peak was when it was measured.
  cost.leastSeconds = 1;
  cost.arenaBytes = 64;
  for (int i = 0; i < 3; ++i) {
    trace.add(0, "jit(f)/transpose(jvp(mlp))/mul", cost, Queue::Compute,
              begin + microseconds(10 * i), begin + microseconds(10 * i + 5));
    cost.arenaBytes = 96;
  }
  std::vector<json> bars = eventsOf(trace, "X");
  ASSERT_EQ(bars.size(), 3u);
  EXPECT_EQ(bars[0]["name"], "mlp/mul (model.py:3)");
  EXPECT_EQ(bars[0]["cname"], "rail_animation");
  EXPECT_EQ(bars[0]["args"]["phase"], "backward");
  EXPECT_EQ(bars[0]["args"]["micro_batch"], 2);
  EXPECT_EQ(bars[0]["args"]["roofline"], 1);
  EXPECT_EQ(bars[0]["args"]["label"], "jit(f)/transpose(jvp(mlp))/mul");
  // The counter has an event where it changes.
  std::vector<json> counts = eventsOf(trace, "C");
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0]["args"]["bytes"], 64);
  EXPECT_EQ(counts[1]["args"]["bytes"], 96);
  EXPECT_EQ(counts[1]["ts"], bars[1]["ts"]);
  EXPECT_EQ(eventsOf(trace, "M")[0]["args"]["name"],
            "rank 0: V100 0 of node 0, front");
}

} // namespace
