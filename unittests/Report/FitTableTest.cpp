//===- FitTableTest.cpp - What options save and cost, as text -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Report/FitTable.h"

#include <gtest/gtest.h>

using namespace whale;

namespace {

constexpr const char *step = R"({
  "fits": false, "ranks": [0, 1, 2], "kind": "small", "memory_bytes": 3000000,
  "peak_memory_bytes": 4000000, "step_time_s": 0.01, "samples": 64,
  "largest_batch": 40,
  "held": [{"what": "arguments: params", "bytes": 3500000, "values": 4},
           {"what": "constants", "bytes": 500000, "values": 1}]
})";

TEST(FitTable, SaysWhatIsHeldAndWhatOptionsSave) {
  std::string text = makeFitTable(std::string("[") + step + R"(,
    {"options": {"zero.level": "v1", "num_micro_batch": 4}, "fits": true,
     "ranks": [0], "kind": "small", "memory_bytes": 3000000,
     "peak_memory_bytes": 2500000, "step_time_s": 0.0112},
    {"options": {"communication.bf16": true}, "rounds": true, "fits": false,
     "ranks": [0], "kind": "small", "memory_bytes": 3000000,
     "peak_memory_bytes": 4100000, "step_time_s": 0.0099},
    {"options": {"num_task_graph": 2}, "error": "there is one device"}])");
  EXPECT_EQ(
      text,
      "devices 0-2 (small) are fullest: 4.00 MB of 3.00 MB, which does not "
      "fit; a step takes about 10.0 ms\n"
      "  3.50 MB  arguments: params (4 values)\n"
      "  500 kB   constants\n"
      "option                            needs    saves    a step takes\n"
      "zero.level v1, num_micro_batch 4  2.50 MB  1.50 MB  11.2 ms (+12 %)\n"
      "communication.bf16 True           4.10 MB  -100 kB  9.90 ms (-1 %)   "
      "does not fit; rounds otherwise\n"
      "num_task_graph 2                                                     "
      "there is one device\n"
      "the largest mini-batch that fits has about 40 samples, and this one "
      "64\n");
}

TEST(FitTable, OfAStepAlone) {
  std::string text = makeFitTable(R"([{"fits": true, "ranks": [3],
    "kind": "k", "memory_bytes": 10, "peak_memory_bytes": 5,
    "step_time_s": 0, "held": []}])");
  EXPECT_EQ(text, "device 3 (k) is fullest: 5 B of 10 B, which fits; a step "
                  "takes about 0 s\n");
}

TEST(FitTable, OfNothing) { EXPECT_EQ(makeFitTable("[]"), ""); }

} // namespace
