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
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <vector>

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
  // There is no more of it.
  EXPECT_NE(all.allocate(2 * kMiB).get(), first);
}

/// Runs are cut, and joined where they meet.
TEST(LargeMemory, IsTakenAgainInOtherSizes) {
  LargeMemory all;
  std::shared_ptr<void> other = all.allocate(64 * kMiB);
  std::shared_ptr<void> memory = all.allocate(16 * kMiB);
  auto *first = static_cast<char *>(memory.get());
  memory.reset();
  std::vector<std::shared_ptr<void>> parts;
  std::set<char *> places;
  for (int part = 0; part < 4; ++part)
    places.insert(static_cast<char *>(
        parts.emplace_back(all.allocate(4 * kMiB - 64)).get()));
  EXPECT_EQ(places, (std::set{first, first + 4 * kMiB, first + 8 * kMiB,
                              first + 12 * kMiB}));
  for (int part : {2, 0, 3, 1})
    parts[part].reset();
  EXPECT_EQ(all.allocate(16 * kMiB).get(), first);
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

/// The last buffer takes with it what is kept, but for a little.
TEST(LargeMemory, IsNotKeptForNothing) {
  LargeMemory all;
  std::shared_ptr<void> memory = all.allocate(40 * kMiB);
  std::shared_ptr<void> other = all.allocate(40 * kMiB);
  auto *first = static_cast<char *>(memory.get());
  auto *last = static_cast<char *>(other.get());
  auto mapped = [&] {
    int count = 0;
    for (size_t place = 0; place < 40 * kMiB; place += kMiB)
      count += isMapped(first + place) + isMapped(last + place);
    return count;
  };
  memory.reset();
  EXPECT_EQ(mapped(), 80);
  other.reset();
  EXPECT_EQ(mapped(), 32);
  EXPECT_EQ(all.allocate(SIZE_MAX / 2), nullptr);
}

/// Of all of a process's memory, what the system may take.
size_t lentBytes() {
  std::ifstream file("/proc/self/smaps");
  size_t kilobytes = 0;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("LazyFree:"))
      kilobytes += std::stoull(line.substr(9));
  return kilobytes << 10;
}

int64_t faults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// A state that has several times as much under one plan as under another one
/// goes there and back on the same pages, and others may take them meanwhile.
TEST(LargeMemory, IsLentBeyondWhatIsUsed) {
  LargeMemory all;
  std::shared_ptr<void> small = all.allocate(40 * kMiB);
  std::memset(small.get(), 1, 40 * kMiB);
  size_t before = lentBytes();
  for (int switches = 0; switches < 3; ++switches) {
    int64_t first = faults();
    std::vector<std::shared_ptr<void>> large;
    for (int part = 0; part < 20; ++part)
      std::memset(large.emplace_back(all.allocate(5 * kMiB)).get(), 1,
                  5 * kMiB);
    if (switches)
      EXPECT_LT(faults() - first, 16);
    EXPECT_NEAR(lentBytes(), before, kMiB);
    large.clear();
    // As much as is used is kept.
    EXPECT_NEAR(lentBytes(), before + (100 - 40) * kMiB, 3 * kMiB);
  }
  small.reset();
  EXPECT_NEAR(lentBytes(), before, 32 * kMiB);
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
