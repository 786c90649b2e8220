//===- RankThreadsTest.cpp - Where ranks run ------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "executor/RankThreads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>

using namespace whale::runtime;

namespace {

TEST(RankThreads, RanksHaveThreadsOfTheirOwn) {
  RankThreads threads(3);
  std::vector<std::thread::id> first(3), second(3);
  EXPECT_TRUE(threads.run(
      [&](int64_t rank) { first[rank] = std::this_thread::get_id(); }));
  EXPECT_TRUE(threads.run(
      [&](int64_t rank) { second[rank] = std::this_thread::get_id(); }));
  EXPECT_EQ(first, second);
  std::set<std::thread::id> all(first.begin(), first.end());
  EXPECT_EQ(all.size(), 3u);
  EXPECT_FALSE(all.contains(std::this_thread::get_id()));
}

TEST(RankThreads, ARunIsLeft) {
  RankThreads threads(1);
  std::promise<void> end;
  std::shared_future<void> ended = end.get_future();
  EXPECT_FALSE(
      threads.run([ended](int64_t) { ended.wait(); }, [] { return false; }));
  EXPECT_TRUE(threads.isBusy());
  end.set_value();
  EXPECT_TRUE(threads.wait());
}

TEST(RankThreads, TheCallerRunsTheOnlyRank) {
  RankThreads threads(1, RankThreads::Where::Caller);
  std::vector<std::pair<int64_t, std::thread::id>> runs;
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(threads.run([&](int64_t rank) {
      EXPECT_TRUE(threads.isBusy());
      runs.emplace_back(rank, std::this_thread::get_id());
    }));
  EXPECT_EQ(runs,
            std::vector(3, std::pair(int64_t(0), std::this_thread::get_id())));
  EXPECT_FALSE(threads.isBusy());
  EXPECT_TRUE(threads.wait());
}

TEST(RankThreads, AnotherThreadAsksWhileTheCallerRuns) {
  RankThreads threads(1, RankThreads::Where::Caller);
  std::atomic<bool> isRunning = false;
  // The second run follows the first at once, the third after the thread has
  // gone to sleep.
  for (int run = 0; run < 3; ++run) {
    if (run == 2)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::atomic<int> asked = 0;
    isRunning = true;
    threads.run([&](int64_t) { asked.wait(0); },
                [&] {
                  EXPECT_TRUE(isRunning);
                  EXPECT_TRUE(threads.isBusy());
                  ++asked;
                  asked.notify_all();
                  return false;
                });
    isRunning = false;
    EXPECT_GE(asked, 1);
  }
  // Nothing is asked of a run that is over.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

} // namespace
