//===- DocsTest.cpp - Tests of the examples in the documentation ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DocBlocks.h"
#include "whale/Placement/Oracle.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace whale;

namespace {

Placement parse(StringRef text) {
  return cantFail(Placement::parse(text), text.str().c_str());
}

TEST(Docs, PlacementsPrintAsWritten) {
  std::vector<std::string> found = docBlocks("placement.md", "placement");
  ASSERT_EQ(found.size(), 1u);
  SmallVector<StringRef> lines;
  StringRef(found.front()).split(lines, '\n');
  for (StringRef line : lines)
    EXPECT_EQ(parse(line).str(), line);
}

TEST(Docs, ReshardsResolveAsWritten) {
  std::vector<std::string> found = docBlocks("resolver.md", "reshard");
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

} // namespace
