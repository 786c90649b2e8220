//===- StagingTest.cpp - Writers beside one another -----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/Staging.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

namespace {

/// Removes a staging directory that nobody has locked, while its maker, who was
/// held up, locks it. Returns whether the maker could, and whether it still has
/// its directory.
std::pair<bool, bool> lockWhatIsRemoved(const fs::path &parent) {
  fs::path directory = parent / ".file.whale-0123abcd",
           lock = directory / "lock";
  fs::create_directory(directory);
  std::ofstream(lock).flush();
  // The lock goes among them.
  for (int i = 0; i < 300; ++i)
    std::ofstream(directory / std::to_string(i)).flush();
  int descriptor = -1;
  std::thread maker([&] {
    while (access(lock.c_str(), F_OK) == 0)
      continue;
    descriptor = open(lock.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    // As makers do: what was removed before it was locked is no lock.
    struct stat locked;
    if (descriptor >= 0 &&
        (flock(descriptor, LOCK_EX | LOCK_NB) != 0 ||
         fstat(descriptor, &locked) != 0 || locked.st_nlink == 0))
      close(std::exchange(descriptor, -1));
  });
  whale::system::sweepStaging(parent / "file");
  maker.join();
  bool isLocked = descriptor >= 0, isThere = fs::exists(lock);
  if (isLocked)
    close(descriptor);
  fs::remove_all(directory);
  return {isLocked, isThere};
}

TEST(Staging, WhatIsLockedWhileItIsRemovedStays) {
  char name[] = "/tmp/whale-staging-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  int times = 0;
  for (int i = 0; i < 200 && times < 5; ++i) {
    auto [isLocked, isThere] = lockWhatIsRemoved(name);
    times += isLocked;
    EXPECT_EQ(isThere, isLocked);
  }
  EXPECT_GT(times, 0);
  fs::remove_all(name);
}

} // namespace
