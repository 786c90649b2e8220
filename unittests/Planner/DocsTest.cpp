//===- DocsTest.cpp - Tests of the examples in the documentation ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Placement/DocBlocks.h"
#include "whale/Planner/Schedule.h"
#include "llvm/Support/Format.h"
#include <nlohmann/json.hpp>

using namespace llvm;
using namespace whale;

namespace {

TEST(Docs, SchedulesAreAsWritten) {
  std::vector<std::string> found = docBlocks("schedules.md", "schedule");
  EXPECT_EQ(found.size(), scheduleKindNames().size());
  for (StringRef block : found) {
    auto [first, lines] = block.split('\n');
    SmallVector<StringRef> words;
    first.split(words, ' ');
    ASSERT_EQ(words.size(), 4u) << first.str();
    ScheduleProblem problem;
    ASSERT_FALSE(words[1].getAsInteger(10, problem.stages));
    ASSERT_FALSE(words[2].getAsInteger(10, problem.chunks));
    ASSERT_FALSE(words[3].getAsInteger(10, problem.microBatches));
    ScheduleKind kind = parseScheduleKind(words[0]).value();
    StageCost cost = {1, 1, kind == ScheduleKind::ZeroBubble ? 1.0 : 0.0};
    problem.costs.assign(problem.stages * problem.chunks, cost);
    Schedule schedule = cantFail(makeSchedule(kind, problem));
    std::string text;
    raw_string_ostream os(text);
    for (const std::vector<ScheduleStep> &steps : schedule) {
      interleave(
          steps, os,
          [&](const ScheduleStep &step) {
            os << "FBW"[step.kind];
            if (problem.chunks > 1)
              os << step.chunk << '.';
            os << step.microBatch;
          },
          " ");
      os << '\n';
    }
    os << "makespan "
       << llvm::format("%g", cantFail(simulate(problem, schedule)).makespan);
    EXPECT_EQ(text, lines.str());
  }
}

TEST(Docs, ConfigHasTheSchedules) {
  auto buffer =
      MemoryBuffer::getFile(WHALE_SOURCE_DIR "/python/whale/config_keys.json");
  ASSERT_TRUE(bool(buffer));
  auto names = nlohmann::json::parse((*buffer)->getBuffer().str())
                   .at("pipeline.strategy")
                   .at("names")
                   .get<std::vector<std::string>>();
  for (StringRef name : names)
    EXPECT_TRUE(parseScheduleKind(name)) << name.str();
  for (StringRef name : scheduleKindNames())
    EXPECT_TRUE(is_contained(names, name)) << name.str();
}

} // namespace
