//===- LongestMatch.cpp - A longest common subsequence --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LongestMatch.h"

#include "llvm/ADT/DenseSet.h"

#include <algorithm>
#include <cassert>
#include <vector>

namespace whale {

namespace {
/// The lengths of the longest matches of what is left of two lists, from a row
/// and a column on. Only for columns near the row: a match that leaves few
/// elements of the shorter list alone stays in this band.
class Band {
public:
  /// `width`: how many elements of the shorter list may stay alone.
  Band(llvm::ArrayRef<unsigned> rows, llvm::ArrayRef<unsigned> columns,
       int64_t width)
      : columns(int64_t(columns.size())),
        low(std::min<int64_t>(0, this->columns - int64_t(rows.size())) - width),
        high(std::max<int64_t>(0, this->columns - int64_t(rows.size())) +
             width) {
    first.resize(rows.size() + 2);
    for (size_t i = 0; i <= rows.size(); ++i)
      first[i + 1] = first[i] + std::max<int64_t>(0, end(i) - begin(i));
    lengths.resize(first.back());
    for (int64_t i = int64_t(rows.size()) - 1; i >= 0; --i)
      for (int64_t j = std::min(end(i), this->columns) - 1; j >= begin(i); --j)
        lengths[first[i] + j - begin(i)] =
            rows[i] == columns[j] ? at(i + 1, j + 1) + 1
                                  : std::max(at(i + 1, j), at(i, j + 1));
  }

  unsigned at(int64_t row, int64_t column) const {
    bool isInside = column >= begin(row) && column < end(row);
    return isInside ? lengths[first[row] + column - begin(row)] : 0;
  }
  size_t size() const { return lengths.size(); }

private:
  int64_t begin(int64_t row) const { return std::max<int64_t>(0, row + low); }
  int64_t end(int64_t row) const { return std::min(columns, row + high) + 1; }

  int64_t columns, low, high;
  /// Where the entries of each row begin.
  std::vector<int64_t> first;
  std::vector<unsigned> lengths;
};

/// What is left of a list without the values that another one lacks.
struct Shared {
  Shared(llvm::ArrayRef<unsigned> list, llvm::ArrayRef<unsigned> other) {
    llvm::DenseSet<unsigned> values(other.begin(), other.end());
    for (unsigned value : list) {
      index.push_back(kept.size());
      if (values.contains(value))
        kept.push_back(value);
    }
    index.push_back(kept.size());
  }

  std::vector<unsigned> kept;
  /// By element: how many before it are kept.
  std::vector<int64_t> index;
};
} // namespace

llvm::SmallVector<std::pair<size_t, size_t>>
longestMatch(llvm::ArrayRef<unsigned> rows, llvm::ArrayRef<unsigned> columns,
             uint64_t *cells) {
  llvm::SmallVector<std::pair<size_t, size_t>> pairs;
  size_t i = 0, j = 0;
  for (; i < rows.size() && j < columns.size() && rows[i] == columns[j];
       ++i, ++j)
    pairs.emplace_back(i, j);

  Shared left(rows.drop_front(i), columns.drop_front(j)),
      top(columns.drop_front(j), rows.drop_front(i));
  int64_t shorter = std::min(left.kept.size(), top.kept.size());
  for (int64_t width = 0;; width = 2 * width + 1) {
    Band band(left.kept, top.kept, width);
    if (cells)
      *cells += band.size();
    // No longer match can leave the band, then.
    if (shorter - int64_t(band.at(0, 0)) > width)
      continue;
    auto best = [&, i0 = i, j0 = j](size_t row, size_t column) {
      return band.at(left.index[row - i0], top.index[column - j0]);
    };
    while (i < rows.size() && j < columns.size()) {
      if (rows[i] == columns[j])
        pairs.emplace_back(i++, j++);
      else if (best(i, j + 1) >= best(i + 1, j))
        ++j;
      else
        ++i;
    }
    return pairs;
  }
}

} // namespace whale
