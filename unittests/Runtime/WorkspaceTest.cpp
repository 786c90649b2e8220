//===- WorkspaceTest.cpp - Sizes of LAPACK's workspace ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "library/Workspace.h"
#include "library/Lapack.h"
#include "whale/Runtime/Types.h"

#include <gtest/gtest.h>

using namespace whale::runtime;

TEST(WorkspaceTest, IsNoLessThanWhatIsNeededWhereTheQueryIsRounded) {
  // 1 + 6n + 2n^2 is odd, which no f32 above 2^24 is.
  Workspace least = workspaceOfSyevd(/*isComplex=*/false, 'V', 3000);
  EXPECT_EQ(least.elements, 18018001);
  EXPECT_EQ(least.integers, 15003);
  auto asked = static_cast<float>(least.elements);
  EXPECT_LT(int64_t(asked), least.elements);
  EXPECT_EQ(workspaceSize(least.elements, asked), 18018001);
  EXPECT_EQ(workspaceSize(least.elements, 2e7), 20000000);
  EXPECT_EQ(workspaceSize(1, 1e30), INT32_MAX);
}

TEST(WorkspaceTest, IsWhatLapackDocuments) {
  EXPECT_EQ(workspaceOfSyevd(true, 'V', 4000).elements, 16008000);
  EXPECT_EQ(workspaceOfSyevd(true, 'V', 4000).reals, 32020001);
  EXPECT_EQ(workspaceOfSyevd(false, 'N', 4000).elements, 8001);
  EXPECT_EQ(workspaceOfSyevd(true, 'N', 4000).reals, 4000);
  EXPECT_EQ(workspaceOfGesdd(false, 'S', 4000, 3000).elements, 36022000);
  EXPECT_EQ(workspaceOfGesdd(false, 'A', 9000, 3000).elements, 36027000);
  EXPECT_EQ(workspaceOfGesdd(false, 'N', 100000, 3).elements, 100009);
  EXPECT_EQ(workspaceOfGesdd(true, 'S', 3000, 4000).reals, 45021000);
  EXPECT_EQ(workspaceOfGesdd(false, 'S', 0, 5).elements, 1);
}

TEST(WorkspaceTest, RefusesWhatLapackCannotCount) {
  EXPECT_NO_THROW(workspaceOfSyevd(false, 'V', 32000));
  EXPECT_NO_THROW(workspaceOfSyevd(false, 'N', 100000));
  EXPECT_NO_THROW(workspaceOfGesdd(false, 'S', INT32_MAX / 2, 2));
  EXPECT_THROW(workspaceOfSyevd(false, 'V', 33000), Error);
  EXPECT_THROW(workspaceOfSyevd(true, 'V', INT32_MAX), Error);
  EXPECT_THROW(workspaceOfGesdd(false, 'S', 24000, 24000), Error);
  EXPECT_THROW(workspaceOfGesdd(true, 'A', INT32_MAX, INT32_MAX), Error);
}

TEST(WorkspaceTest, RefusedArgumentsAreErrors) {
  EXPECT_EQ(checkInfo("lapack.syevd", 3, {5}), 3);
  // A NaN in the operand.
  EXPECT_EQ(checkInfo("lapack.syevd", -5, {5}), -5);
  for (auto [info, text] :
       {std::pair(-8, "lapack.syevd: LAPACK refuses argument 8"),
        std::pair(LAPACK_WORK_MEMORY_ERROR,
                  "lapack.syevd: out of memory for its workspace")})
    try {
      checkInfo("lapack.syevd", info, {5});
      ADD_FAILURE() << "no error for " << info;
    } catch (const Error &error) {
      EXPECT_STREQ(error.what(), text);
    }
}
