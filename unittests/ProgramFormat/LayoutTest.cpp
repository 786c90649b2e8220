//===- LayoutTest.cpp - Boxes that cover a view -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Pieces.h"
#include "whale/System/Error.h"

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
  auto pieces = [&](const Box &box, std::vector<size_t> holders, bool last) {
    return piecesOf(box, layout, holders,
                    [&](const Box &, std::span<const size_t> having) {
                      return last ? having.back() : having.front();
                    });
  };
  auto at = [](int64_t start, int64_t size) { return Box{{start}, {size}}; };
  using Pieces = std::vector<Piece>;
  // Cut where a holder's box begins or ends; holders are in the given order.
  EXPECT_EQ(pieces(all, {4, 3, 0}, false),
            (Pieces{{4, at(0, 2)}, {4, at(2, 1)}, {4, at(3, 1)}}));
  EXPECT_EQ(pieces(all, {4, 3, 0}, true),
            (Pieces{{0, at(0, 2)}, {0, at(2, 1)}, {3, at(3, 1)}}));
  EXPECT_EQ(pieces({{1}, {1}}, {3, 2, 0}, false), (Pieces{{2, at(1, 1)}}));
  // What nobody has.
  EXPECT_EQ(pieces(all, {1, 2}, false), (Pieces{{2, at(0, 3)}}));
  EXPECT_EQ(pieces(at(3, 1), {0, 2}, false), Pieces());
  EXPECT_EQ(pieces(at(1, 0), {4}, false), Pieces());
  auto first = [](const Box &, std::span<const size_t> having) {
    return having.front();
  };
  // A scalar.
  Layout scalar = {{}, {std::nullopt, Box()}};
  EXPECT_EQ(piecesOf({}, scalar, std::vector<size_t>{0, 1}, first),
            (Pieces{{1, Box()}}));
  // Rows and columns; row-major.
  Layout crossed = {{2, 2}, {Box{{1, 0}, {1, 2}}, Box{{0, 0}, {2, 1}}}};
  EXPECT_EQ(
      piecesOf(Box::whole({2, 2}), crossed, std::vector<size_t>{0, 1}, first),
      (Pieces{{1, {{0, 0}, {1, 1}}},
              {0, {{1, 0}, {1, 1}}},
              {0, {{1, 1}, {1, 1}}}}));
}

TEST(LayoutTest, TooManyPieces) {
  Shape view(4, 100);
  Layout layout = {view, {}};
  std::vector<size_t> holders;
  for (int64_t i = 0; i < 50; ++i) {
    layout.boxes.push_back(Box{Shape(4, i), Shape(4, 1)});
    holders.push_back(holders.size());
  }
  EXPECT_THROW(piecesOf(Box::whole(view), layout, holders,
                        [](const Box &, std::span<const size_t> having) {
                          return having.front();
                        }),
               whale::system::Error);
}

} // namespace
