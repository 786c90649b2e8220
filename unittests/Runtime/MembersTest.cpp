//===- MembersTest.cpp - What is said of a job's processes ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "job/Members.h"

#include <gtest/gtest.h>

namespace whale::runtime {
namespace {

TEST(Members, WhoLetsOthersWait) {
  job::Connection *connection = reinterpret_cast<job::Connection *>(1);
  auto longAgo = std::chrono::steady_clock::now() - std::chrono::seconds(100);
  job::Members members(3);
  for (job::Member &member : members) {
    member.connection = connection;
    member.place = "host h, pid 1";
    member.advanced = member.outside = longAgo;
  }
  EXPECT_EQ(members.whoLetsWait(60), "");
  members[0].progress.isInStep = true;
  members[0].progress.waiting = "rank 0 waits in 'x' for rank 2";
  members[0].progress.awaited = {2};
  EXPECT_EQ(members.whoLetsWait(60),
            "process 2 (host h, pid 1) has been outside of steps for more than "
            "60 seconds, where rank 0 waits in 'x' for rank 2 (process 0 (host "
            "h, pid 1))");
  EXPECT_EQ(members.whoLetsWait(101), "");
  members[2].progress.isInStep = true;
  EXPECT_EQ(members.whoLetsWait(60), "");
  members[0].progress = {};
  members[0].given = {"the step", ""};
  members[2].progress = {};
  members[1].hasLeft = true;
  EXPECT_EQ(members.whoLetsWait(60),
            "process 2 (host h, pid 1) has been outside of steps for more than "
            "60 seconds, where process 0 (host h, pid 1) exchanges the step");
  // In a relayout all take part.
  members[0].given.reset();
  members[0].progress.isInRelayout = true;
  members[0].progress.waiting = "rank 0 waits in a relayout";
  EXPECT_EQ(members.whoLetsWait(60),
            "process 2 (host h, pid 1) has been outside of steps for more than "
            "60 seconds, where rank 0 waits in a relayout (process 0 (host h, "
            "pid 1))");
}

TEST(Members, WhoWaitsInVain) {
  auto now = std::chrono::steady_clock::now();
  job::Members members(2);
  members[0].advanced = now - std::chrono::seconds(100);
  members[0].progress.isInStep = true;
  members[0].progress.waiting = "rank 0 waits in 'x' for rank 1";
  members[0].progress.awaited = {1};
  EXPECT_EQ(members.whoWaitsInVain(1), "");
  // What it has sent at last may not have come yet, however long the wait was.
  members[1].hasLeft = true;
  members[1].left = now;
  EXPECT_EQ(members.whoWaitsInVain(1), "");
  members[1].left = now - std::chrono::seconds(7);
  EXPECT_NE(members.whoWaitsInVain(1), "");
}

TEST(Members, WhoRunsOtherSteps) {
  job::Members members(3);
  for (job::Member &member : members)
    member.place = "host h, pid 1";
  EXPECT_EQ(members.whoRunOtherSteps(), "");
  members[0].progress.running = {"'a'"};
  members[2].progress.running = {"'b'", "'a'"};
  EXPECT_EQ(members.whoRunOtherSteps(), "");
  members[2].progress.running = {"'b'"};
  EXPECT_EQ(
      members.whoRunOtherSteps(),
      "; process 0 (host h, pid 1) runs 'a', where process 2 (host h, pid "
      "1) runs 'b', and all must call the same steps in one order");
  members[2].progress.running.clear();
  members[2].given = {"the step", ""};
  EXPECT_EQ(
      members.whoRunOtherSteps(),
      "; process 0 (host h, pid 1) runs 'a', where process 2 (host h, pid "
      "1) exchanges the step, and all must call the same steps in one "
      "order");
}

} // namespace
} // namespace whale::runtime
