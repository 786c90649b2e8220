//===- SavingSearchTest.cpp - How much a device asks to be saved ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Devices whose needs fall with what they ask for in ways that were met: by as
// much, in steps, only once far more is asked for, and not where all is.
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/SavingSearch.h"

#include <gtest/gtest.h>

#include <functional>

using namespace whale;

namespace {

/// What a device needs if it asks for so much.
using Needs = std::function<int64_t(int64_t)>;

struct Result {
  /// The least that was asked for and fits; -1 if nothing did.
  int64_t asked = -1;
  int calls = 0;
};

Result search(int64_t memory, const Needs &needs, int most = 8) {
  SavingSearch search(memory, needs(0));
  Result result;
  while (result.calls < most && search.next()) {
    ++result.calls;
    int64_t needed = needs(search.getAsked());
    search.tell(needed);
    if (needed <= memory &&
        (result.asked < 0 || search.getAsked() < result.asked))
      result.asked = search.getAsked();
  }
  return result;
}

TEST(SavingSearch, AsksOnceWhereAllThatIsAskedForIsSaved) {
  Result result = search(600, [](int64_t asked) { return 1000 - asked; });
  EXPECT_EQ(result.asked, 400);
  EXPECT_EQ(result.calls, 1);
}

TEST(SavingSearch, AsksForNothingWhereAllFits) {
  EXPECT_EQ(search(1000, [](int64_t) { return 1000; }).calls, 0);
}

TEST(SavingSearch, AsksForMoreWhereTooLittleIsSaved) {
  // Half of it is saved, and nothing of the first bytes.
  Result result = search(600, [](int64_t asked) {
    return asked < 200 ? 1000 : 1000 - (asked - 200) / 2;
  });
  EXPECT_GE(result.asked, 1000);
  EXPECT_LE(result.asked, 1100);
}

TEST(SavingSearch, GoesBackWhereMoreThanEnoughIsSaved) {
  // A step of the needs takes more than what is asked for.
  Result result = search(
      600, [](int64_t asked) { return asked < 420 ? 990 - asked / 4 : 300; });
  EXPECT_GE(result.asked, 420);
  EXPECT_LE(result.asked, 530);
}

TEST(SavingSearch, LooksBesideWhatCameNearest) {
  // What fits saves less than the most that can be asked for.
  auto needs = [](int64_t asked) -> int64_t {
    return asked < 650 ? 950 : asked < 1000 ? 390 : 480;
  };
  Result result = search(400, needs);
  EXPECT_GE(result.asked, 650);
  EXPECT_LT(result.asked, 1000);
}

TEST(SavingSearch, EndsWithTheLeastThatFits) {
  // What is asked for between fits no more.
  SavingSearch search(700, 1000);
  while (search.next())
    search.tell(search.getAsked() >= 290 ? 400 : 1000);
  EXPECT_EQ(search.getAsked(), 300);
}

TEST(SavingSearch, EndsWithWhatComesNearest) {
  SavingSearch search(100, 1000);
  while (search.next())
    search.tell(search.getAsked() >= 1000 ? 300 : 900);
  EXPECT_GE(search.getAsked(), 1000);
}

TEST(SavingSearch, EndsWhereNothingIsSaved) {
  Result result = search(600, [](int64_t) { return 1000; }, 1000);
  EXPECT_EQ(result.asked, -1);
  EXPECT_LE(result.calls, 4);
}

TEST(SavingSearch, EndsWhereTooLittleCanBeSaved) {
  Result result = search(
      300, [](int64_t asked) { return asked < 500 ? 1000 - asked : 500; },
      1000);
  EXPECT_EQ(result.asked, -1);
  EXPECT_LE(result.calls, 20);
}

} // namespace
