//===- SharedMemoryTest.cpp - What processes of a host read ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads stand for processes: they find each other's files as those do.
//
//===----------------------------------------------------------------------===//

#include "transport/SharedMemory.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <sys/resource.h>
#include <thread>

using namespace whale::runtime;

namespace {

constexpr size_t bytes = 1 << 20;

/// Has each process of `count` make its memory, and call `then` when all have.
/// What a process says goes through `alter`.
void share(size_t count,
           const std::function<void(size_t process, std::string &text)> &alter,
           const std::function<void(size_t, SharedMemory &)> &then) {
  std::vector<std::string> texts(count);
  std::barrier meet(static_cast<std::ptrdiff_t>(count));
  std::vector<std::jthread> processes;
  for (size_t process = 0; process < count; ++process)
    processes.emplace_back([&, process] {
      SharedMemory memory(bytes, [&](const std::string &mine) {
        meet.arrive_and_wait();
        texts[process] = mine;
        alter(process, texts[process]);
        meet.arrive_and_wait();
        std::vector<std::string> all = texts;
        all[process] = mine;
        return all;
      });
      if (memory.own())
        std::memset(memory.own(), static_cast<int>('a' + process), bytes);
      meet.arrive_and_wait();
      then(process, memory);
      meet.arrive_and_wait();
    });
}

TEST(SharedMemory, OthersReadIt) {
  share(
      3, [](size_t, std::string &) {},
      [](size_t process, SharedMemory &memory) {
        ASSERT_NE(memory.own(), nullptr);
        for (size_t other = 0; other < 3; ++other) {
          const char *its = memory.of(static_cast<int64_t>(other));
          ASSERT_EQ(its != nullptr, other != process);
          if (its)
            EXPECT_EQ(std::string(its, bytes),
                      std::string(bytes, static_cast<char>('a' + other)));
        }
      });
}

/// Where one of two cannot read the other's, neither does.
TEST(SharedMemory, BothReadOrNone) {
  auto spoil = [](size_t process, std::string &text) {
    // The number that the memory begins with; `foundByBoth` says less.
    if (process == 1 && text.size() > 16)
      text[8] ^= 1;
  };
  share(3, spoil, [](size_t process, SharedMemory &memory) {
    EXPECT_EQ(memory.own() != nullptr, process != 1);
    for (size_t other = 0; other < 3; ++other)
      EXPECT_EQ(memory.of(static_cast<int64_t>(other)) != nullptr,
                process != 1 && other != 1 && other != process);
  });
}

TEST(SharedMemory, NotOfAnotherPlace) {
  auto spoil = [](size_t process, std::string &text) {
    if (text.size() > 16)
      text += process == 0 ? " elsewhere" : "";
  };
  share(2, spoil, [](size_t, SharedMemory &memory) {
    EXPECT_EQ(memory.own(), nullptr);
    EXPECT_EQ(memory.of(0), nullptr);
    EXPECT_EQ(memory.of(1), nullptr);
  });
}

/// Without files there is no memory, and no error.
TEST(SharedMemory, WithoutFiles) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  share(
      2, [](size_t, std::string &) {},
      [](size_t, SharedMemory &memory) { EXPECT_EQ(memory.own(), nullptr); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

} // namespace
