//===- TargetTest.cpp - Targets as text -------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A target's text gives the same target back; what is none is refused whole.
//
//===----------------------------------------------------------------------===//

#include "whale/Conversion/Target.h"

#include <gtest/gtest.h>

using namespace whale;

TEST(Target, Text) {
  for (const auto &[target, text] :
       {std::pair(Target(), "cpu"),
        {Target::forProcessor(true), "cpu+i8"},
        {Target().withoutCode(), "cpu+plan"},
        {Target::forGpu(80, 1).withoutCode(), "sm_80+cudnn=1+plan"},
        {Target::forGpu(90), "sm_90"},
        {Target::forGpu(120, 0), "sm_120+cudnn=0"},
        {Target::forGpu(80, int64_t(1) << 40), "sm_80+cudnn=1099511627776"}}) {
    EXPECT_EQ(target.str(), text);
    EXPECT_EQ(Target::parse(text), target) << text;
  }
}

TEST(Target, NoTarget) {
  for (const char *text :
       {"", "gpu", "cpu+", "cpu+i8+i8", "sm_", "sm_0", "sm_-90", "sm_90+cudnn",
        "sm_90+cudnn=", "sm_90+cudnn=-1", "sm_90+cudnn=1x", "sm_90 "})
    EXPECT_FALSE(Target::parse(text)) << text;
}

TEST(Target, WhatItHas) {
  EXPECT_FALSE(Target().isGpu());
  EXPECT_TRUE(Target().computesBF16());
  EXPECT_FALSE(Target::forGpu(70).computesBF16());
  EXPECT_TRUE(Target::forGpu(80).computesBF16());
  EXPECT_EQ(Target::forGpu(90).getArchitecture().name, "sm_90");
}
