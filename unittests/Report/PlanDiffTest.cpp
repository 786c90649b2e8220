//===- PlanDiffTest.cpp - What differs between two plans ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Report/PlanDiff.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace whale;
using Json = nlohmann::ordered_json;
using Lines = std::vector<std::string>;

namespace {

Json makePlan() {
  return Json::parse(R"({
    "decisions": {"step": "5", "cluster": "6", "cuts": [0, 12],
      "devices": {"stage0": [[0, 1]], "stage1": [[2, 3]]},
      "shares": [{"devices": [[0, 1]], "batch": [[1, 2]]}],
      "splits": [{"arguments": [0, 2], "dimension": 1, "grains": 8}],
      "sums": "whole", "recomputed": [{"devices": [[0, 1]]}],
      "pipelines": [{"kind": "1f1b", "stages": ["F0 B0", "F0 B0"]}]},
    "step_time_s": 0.5, "devices": [{"peak_memory_bytes": 1e9}, {}],
    "collectives": {"send_recv": {"count": 1, "bytes": 2000}}})");
}

TEST(PlanDiff, EqualPlansDifferInNothing) {
  Json other = makePlan();
  other["step_time_s"] = 0.6;
  EXPECT_EQ(comparePlans(makePlan().dump(), other.dump()), Lines());
}

TEST(PlanDiff, SaysBothDecisionsAndWhatFollows) {
  Json other = makePlan();
  Json &decisions = other["decisions"];
  decisions["cuts"] = {0, 9, 20};
  decisions["devices"] = {{"stage0", {{0}, {1}}}, {"stage2", {{3}}}};
  decisions["shares"][0]["batch"][0][1] = 3;
  decisions["splits"][0]["dimension"] = 0;
  decisions["splits"][0]["gathered"] = true;
  decisions["sums"] = "scattered";
  decisions["recomputed"][0]["operations"] = {3, 4};
  decisions["pipelines"][0]["stages"][1] = "F0";
  other["step_time_s"] = 0.25;
  EXPECT_EQ(comparePlans(makePlan().dump(), other.dump()),
            (Lines{
                "begin of stage 1: operation 12 | operation 9",
                "devices of 'stage0': 0,1 | 0 and 1",
                "devices of 'stage1': 2,3 | none",
                "shares of devices 0,1: 66.7 %, 33.3 % | 75 %, 25 %",
                "split of arguments [0,2]: along dimension 1 in 8 grains | "
                "along dimension 0 in 8 grains, gathered where they are used",
                "sums of split products: whole | scattered",
                "what devices 0,1 compute again: nothing | operations [3,4]",
                "pipeline 0, stage 1: F0 B0 | F0",
                "begin of stage 2: none | operation 20",
                "devices of 'stage2': none | 3",
                "seconds of a step: 500 ms | 250 ms",
                "memory of the fullest device: 1.00 GB | 1.00 GB",
                "values that are exchanged: 2.00 kB | 2.00 kB",
            }));
}

TEST(PlanDiff, PlansOfEarlierProgramsHaveNoDecisions) {
  EXPECT_EQ(comparePlans("{}", "{}"), Lines());
}

} // namespace
