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

/// Until the threads have ended, which they do by themselves.
void waitForTheEnd(RankThreads &threads) {
  while (threads.count() > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(RankThreads, ThreadsWithoutRunsEnd) {
  RankThreads threads(3, RankThreads::Where::OwnThreads,
                      std::chrono::milliseconds(1));
  for (int round = 0; round < 3; ++round) {
    waitForTheEnd(threads);
    std::atomic<int> ran = 0;
    EXPECT_TRUE(threads.run([&](int64_t rank) { ran += 1 << rank; }));
    EXPECT_EQ(ran, 7);
  }
  // One that waits for the end of a run has one to wait for.
  std::promise<void> end;
  std::shared_future<void> ended = end.get_future();
  EXPECT_FALSE(
      threads.run([ended](int64_t) { ended.wait(); }, [] { return false; }));
  EXPECT_EQ(threads.count(), 3);
  end.set_value();
  EXPECT_TRUE(threads.wait());
  waitForTheEnd(threads);
}

TEST(RankThreads, WhoAsksEndsToo) {
  RankThreads threads(1, RankThreads::Where::Caller,
                      std::chrono::milliseconds(1));
  for (int round = 0; round < 3; ++round) {
    waitForTheEnd(threads);
    std::atomic<int> asked = 0;
    threads.run([&](int64_t) { asked.wait(0); },
                [&] {
                  ++asked;
                  asked.notify_all();
                  return true;
                });
    EXPECT_GE(asked, 1);
  }
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
