//===- CallPairingTest.cpp - Pair the calls of a scope --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/CallPairing.h"
#include "gtest/gtest.h"

using namespace whale;

namespace {

TEST(CallPairing, ReverseModeVisitsCallsInReverse) {
  auto pairs =
      pairCalls({{"5.0", false}, {"5.1", false}, {"5.2", true}, {"5.3", true}});
  EXPECT_EQ(pairs["5.2"], "5.1");
  EXPECT_EQ(pairs["5.3"], "5.0");
}

TEST(CallPairing, OneCallAfterTheOther) {
  // Each call has its own forward and backward part.
  auto pairs =
      pairCalls({{"5.0", false}, {"5.0", true}, {"5.1", false}, {"5.1", true}});
  EXPECT_EQ(pairs["5.0"], "5.0");
  EXPECT_EQ(pairs["5.1"], "5.1");
}

TEST(CallPairing, RematerialisationDoublesTheBackwardCalls) {
  auto pairs = pairCalls({{"5.0", false},
                          {"5.1", false},
                          {"5.2", true},
                          {"5.3", true},
                          {"5.4", true},
                          {"5.5", true}});
  EXPECT_EQ(pairs["5.2"], "5.1");
  EXPECT_EQ(pairs["5.3"], "5.1");
  EXPECT_EQ(pairs["5.4"], "5.0");
  EXPECT_EQ(pairs["5.5"], "5.0");
}

TEST(CallPairing, WithoutForwardNothingIsPaired) {
  EXPECT_TRUE(pairCalls({{"5.0", true}}).empty());
  EXPECT_TRUE(pairCalls({{"5.0", false}}).empty());
}

} // namespace
