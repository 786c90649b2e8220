//===- LayoutTest.cpp - Boxes that cover a view -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Layout.h"

#include <gtest/gtest.h>

using namespace whale::format;

namespace {

TEST(LayoutTest, Covers) {
  auto box = [](Shape start, Shape size) {
    return std::optional<Box>(Box{start, size});
  };
  std::vector<std::optional<Box>> boxes = {box({0, 0}, {2, 2}),
                                           box({0, 2}, {2, 1}), std::nullopt};
  EXPECT_TRUE(covers({2, 3}, boxes));
  EXPECT_FALSE(covers({2, 4}, boxes));
  boxes.push_back(box({1, 1}, {1, 3}));
  EXPECT_FALSE(covers({2, 4}, boxes));
  boxes.push_back(box({0, 3}, {1, 1}));
  EXPECT_TRUE(covers({2, 4}, boxes));
  EXPECT_TRUE(covers({0, 4}, {}));
  EXPECT_FALSE(covers({}, {}));
}

} // namespace
