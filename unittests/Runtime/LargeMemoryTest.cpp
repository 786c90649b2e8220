//===- LargeMemoryTest.cpp - Memory is used again, within limits ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LargeMemory.h"

#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>

namespace whale::runtime {
namespace {

constexpr size_t kMiB = 1 << 20;

/// Whether the first page is mapped.
bool isMapped(void *data) {
  auto page = reinterpret_cast<uintptr_t>(data) / 4096 * 4096;
  return msync(reinterpret_cast<void *>(page), 1, MS_ASYNC) == 0;
}

TEST(LargeMemory, IsAllThere) {
  LargeMemory all;
  for (size_t bytes : {kMiB + 64, 4 * kMiB, 5 * kMiB + 4096 + 64}) {
    std::shared_ptr<void> memory = all.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % 64, 0u);
    std::memset(memory.get(), 1, bytes);
  }
}

TEST(LargeMemory, IsTakenAgain) {
  LargeMemory all;
  std::shared_ptr<void> other = all.allocate(8 * kMiB);
  std::shared_ptr<void> memory = all.allocate(4 * kMiB);
  void *first = memory.get();
  memory.reset();
  EXPECT_TRUE(isMapped(first));
  memory = all.allocate(4 * kMiB);
  EXPECT_EQ(memory.get(), first);
  // Of another size there is none.
  EXPECT_NE(all.allocate(2 * kMiB).get(), first);
}

/// What was kept makes room for more than there was.
TEST(LargeMemory, IsNeverMoreThanWasUsed) {
  LargeMemory all;
  std::shared_ptr<void> most = all.allocate(64 * kMiB);
  std::shared_ptr<void> memory = all.allocate(4 * kMiB);
  auto *first = static_cast<char *>(memory.get());
  memory.reset();
  memory = all.allocate(6 * kMiB);
  // It may be where that was.
  auto *start = static_cast<char *>(memory.get());
  bool isPart = first >= start && first < start + 6 * kMiB;
  EXPECT_TRUE(isPart || !isMapped(first));
}

/// The last buffer takes what is kept with it.
TEST(LargeMemory, IsNotKeptForNothing) {
  LargeMemory all;
  std::shared_ptr<void> memory = all.allocate(40 * kMiB);
  std::shared_ptr<void> other = all.allocate(40 * kMiB);
  void *first = memory.get(), *last = other.get();
  memory.reset();
  EXPECT_TRUE(isMapped(first));
  other.reset();
  EXPECT_FALSE(isMapped(first));
  EXPECT_FALSE(isMapped(last));
  EXPECT_EQ(all.allocate(SIZE_MAX / 2), nullptr);
}

/// A step's only result, which is given back before the next step.
TEST(LargeMemory, IsKeptWhereItIsLittle) {
  LargeMemory all;
  void *first = all.allocate(4 * kMiB).get();
  EXPECT_TRUE(isMapped(first));
  EXPECT_EQ(all.allocate(4 * kMiB).get(), first);
}

} // namespace
} // namespace whale::runtime
