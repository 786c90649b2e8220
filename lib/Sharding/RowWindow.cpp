//===- RowWindow.cpp - The rows that a part of a convolution reads --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/RowWindow.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using llvm::divideCeilSigned;
using llvm::divideFloorSigned;

namespace whale {

RowRange RowWindow::ownRows(RowRange positions) const {
  return {positions.begin * stride / base, positions.end * stride / base};
}

RowRange RowWindow::neededRows(RowRange positions) const {
  RowRange own = ownRows(positions);
  if (positions.begin == positions.end)
    return own;
  int64_t first = positions.begin * stride - low;
  int64_t last = (positions.end - 1) * stride - low + reach - 1;
  int64_t begin = std::max<int64_t>(0, divideCeilSigned(first, base));
  int64_t end = std::min(rows, divideFloorSigned(last, base) + 1);
  return {std::min(own.begin, begin), std::max(own.end, end)};
}

int64_t RowWindow::rowsBefore() const {
  return std::max<int64_t>(0, divideFloorSigned(low, base));
}

int64_t RowWindow::rowsAfter() const {
  return std::max<int64_t>(
      0, divideFloorSigned(reach - 1 - stride - low, base) + 1);
}

int64_t RowWindow::lowPadding(RowRange positions, RowRange held) const {
  return held.begin * base - (positions.begin * stride - low);
}

int64_t RowWindow::highPadding(RowRange positions, RowRange held) const {
  int64_t last = (positions.end - 1) * stride - low + reach - 1;
  return last - (held.end - 1) * base;
}

} // namespace whale
