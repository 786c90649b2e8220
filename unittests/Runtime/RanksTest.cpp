//===- RanksTest.cpp - Programs that share ranks --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Who shares what, and that programs which do so compute as if they were alone:
// in turn, from several threads, behind an error of another one, and while
// others go.
//
//===----------------------------------------------------------------------===//

#include "executor/Executor.h"
#include "library/Library.h"

#include "Networks.h"
#include "ProgramFiles.h"
#include "TransportScenario.h"
#include "transport/ChannelNumbers.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

namespace whale::runtime::test {
namespace {

using nlohmann::json;

/// Of programs without instructions.
RanksOptions optionsOf(int64_t ranks, const LoadOptions &load = {}) {
  BoundProgram bound(programOf(ranks, {}));
  return {bound, load};
}

TEST(Ranks, EqualOnesAreShared) {
  std::shared_ptr<Ranks> first = Ranks::share(optionsOf(2));
  EXPECT_EQ(Ranks::share(optionsOf(2)), first);
  std::shared_ptr<Ranks> three = Ranks::share(optionsOf(3));
  EXPECT_NE(three, first);
  EXPECT_EQ(Ranks::share(optionsOf(3)), three);
  LoadOptions other;
  other.threadsPerRank = 7;
  EXPECT_NE(Ranks::share(optionsOf(2, other)), first);
  // Nobody keeps them.
  std::weak_ptr<Ranks> gone = first;
  first.reset();
  EXPECT_TRUE(gone.expired());
}

TEST(Ranks, WhatEmulatesIsForOneProgram) {
  LoadOptions network, late;
  network.network = networkOf(2, 0);
  late.lateSeed = 1;
  EXPECT_NE(Ranks::share(optionsOf(2, network)),
            Ranks::share(optionsOf(2, network)));
  std::shared_ptr<Ranks> first = Ranks::share(optionsOf(2, late));
  EXPECT_NE(Ranks::share(optionsOf(2, late)), first);
}

TEST(Ranks, AMapIsAValue) {
  RankMap map = RankMap::inRuns(5, 2, 1);
  EXPECT_EQ(map.processOf, (std::vector<int64_t>{0, 0, 0, 1, 1}));
  EXPECT_EQ(map.local, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(map.firstRanks(2), (std::vector<int64_t>{0, 3}));
  RankMap other({1, 0, 1}, 1);
  EXPECT_EQ(other.local, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(other.firstRanks(3), (std::vector<int64_t>{1, 0, -1}));
}

TEST(Ranks, AnArenaIsAsLargeAsTheLargestProgramNeeds) {
  Ranks ranks(optionsOf(1));
  std::unique_ptr<Device> device = createCpuDevice(1);
  EXPECT_EQ(ranks.reserve(0, *device, 100).arena->bytes, 100);
  uint64_t version = ranks.rank(0).version;
  const Buffer *arena = ranks.rank(0).arena.get();
  EXPECT_EQ(ranks.reserve(0, *device, 64).arena.get(), arena);
  EXPECT_EQ(ranks.rank(0).version, version);
  EXPECT_EQ(ranks.reserve(0, *device, 4096).arena->bytes, 4096);
  EXPECT_GT(ranks.rank(0).version, version);
}

TEST(Ranks, ChannelsAreDroppedWithTheirProgramAlone) {
  auto channelsOf = [](int64_t count) {
    return programOf(2, std::vector<Collective>(count, makeSend(0, 1)))
        .channels;
  };
  ChannelNumbers numbers;
  int64_t none = numbers.add({}, 0), two = numbers.add(channelsOf(2), 2),
          last = numbers.add(channelsOf(1), 3);
  auto dropped = [&](int64_t first) {
    std::vector<int64_t> forgotten;
    numbers.drop(first);
    numbers.clean([&](int64_t number) { forgotten.push_back(number); });
    return forgotten;
  };
  EXPECT_EQ(dropped(none), std::vector<int64_t>());
  EXPECT_EQ(numbers.givenOf(two + 1), 1);
  EXPECT_EQ(dropped(two), (std::vector<int64_t>{two, two + 1}));
  EXPECT_EQ(numbers.at(last).kind, "send_recv");
  EXPECT_EQ(dropped(last), std::vector<int64_t>{last});
}

/// richProgram, which has all kinds of instructions on four ranks.
class SharedRanks : public testing::Test {
protected:
  SharedRanks() { root = richProgram(directory.path()); }

  Program load(const LoadOptions &options = {}) {
    return Program::load(directory.path(), options);
  }
  /// Loads it with an instruction that fails on two of the ranks.
  Program loadFailing() {
    registerLibraryFunction("test.fail", [](const LibraryRequest &) {
      return [](std::span<void *const>, std::span<void *const>) {
        throw Error("out of luck");
      };
    });
    json failing = root;
    failing["origins"].push_back({{"label", "roulette"}});
    json &instructions = failing["classes"][1]["instructions"];
    instructions.insert(instructions.begin() + 1, callOf("test.fail"));
    writeFile(directory.path() / "manifest.json", failing.dump());
    return load();
  }

  static json callOf(const char *function) {
    return {{"call", function},
            {"origin", 2},
            {"inputs", json::array()},
            {"outputs", json::array()}};
  }

  static Submission submit(const Program &program, float first) {
    std::vector<float> state(16), batch(32);
    std::iota(state.begin(), state.end(), first);
    return program.submit(
        std::vector{Array::fromHost(DType::F32, {4, 4}, state.data()),
                    Array::fromHost(DType::F32, {8, 4}, batch.data())});
  }
  static std::vector<float> valuesOf(const Submission &submission) {
    std::vector<float> values(16);
    submission.results[0].toHost(values.data());
    return values;
  }
  /// What programs give, of the first values 0 to 15.
  std::vector<std::vector<float>> expected() {
    LoadOptions alone;
    alone.hasOwnRanks = true;
    Program program = load(alone);
    std::vector<std::vector<float>> values;
    for (int first = 0; first < 16; ++first)
      values.push_back(valuesOf(submit(program, static_cast<float>(first))));
    return values;
  }

  TemporaryDirectory directory;
  json root;
};

TEST_F(SharedRanks, StepsOfProgramsFollowOneAnother) {
  std::vector<std::vector<float>> values = expected();
  Program first = load(), second = load();
  auto runAll = [&](int from) {
    for (int round = 0; round < 10; ++round) {
      std::vector<Submission> steps;
      for (int i = from; i < 16; i += 2)
        steps.push_back(
            submit(i % 4 < 2 ? first : second, static_cast<float>(i)));
      for (size_t i = 0; i < steps.size(); ++i)
        EXPECT_EQ(valuesOf(steps[i]), values[from + 2 * i]);
    }
  };
  std::thread other([&] { runAll(1); });
  runAll(0);
  other.join();
}

TEST_F(SharedRanks, AnErrorOfAnotherProgramIsItsOwn) {
  std::vector<std::vector<float>> values = expected();
  Program good = load(), failing = loadFailing();
  for (int i = 0; i < 4; ++i) {
    Submission wrong = submit(failing, 0);
    Submission right = submit(good, static_cast<float>(i));
    EXPECT_EQ(valuesOf(right), values[i]);
    EXPECT_THROW(valuesOf(wrong), Error);
  }
}

TEST_F(SharedRanks, ProgramsComeAndGo) {
  std::vector<std::vector<float>> values = expected();
  Program stays = load();
  std::atomic<bool> isOver = false;
  std::thread others([&] {
    for (int i = 0; i < 20; ++i) {
      Program goes = load();
      EXPECT_EQ(valuesOf(submit(goes, 3)), values[3]);
      // The last step of a program may outlive its handle.
      submit(load(), 5);
    }
    isOver = true;
  });
  for (int i = 0; !isOver; i = (i + 1) % 16)
    EXPECT_EQ(valuesOf(submit(stays, static_cast<float>(i))), values[i]);
  others.join();
}

TEST_F(SharedRanks, AProgramMayHaveRanksOfItsOwn) {
  // Its step waits until one of another program has ended, which would be
  // behind it.
  std::atomic<bool> hasEnded = false;
  registerLibraryFunction("test.wait", [&](const LibraryRequest &) {
    return [&](std::span<void *const>, std::span<void *const>) {
      while (!hasEnded)
        std::this_thread::yield();
    };
  });
  std::vector<std::vector<float>> values = expected();
  Program quick = load();
  json waiting = root;
  waiting["origins"].push_back({{"label", "patience"}});
  json &instructions = waiting["classes"][1]["instructions"];
  instructions.insert(instructions.begin(), callOf("test.wait"));
  writeFile(directory.path() / "manifest.json", waiting.dump());
  LoadOptions own;
  own.hasOwnRanks = true;
  Program slow = load(own);
  Submission first = submit(slow, 1);
  EXPECT_EQ(valuesOf(submit(quick, 2)), values[2]);
  hasEnded = true;
  EXPECT_EQ(valuesOf(first), values[1]);
}

} // namespace
} // namespace whale::runtime::test
