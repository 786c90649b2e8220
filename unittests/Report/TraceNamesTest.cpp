//===- TraceNamesTest.cpp - Tests of what traces call things --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Report/TraceNames.h"
#include "gtest/gtest.h"

using namespace whale;

namespace {

void expectShown(const std::string &label, const std::string &name,
                 const std::string &phase, const std::string &line = "") {
  ShownLabel shown = showLabel(label, line);
  EXPECT_EQ(shown.name, name);
  EXPECT_EQ(shown.phase, phase);
}

TEST(TraceNames, APathIsShownByModulesAndOperation) {
  expectShown("jit(train_step)/jit(main)/jvp(Model)/Block_0/mlp/dot_general",
              "Block_0/mlp/dot_general (model.py:12)", "forward",
              "model.py:12");
  expectShown("jit(step)/transpose(jvp(whale:split:4:2:head))/tanh",
              "head/tanh", "backward");
  // A gradient that is differentiated once more.
  expectShown("jit(step)/jvp(transpose(jvp(a)))/mul", "a/mul", "forward");
  expectShown("jit(step)/while/body/closed_call/sub", "sub", "update");
  expectShown("jit(step)/jvp(whale:replicate:*:0:)/add", "add", "forward");
}

TEST(TraceNames, OtherLabelsStay) {
  expectShown("all_reduce 3", "all_reduce 3", "", "model.py:1");
  expectShown("", "", "");
}

TEST(TraceNames, ALongPathIsCut) {
  std::string part(100, 'x');
  ShownLabel shown = showLabel("jit(f)/" + part + "/" + part + "/add", "");
  EXPECT_EQ(shown.name, "..." + std::string(56, 'x') + "/add");
  // Parentheses that don't match end nothing.
  EXPECT_EQ(showLabel("jit(f/add", "").name, "jit(f/add");
  EXPECT_EQ(showLabel("jit(f)/while", "").name, "while");
}

TEST(TraceNames, RanksAreNamedByDeviceAndStage) {
  format::Program program;
  program.ranks = {{.device = 0, .kind = "V100", .node = 0},
                   {.device = 1, .kind = "P100", .node = 1}};
  program.plan = R"({"task_graphs": [
    {"name": "front", "devices": [[0]]}, {"name": "front", "devices": [[0]]},
    {"name": "back", "devices": [[1], [0]]}, {"name": "free"}]})";
  EXPECT_EQ(nameRanks(program),
            (std::vector<std::string>{"rank 0: V100 0 of node 0, front, back",
                                      "rank 1: P100 1 of node 1, back"}));
  for (const char *plan : {"null", "", "[1]", R"({"task_graphs": 3})",
                           R"({"task_graphs": [{"devices": 1}]})"}) {
    program.plan = plan;
    EXPECT_EQ(nameRanks(program).front(), "rank 0: V100 0 of node 0");
  }
}

} // namespace
