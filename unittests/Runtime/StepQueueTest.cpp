//===- StepQueueTest.cpp - Steps that follow one another ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Who runs a step: the queue's thread, or a caller that has taken a turn while
// the queue was idle. Both never run at a time, whatever is pushed meanwhile.
//
//===----------------------------------------------------------------------===//

#include "executor/StepQueue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

using namespace whale::runtime;

namespace {

constexpr std::chrono::milliseconds moment(1);

/// Hands a step to the queue, which runs `work` and then ends it.
std::shared_ptr<Step> push(StepQueue &queue, const std::function<void()> &work,
                           StepQueue::TryEnd tryEnd = nullptr) {
  std::shared_ptr<Step> step = Step::create({}, [](const char *) {});
  queue.push(queue.reserve(nullptr), step, [step, work, tryEnd] {
    work();
    if (step->claim())
      step->publish();
    return tryEnd;
  });
  return step;
}

/// The turn of a queue that will soon have nothing in hand.
StepQueue::Turn waitForTurn(StepQueue &queue) {
  while (true) {
    if (std::optional<StepQueue::Turn> turn = queue.tryTurn())
      return std::move(*turn);
    std::this_thread::sleep_for(moment);
  }
}

TEST(StepQueue, OneCallerHasATurn) {
  StepQueue queue;
  std::optional<StepQueue::Turn> turn = queue.tryTurn();
  ASSERT_TRUE(turn);
  EXPECT_FALSE(queue.tryTurn());
  // The turn goes on where it was moved to.
  std::optional<StepQueue::Turn> moved = std::move(turn);
  turn.reset();
  EXPECT_FALSE(queue.tryTurn());
  moved.reset();
  EXPECT_TRUE(queue.tryTurn());
}

TEST(StepQueue, StepsWaitForACallersTurn) {
  // Also where the thread looks for steps again and again, or had ended.
  for (auto idleLimit : {moment, StepQueue::patience})
    for (bool hasEnded : {false, true}) {
      StepQueue queue(hasEnded ? moment : idleLimit);
      while (hasEnded && queue.hasThread())
        std::this_thread::sleep_for(moment);
      std::atomic<bool> isMine = true;
      std::atomic<int> ran = 0;
      std::shared_ptr<Step> first, second;
      {
        StepQueue::Turn turn = waitForTurn(queue);
        auto count = [&] {
          EXPECT_FALSE(isMine);
          ++ran;
        };
        first = push(queue, count);
        second = push(queue, count);
        EXPECT_FALSE(queue.tryTurn());
        std::this_thread::sleep_for(10 * moment);
        EXPECT_EQ(ran, 0);
        isMine = false;
      }
      first->wait();
      second->wait();
      EXPECT_EQ(ran, 2);
      waitForTurn(queue);
    }
}

TEST(StepQueue, NoTurnBeforeStepsHaveEnded) {
  StepQueue queue;
  std::promise<void> begin, end;
  std::shared_future<void> mayEnd = end.get_future();
  std::atomic<bool> isOver = false;
  std::shared_ptr<Step> first = push(queue, [&] {
    begin.set_value();
    mayEnd.wait();
  });
  begin.get_future().wait();
  EXPECT_FALSE(queue.tryTurn()); // It runs.
  std::shared_ptr<Step> second =
      push(queue, [] {}, [&] { return isOver.load(); });
  EXPECT_FALSE(queue.tryTurn());
  end.set_value();
  second->wait();
  EXPECT_FALSE(queue.tryTurn()); // It is left to a device.
  EXPECT_FALSE(second->hasLeft());
  isOver = true;
  StepQueue::Turn turn = waitForTurn(queue);
  EXPECT_TRUE(first->hasLeft() && second->hasLeft());
}

TEST(StepQueue, CallersAndTheThreadTakeTurns) {
  StepQueue queue(moment);
  constexpr int rounds = 200;
  std::atomic<int> inside = 0, ran = 0;
  auto work = [&] {
    EXPECT_EQ(++inside, 1);
    ++ran;
    --inside;
  };
  auto call = [&] {
    for (int round = 0; round < rounds; ++round)
      if (std::optional<StepQueue::Turn> turn = queue.tryTurn())
        work();
      else
        push(queue, work)->wait();
  };
  std::thread other(call);
  call();
  other.join();
  EXPECT_EQ(ran, 2 * rounds);
  waitForTurn(queue);
}

} // namespace
