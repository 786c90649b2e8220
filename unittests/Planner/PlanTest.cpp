//===- PlanTest.cpp - Plans as text ---------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/Plan.h"
#include "whale/System/Json.h"

#include <gtest/gtest.h>

using namespace whale;
using Json = nlohmann::ordered_json;

namespace {

/// Has something of everything.
Plan makePlan() {
  Plan plan;
  plan.step = "5";
  plan.cluster = "6";
  plan.options = {{"zero.level", "v1"},
                  {"num_micro_batch", int64_t(4)},
                  {"communication.bf16", true}};
  plan.cuts = {{0}, {12}};
  plan.devices = {{"stage0", {{0, 1}, {4, 5}}}, {"stage1", {{2}, {3}}}};
  PlannedShares shares;
  shares.devices = {{0, 1}, {4, 5}};
  // A double that no short decimal is.
  shares.batch = {{{0.1 + 0.2}, {1, 0.25, 0.5}}, {{1}, {3}}};
  shares.byGroup = true;
  shares.replicas = {{1}, {2}};
  shares.inner = {{8, {{{1}, {2}}, {{3}, {4}}}}};
  shares.otherInner = {{{1}, {1}}, {{2}, {2}}};
  shares.moments = {4, 4, 3};
  shares.period = 2;
  plan.shares = {shares};
  plan.splits = {{{0, 2}, 1, 8, 4, false}, {{1}, 0, 4, 1, true}};
  plan.sums = {true};
  using Step = ScheduleStep;
  plan.pipelines = {{ScheduleKind::ZeroBubble,
                     {{{Step::Forward, 0, 0}, {Step::Backward, 0, 0}},
                      {{Step::Forward, 1, 0}, {Step::WeightGradient, 1, 0}}}}};
  plan.recomputed = {{{{0, 1}, {4, 5}}, {3, 4, 7}}, {{{2}, {3}}, {}}};
  plan.offloaded = {{1}, {2}, {5}};
  return plan;
}

/// What is wrong with the plan after an edit, and in which line.
std::pair<std::string, int64_t>
errorAfter(llvm::function_ref<void(Json &)> edit) {
  Json json = toJson(makePlan());
  edit(json);
  std::string text = json.dump(1);
  try {
    parsePlan(text);
  } catch (const system::JsonError &error) {
    return {error.what(), system::placeOf(text, error.getOffset()).line};
  }
  return {};
}

TEST(Plan, WhatIsPrintedIsReadAgain) {
  Plan plan = makePlan();
  EXPECT_EQ(parsePlan(toJson(plan).dump()), plan);
  EXPECT_EQ(parsePlan(toJson(Plan{"1", "2"}).dump()), (Plan{"1", "2"}));
}

TEST(Plan, NamesAreBytes) {
  Plan plan{"1", "2"};
  plan.devices = {{"a\xff\"b", {{0}}}};
  EXPECT_EQ(parsePlan(system::printJson(toJson(plan))), plan);
}

TEST(Plan, StandsInWhatExplainPrints) {
  Json decisions = toJson(makePlan());
  Json plan = {{"step_time_s", 1.5}, {"decisions", decisions}};
  plan["checksums"]["step_time_s"] = checksumOf(plan["step_time_s"]);
  EXPECT_EQ(parsePlan(plan.dump()), makePlan());
  EXPECT_EQ(parsePlan(Json{{"plan", plan}, {"remarks", 1}}.dump(2)),
            makePlan());
}

TEST(Plan, WhatFollowsIsNotEdited) {
  Json plan = {{"links", {{{"bytes", 8}}}}, {"decisions", toJson(makePlan())}};
  plan["checksums"]["links"] = checksumOf(plan["links"]);
  plan["links"][0]["bytes"] = 8.0;
  EXPECT_EQ(parsePlan(plan.dump()), makePlan());
  plan["links"][0]["bytes"] = 9;
  try {
    parsePlan(plan.dump());
    FAIL();
  } catch (const system::JsonError &error) {
    EXPECT_STREQ(error.what(), "links: follows from the decisions, and was "
                               "edited; edit 'decisions' alone");
  }
}

TEST(Plan, ChecksumsAreOfValues) {
  EXPECT_EQ(checksumOf(Json::parse(R"({"a": 1, "b": [2]})")),
            checksumOf(Json::parse(R"({"b": [2.0], "a": 1})")));
  EXPECT_NE(checksumOf(Json::parse("[1, 2]")),
            checksumOf(Json::parse("[2, 1]")));
  EXPECT_NE(checksumOf(Json::parse("[[1], 2]")),
            checksumOf(Json::parse("[[1, 2]]")));
  EXPECT_NE(checksumOf(Json::parse("[]")), checksumOf(Json::parse("{}")));
  EXPECT_NE(checksumOf("1"), checksumOf(1));
}

TEST(Plan, ErrorsHaveTheirPlaces) {
  auto expect = [](llvm::function_ref<void(Json &)> edit,
                   const std::string &message) {
    auto [found, line] = errorAfter(edit);
    EXPECT_EQ(found, message);
    EXPECT_GT(line, 1);
  };
  expect([](Json &plan) { plan["version"] = 2; },
         "version: expected version 1, found 2");
  expect([](Json &plan) { plan["cuts"] = {0, 5, 5}; },
         "cuts[2]: expected more than in the stage before");
  expect([](Json &plan) { plan["cuts"] = {1, 5}; },
         "cuts[0]: the first stage begins with operation 0");
  expect([](Json &plan) { plan["devices"]["stage1"] = {{2}, {2}}; },
         "devices.stage1[1][0]: device 2 is there twice");
  expect([](Json &plan) { plan["shares"][0]["batch"][0] = {1}; },
         "shares[0].batch[0]: expected a number for each of 2 devices, found "
         "1");
  expect([](Json &plan) { plan["shares"][0]["batch"][1][0] = 0; },
         "shares[0].batch[1][0]: expected a number from 1e-300 to 1e300, found "
         "0");
  expect([](Json &plan) { plan["shares"][0]["period"] = 4; },
         "shares[0].period: expected at most 3, found 4");
  expect([](Json &plan) { plan["pipelines"][0]["kind"] = "fast"; },
         "pipelines[0].kind: expected one of gpipe, 1f1b, backward-optimizer, "
         "interleaved, zero-bubble, found \"fast\"");
  for (const char *steps : {"F0 X1", "F0  B0", "F", "F0.", "F-1", "F0.x"})
    EXPECT_NE(
        errorAfter([&](Json &plan) {
          plan["pipelines"][0]["stages"][1] = steps;
        }).first.find("pipelines[0].stages[1]: expected steps such as F0"),
        std::string::npos)
        << steps;
  expect([](Json &plan) { plan["recomputed"][0]["operations"][2] = 4; },
         "recomputed[0].operations[2]: expected more than the number before");
  expect([](Json &plan) { plan["splits"][1]["arguments"] = Json::array(); },
         "splits[1].arguments: expected at least one element");
  expect([](Json &plan) { plan["splits"][0]["grains"] = -1; },
         "splits[0].grains: expected a number from 0 to 1e15, found -1");
  expect([](Json &plan) { plan["splits"][1]["gathered"] = 1; },
         "splits[1].gathered: expected true or false, found 1");
  expect([](Json &plan) { plan["sums"] = "half"; },
         "sums: expected \"scattered\" or \"whole\", found \"half\"");
  expect([](Json &plan) { plan["stages"] = 1; },
         "stages: unknown field, expected one of version, step, cluster, "
         "options, cuts, "
         "devices, shares, splits, sums, pipelines, "
         "recomputed, offloaded");
  expect([](Json &plan) { plan["offloaded"][2] = 2; },
         "offloaded[2]: expected more than the number before");
}

} // namespace
