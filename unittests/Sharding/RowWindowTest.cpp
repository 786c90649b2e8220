//===- RowWindowTest.cpp - Parts of convolutions, computed ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/RowWindow.h"
#include "gtest/gtest.h"
#include <numeric>
#include <random>
#include <vector>

using namespace whale;

namespace {

/// What each position of a convolution with these rows reads, tap by tap: the
/// number of a row, or -1. Rows are spread out, padded, and read in windows.
std::vector<std::vector<int>> readBy(const std::vector<int> &rows, int64_t low,
                                     int64_t high, const RowWindow &window) {
  std::vector<int> taps;
  for (size_t i = 0; i != rows.size(); ++i) {
    if (i != 0)
      taps.insert(taps.end(), window.base - 1, -1);
    taps.push_back(rows[i]);
  }
  if (low >= 0)
    taps.insert(taps.begin(), low, -1);
  else
    taps.erase(taps.begin(), taps.begin() - low);
  if (high >= 0)
    taps.insert(taps.end(), high, -1);
  else
    taps.erase(taps.end() + high, taps.end());
  std::vector<std::vector<int>> read;
  for (int64_t at = 0; at + window.reach <= int64_t(taps.size());
       at += window.stride)
    read.emplace_back(taps.begin() + at, taps.begin() + at + window.reach);
  return read;
}

std::vector<int> numbers(int64_t begin, int64_t end) {
  std::vector<int> rows;
  for (int64_t row = begin; row != end; ++row)
    rows.push_back(row);
  return rows;
}

TEST(RowWindow, ThreeTapsReadARowOfEachNeighbour) {
  RowWindow window{/*rows=*/8, /*stride=*/1, /*reach=*/3, /*low=*/1};
  EXPECT_EQ(window.neededRows({0, 4}), (RowRange{0, 5}));
  EXPECT_EQ(window.neededRows({4, 8}), (RowRange{3, 8}));
  EXPECT_EQ(window.neededRows({4, 4}), (RowRange{4, 4}));
  EXPECT_EQ(window.lowPadding({0, 4}, {0, 5}), 1);
  EXPECT_EQ(window.highPadding({0, 4}, {0, 5}), 0);
  EXPECT_EQ(window.lowPadding({4, 8}, {3, 8}), 0);
  EXPECT_EQ(window.highPadding({4, 8}, {3, 8}), 1);
}

// Each part reads, tap for tap, what its positions read of the whole, and needs
// no more than the halo that is returned.
TEST(RowWindow, PartsReadWhatTheWholeReads) {
  std::mt19937 random(3);
  auto below = [&](int64_t bound) { return int64_t(random() % bound); };
  int checked = 0;
  while (checked != 20000) {
    RowWindow window;
    window.stride = 1 + below(3);
    window.base = 1 + below(3);
    window.reach = 1 + below(8);
    window.low = below(12) - 3;
    int64_t grains = 1 + below(8), scale = 1 + below(2);
    // The least grain in which rows and positions go together.
    int64_t common = std::gcd(window.stride, window.base);
    int64_t grain = window.base / common * scale;
    window.rows = grains * window.stride / common * scale;
    int64_t positions = grains * grain;
    int64_t high = (positions - 1) * window.stride - window.low + window.reach -
                   1 - (window.rows - 1) * window.base;
    int64_t spread = (window.rows - 1) * window.base + 1;
    if (spread + window.low < 0 || spread + window.low + high < 0 ||
        spread + high < 0)
      continue;
    auto whole = readBy(numbers(0, window.rows), window.low, high, window);
    ASSERT_EQ(int64_t(whole.size()), positions);
    int64_t first = below(grains), last = first + 1 + below(grains - first);
    RowRange part{first * grain, last * grain};
    RowRange held = window.neededRows(part), own = window.ownRows(part);
    ASSERT_LE(own.begin - held.begin, window.rowsBefore());
    ASSERT_LE(held.end - own.end, window.rowsAfter());
    ASSERT_TRUE(held.contains(own));
    ASSERT_TRUE(0 <= held.begin && held.end <= window.rows);
    int64_t partLow = window.lowPadding(part, held);
    int64_t partHigh = window.highPadding(part, held);
    int64_t size = (held.end - held.begin - 1) * window.base + 1;
    if (size + partLow < 0 || size + partHigh < 0)
      continue; // Taps of this row alone are left out on both sides.
    auto mine =
        readBy(numbers(held.begin, held.end), partLow, partHigh, window);
    ASSERT_EQ(mine, decltype(whole)(whole.begin() + part.begin,
                                    whole.begin() + part.end));
    ++checked;
  }
}

} // namespace
