//===- LayoutTest.cpp - Boxes that cover a view -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Pieces.h"

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

TEST(LayoutTest, StartIn) {
  EXPECT_EQ(startIn({{2, 3}, {4, 4}}, {{3, 3}, {1, 2}}), (Shape{1, 0}));
  EXPECT_EQ(startIn({}, {}), Shape());
}

TEST(LayoutTest, Pieces) {
  Box all = Box::whole({4}), low = {{0}, {3}}, high = {{2}, {2}};
  Layout layout = {{4}, {low, std::nullopt, low, high, all}};
  auto pieces = [&](const Box &box, std::vector<size_t> holders) {
    return piecesOf(box, layout, holders);
  };
  using Pieces = std::vector<Piece>;
  // One with all of it, though others come first.
  EXPECT_EQ(pieces(all, {0, 1, 2, 3, 4}), (Pieces{{4, all}}));
  EXPECT_EQ(pieces({{1}, {2}}, {3, 2, 0}), (Pieces{{2, {{1}, {2}}}}));
  // Each part once, in the order of the holders.
  EXPECT_EQ(pieces(all, {2, 1, 0, 3}), (Pieces{{2, low}, {3, high}}));
  EXPECT_EQ(pieces({{3}, {1}}, {0, 2}), Pieces());
  EXPECT_EQ(pieces({{1}, {0}}, {4}), Pieces());
  // A scalar.
  Layout scalar = {{}, {std::nullopt, Box()}};
  EXPECT_EQ(piecesOf({}, scalar, std::vector<size_t>{0, 1}),
            (Pieces{{1, Box()}}));
}

} // namespace
