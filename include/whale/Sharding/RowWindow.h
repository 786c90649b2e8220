//===- RowWindow.h - Rows that a part of a convolution reads ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Along a spatial dimension each position of a convolution reads a window of
// rows. A device that computes some of the positions needs the rows that belong
// to these, and a few of its neighbours': a halo. Positions are those of the
// result, or of the kernel where a convolution sums over it, as the gradient of
// weights does over the rows of the gradient that comes in.
//

#ifndef WHALE_SHARDING_ROWWINDOW_H
#define WHALE_SHARDING_ROWWINDOW_H

#include <cstdint>

namespace whale {

/// Rows or positions [begin, end).
struct RowRange {
  int64_t begin = 0, end = 0;
  bool contains(const RowRange &other) const {
    return other.begin == other.end ||
           (begin <= other.begin && other.end <= end);
  }
  bool operator==(const RowRange &other) const = default;
};

/// Position p reads the taps p * stride - low to p * stride - low + reach - 1,
/// where row r is tap r * base and what isn't a row is zero. Rows and positions
/// go together: rows * base = positions * stride.
struct RowWindow {
  int64_t rows = 0;
  int64_t stride = 1;
  int64_t reach = 1;
  int64_t low = 0;
  int64_t base = 1;
  /// Positions in a grain, the least that a split keeps together.
  int64_t grain = 1;

  /// The rows that belong to these positions, whole grains of them.
  RowRange ownRows(RowRange positions) const;
  /// The same and all that they read: none for no positions.
  RowRange neededRows(RowRange positions) const;
  /// Rows that a part reads before its own and after, at most.
  int64_t rowsBefore() const;
  int64_t rowsAfter() const;
  bool hasHalo() const { return rowsBefore() > 0 || rowsAfter() > 0; }

  /// Zero taps before and after `held` rows with which a convolution makes
  /// these positions, negative where taps are left out.
  int64_t lowPadding(RowRange positions, RowRange held) const;
  int64_t highPadding(RowRange positions, RowRange held) const;

  bool operator==(const RowWindow &other) const = default;
};

} // namespace whale

#endif // WHALE_SHARDING_ROWWINDOW_H
