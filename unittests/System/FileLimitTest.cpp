//===- FileLimitTest.cpp --------------------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/System/FileLimit.h"

#include "whale/System/Error.h"
#include "gtest/gtest.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace whale::system;

namespace {

/// In a process of its own, with these limits on top of what is open: exits
/// with the soft limit that it has in the end, or prints what is wrong.
void needWithin(rlim_t soft, rlim_t hard, size_t count) {
  // No number below the limit may be free but these.
  int last = 0, file = 0;
  for (int each = 0; each < 1024; ++each)
    last = fcntl(each, F_GETFD) >= 0 ? each : last;
  while (file <= last)
    file = dup(2);
  close(file);
  auto open = static_cast<rlim_t>(file);
  rlimit limit = {open + soft, open + hard};
  setrlimit(RLIMIT_NOFILE, &limit);
  try {
    needFiles(count, "the library");
  } catch (const Error &error) {
    std::fprintf(stderr, "%s; %d", error.what(),
                 std::string(error.what())
                     .ends_with(" " + std::to_string(open + count)));
    std::_Exit(100);
  }
  getrlimit(RLIMIT_NOFILE, &limit);
  std::_Exit(static_cast<int>(limit.rlim_cur - open));
}

TEST(FileLimit, IsRaisedWhereTheSystemLetsIt) {
  EXPECT_EXIT(needWithin(50, 60, 50), testing::ExitedWithCode(50), "");
  EXPECT_EXIT(needWithin(5, 60, 50), testing::ExitedWithCode(50), "");
  EXPECT_EXIT(needWithin(50, 60, 60), testing::ExitedWithCode(60), "");
}

TEST(FileLimit, SaysWhatIsNeeded) {
  EXPECT_EXIT(needWithin(5, 49, 50), testing::ExitedWithCode(100),
              "^the library needs 50 open files, and this process can open 5 "
              "more: its limit \\(ulimit -n\\) must be at least [0-9]+; 1$");
}

} // namespace
