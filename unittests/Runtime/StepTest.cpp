//===- StepTest.cpp - Steps that run on after they were submitted ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps that are submitted and run on in the background: when results are
// filled, what happens to donated and borrowed memory, and how errors,
// interruptions and stops reach those who use the results.
//
// The program is one library call that waits at a gate, which the test opens,
// so that no test depends on time: what has to be seen before a step ends is
// checked first. Results are small sums. One test forks while a step runs; the
// child may use what had ended and gets an error for the rest.
//
//===----------------------------------------------------------------------===//

#include "executor/StepQueue.h"
#include "library/Library.h"
#include "whale/Runtime/Program.h"

#include "ProgramFiles.h"
#include "Values.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace whale::runtime;
using namespace whale::runtime::test;
using nlohmann::json;

namespace {

/// Holds up steps until it is opened.
class Gate {
public:
  void open() {
    {
      std::lock_guard lock(mutex);
      isOpen = true;
    }
    changed.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex);
    ++arrived;
    changed.notify_all();
    changed.wait(lock, [&] { return isOpen; });
  }
  void waitForStep() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return arrived > 0; });
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool isOpen = false;
  int arrived = 0;
};

constexpr size_t size = 8;

Array floats(float value) { return uniform(size, value); }

class StepTest : public ::testing::Test {
protected:
  /// arg0 + arg1 -> result0 in the memory of arg0, behind the gate; an Error
  /// for a negative arg1. Not brief where the call takes much besides.
  Program loadSum(int64_t besides = 1, const LoadOptions &options = {}) {
    auto gate = this->gate;
    registerLibraryFunction("test.sum", [gate](const LibraryRequest &) {
      return [gate](std::span<void *const> inputs,
                    std::span<void *const> outputs) {
        gate->pass();
        auto *left = static_cast<float *>(inputs[0]);
        auto *right = static_cast<float *>(inputs[1]);
        if (right[0] < 0)
          throw Error("out of luck");
        for (size_t i = 0; i < size; ++i)
          static_cast<float *>(outputs[0])[i] = left[i] + right[i];
      };
    });
    json root = emptyManifest(1);
    root["arguments"] = {replicated("arg0", "f32", {size}, 1),
                         replicated("arg1", "f32", {size}, 1)};
    root["arguments"][0]["donated"] = true;
    root["results"] = {replicated("result0", "f32", {size}, 1)};
    root["results"][0]["alias"] = 0;
    json &rankClass = root["classes"][0];
    rankClass["arena_bytes"] = 4 * (16 + besides);
    rankClass["buffers"] = {shardBuffer("argument", 0, "f32", {size}),
                            shardBuffer("argument", 1, "f32", {size}),
                            shardBuffer("result", 0, "f32", {size}),
                            arenaBuffer(0, "f32", {size}),
                            arenaBuffer(64, "f32", {besides})};
    root["origins"].push_back({{"label", "roulette"}});
    rankClass["instructions"] = {{{"call", "test.sum"},
                                  {"origin", 0},
                                  {"inputs", {0, 1, 4}},
                                  {"outputs", {3}}},
                                 {{"copy", {3, 2}}}};
    writeFile(directory.path() / "manifest.json", root.dump());
    return Program::load(directory.path(), options);
  }
  Array submit(const Program &program, const Array &x, const Array &y) {
    return program.submit(std::vector{x, y}).results[0];
  }

  TemporaryDirectory directory;
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  const std::string failure = "rank 0: 'roulette': out of luck";
  const std::string interruption = "the run was interrupted";
};

TEST_F(StepTest, ResultsAreFilledLater) {
  Program program = loadSum(), other = loadSum();
  Array one = floats(1), first = floats(10);
  const void *memory = first.wholeData();
  Array second = submit(program, first, one);
  EXPECT_EQ(first.fate(), "donated to a program");
  EXPECT_FALSE(one.isDonated());
  Array third = submit(other, second, one);
  EXPECT_EQ(second.fate(), "donated to a program");
  Array last = submit(program, third, one);
  EXPECT_FALSE(last.isReady());
  EXPECT_EQ(last.shape(), Shape{size});
  EXPECT_EQ(last.layout(), *program.results()[0].layout);
  gate->open();
  EXPECT_EQ(valueOf(last), 13);
  EXPECT_TRUE(last.isReady());
  // Nobody else used the memory: no step has copied it.
  EXPECT_EQ(last.wholeData(), memory);
}

TEST_F(StepTest, BorrowedMemoryIsCopied) {
  Program program = loadSum();
  auto borrow = [](std::shared_ptr<std::vector<float>> owner) {
    return Array::adopt(DType::F32, {size}, {owner, owner->data()});
  };
  auto x = std::make_shared<std::vector<float>>(size, 1.0f);
  auto y = std::make_shared<std::vector<float>>(size, 2.0f);
  Array sum = submit(program, borrow(x), borrow(y));
  EXPECT_EQ(x.use_count() + y.use_count(), 2);
  x->assign(size, 5.0f);
  y->assign(size, 6.0f);
  gate->open();
  EXPECT_EQ(valueOf(sum), 3);
}

TEST_F(StepTest, OthersKeepWhatAStepOverwrites) {
  Program program = loadSum();
  Array x = floats(1);
  std::shared_ptr<Buffer> held = x.shard(0);
  Array sum = submit(program, x, floats(1));
  Array reader = sum.contents().array();
  Array last = submit(program, sum, reader);
  gate->open();
  EXPECT_EQ(valueOf(last), 4);
  EXPECT_EQ(valueOf(reader), 2);
  EXPECT_EQ(*static_cast<float *>(held->data.get()), 1);
}

TEST_F(StepTest, ErrorsReachWhoeverUsesAResult) {
  Program program = loadSum(), other = loadSum();
  Array x = floats(1), bad = submit(program, x, floats(-1));
  Array next = submit(other, bad, floats(1));
  Submission last = program.submit(std::vector{next, floats(1)});
  gate->open();
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(errorOf([&] { valueOf(last.results[0]); }), failure);
    EXPECT_EQ(errorOf([&] { last.step->wait(); }), failure);
  }
  for (const Array &array : {x, bad, next})
    EXPECT_EQ(array.fate(), "donated to a program that failed");
  // It is known, and said before anything is donated.
  Array kept = floats(1);
  EXPECT_EQ(errorOf([&] { submit(program, kept, last.results[0]); }), failure);
  EXPECT_FALSE(kept.isDonated());
  EXPECT_EQ(valueOf(submit(program, kept, floats(1))), 2);
}

TEST(StepQueue, TheThreadEndsWhileThereAreNoSteps) {
  StepQueue queue(std::chrono::milliseconds(1));
  for (int round = 0; round < 3; ++round) {
    while (queue.hasThread())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    StepQueue::Place place = queue.reserve(nullptr);
    std::shared_ptr<Step> step = Step::create({}, [](const char *) {});
    queue.push(std::move(place), step, [step] {
      if (step->claim())
        step->publish();
      return StepQueue::TryEnd();
    });
    step->wait();
  }
}

TEST_F(StepTest, ACallWaitsBehindManySteps) {
  Program program = loadSum();
  Array state = floats(0);
  std::vector<Array> states;
  for (int64_t i = 0; i < StepQueue::mostSteps; ++i)
    states.push_back(state = submit(program, state, floats(1)));
  gate->waitForStep();
  StepOptions options;
  int asked = 0;
  options.interrupted = [&] { return ++asked == 2; };
  Array kept = floats(1);
  EXPECT_THROW(program.submit(std::vector{kept, kept}, options), Interrupted);
  EXPECT_EQ(asked, 2);
  EXPECT_FALSE(kept.isDonated());
  EXPECT_EQ(errorOf([&] { valueOf(state); }), interruption);
  EXPECT_EQ(states[0].fate(), "donated to a program that was interrupted");
  gate->open();
  EXPECT_EQ(valueOf(submit(program, kept, floats(1))), 2);
}

TEST_F(StepTest, AnInterruptionEndsWhatTheThreadWaitsFor) {
  // The queue is full otherwise.
  LoadOptions own;
  own.hasOwnRanks = true;
  Program program = loadSum(), other = loadSum(), third = loadSum(1, own);
  Array theirs, mine = floats(1);
  std::thread([&] { theirs = submit(program, floats(1), floats(1)); }).join();
  Array sum = submit(program, floats(1), mine);
  Array last = submit(other, theirs.contents().array(), sum);
  Array unrelated = submit(third, floats(1), floats(2));
  EXPECT_THROW(last.wait([] { return true; }), Interrupted);
  EXPECT_EQ(errorOf([&] { valueOf(last); }), interruption);
  EXPECT_EQ(errorOf([&] { valueOf(sum); }), interruption);
  EXPECT_THROW(theirs.wait([] { return true; }), Interrupted);
  gate->open();
  EXPECT_EQ(valueOf(theirs), 2);
  EXPECT_EQ(valueOf(unrelated), 3);
}

TEST_F(StepTest, StepsCanBeStopped) {
  Program program = loadSum(1 << 20);
  Submission first = program.submit(std::vector{floats(1), floats(1)});
  Submission second = program.submit(std::vector{first.results[0], floats(1)});
  gate->waitForStep();
  // The rank stays in its instruction, and nobody waits for that.
  Step::stop(std::vector{first.step, second.step});
  EXPECT_TRUE(first.step->hasLeft() && second.step->hasLeft());
  EXPECT_FALSE(first.step->hasEnded() || second.results[0].isReady());
  gate->open();
}

TEST_F(StepTest, NothingNeedsToBeKept) {
  Array sum;
  {
    Program program = loadSum();
    sum = submit(program, floats(1), floats(1));
    submit(program, floats(1), floats(1));
    gate->waitForStep();
  }
  gate->open();
  EXPECT_EQ(valueOf(sum), 2);
}

TEST_F(StepTest, ThreadsTakeTurns) {
  Program program = loadSum();
  gate->open();
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([&, number] {
      Array state = floats(0);
      for (int step = 0; step < 100; ++step)
        state = submit(program, state, floats(static_cast<float>(number)));
      EXPECT_EQ(valueOf(state), 100 * number);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(StepTest, AForkKnowsWhatHasEnded) {
  Program program = loadSum();
  Array done;
  {
    auto closed = std::exchange(gate, std::make_shared<Gate>());
    gate->open();
    done = submit(loadSum(), floats(1), floats(1));
    EXPECT_EQ(valueOf(done), 2);
    gate = closed;
  }
  Array open = submit(program, floats(1), floats(1));
  std::thread reader([&] { EXPECT_EQ(valueOf(open), 2); });
  gate->waitForStep();
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    bool isRight = valueOf(done) == 2;
    for (int round = 0; round < 2; ++round)
      isRight &= errorOf([&] {
                   valueOf(open);
                 }).starts_with("the step had not ended in the parent process");
    isRight &= errorOf([&] {
                 submit(program, open, done);
               }).starts_with("the step had not ended in the parent process");
    open = Array();
    gate->open();
    isRight &= valueOf(submit(program, done, floats(1))) == 3;
    _exit(isRight ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  gate->open();
  reader.join();
}

} // namespace
