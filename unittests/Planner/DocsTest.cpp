//===- DocsTest.cpp - Tests of the examples in the documentation ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/Oracle.h"
#include "whale/Planner/Schedule.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace llvm;
using namespace whale;

namespace {

/// The blocks of a page that are marked with `language`.
std::vector<std::string> blocks(StringRef page, StringRef language) {
  std::string path = (WHALE_SOURCE_DIR "/docs/" + page).str();
  auto buffer = MemoryBuffer::getFile(path);
  EXPECT_TRUE(bool(buffer)) << path;
  std::vector<std::string> found;
  if (!buffer)
    return found;
  StringRef rest = (*buffer)->getBuffer();
  std::string fence = ("```" + language + "\n").str();
  while (rest.contains(fence)) {
    rest = rest.split(fence).second;
    auto [block, after] = rest.split("\n```");
    found.push_back(block.str());
    rest = after;
  }
  return found;
}

Placement parse(StringRef text) {
  return cantFail(Placement::parse(text), text.str().c_str());
}

TEST(Docs, PlacementsPrintAsWritten) {
  std::vector<std::string> found = blocks("placement.md", "placement");
  ASSERT_EQ(found.size(), 1u);
  SmallVector<StringRef> lines;
  StringRef(found.front()).split(lines, '\n');
  for (StringRef line : lines)
    EXPECT_EQ(parse(line).str(), line);
}

TEST(Docs, ReshardsResolveAsWritten) {
  std::vector<std::string> found = blocks("resolver.md", "reshard");
  EXPECT_GE(found.size(), 10u);
  for (StringRef block : found) {
    SmallVector<StringRef> lines;
    block.split(lines, '\n');
    ASSERT_EQ(lines.size(), 3u) << block.str();
    Placement from = parse(lines[0]), to = parse(lines[1]);
    std::vector<Step> steps = resolve(from.view(), from, to);
    EXPECT_EQ(verifySteps(steps, from, to), std::nullopt);
    std::string text;
    raw_string_ostream os(text);
    int64_t busiest = 0;
    for (const Step &step : steps) {
      CellTable table = cells(step);
      os << stringifyStepKind(step.kind) << ' ';
      for (const auto &group : table.groups) {
        os << '{';
        interleaveComma(group, os);
        os << "} ";
      }
      int64_t most = 0;
      for (const Receiver &receiver : table.receivers)
        most = std::max(most, table.elementsReceived(receiver.device));
      busiest += most;
    }
    os << busiest;
    EXPECT_EQ(text, lines[2]) << block.str();
  }
}

TEST(Docs, SchedulesAreAsWritten) {
  std::vector<std::string> found = blocks("schedules.md", "schedule");
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
       << format("%g", cantFail(simulate(problem, schedule)).makespan);
    EXPECT_EQ(text, lines.str());
  }
}

} // namespace
