//===- SmallProduct.cpp - Products of small matrices ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: two matrices with any strides. Out: their product in a third one. A tile
// of a few rows by one or two vectors of columns stays in registers while up to
// kTerms terms are added to it, one after the other; longer sums are formed in
// parts of so many. Columns of rhs that are no neighbours are copied to a panel
// on the stack first. Of complex numbers a row is two of its parts, each times
// rows of rhs as they are: their sums become one row at the end.
//
// Cost: with AVX-512 about half a cycle for 16 multiply-adds, and some 20
// nanoseconds for a call; a panel reads each element of rhs once more.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/SmallProduct.h"

#include "device/cpu/ViewKernels.h"
#include "library/Vectors.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace whale::runtime {

namespace products {
namespace {
constexpr int64_t kLanes = 16, kTerms = 256, kPanelColumns = 2 * kLanes;
using Vector = float __attribute__((ext_vector_type(kLanes)));
using Numbers = int32_t __attribute__((ext_vector_type(kLanes)));
using Mask = bool __attribute__((ext_vector_type(kLanes)));

/// Part of a product: one of its panels. Strides in floats; `columns` of them,
/// the last vector with those that `mask` says.
struct Panel {
  int64_t rows, terms;
  const float *lhs;
  int64_t mLhs, kLhs;
  const float *rhs;
  int64_t kRhs;
  float *out;
  int64_t mOut;
  Mask mask;
  bool adds;
};

WHALE_INLINE Mask firstLanes(int64_t count) {
  Numbers numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return __builtin_convertvector(numbers < static_cast<int32_t>(count), Mask);
}

/// All of a vector, or the part that `mask` says.
WHALE_INLINE Vector load(const float *from, bool isWhole, Mask mask) {
  if (!isWhole)
    return __builtin_masked_load(mask, from);
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof(vector));
  return vector;
}

WHALE_INLINE void store(Vector vector, float *to, bool isWhole, Mask mask) {
  if (isWhole)
    __builtin_memcpy(to, &vector, sizeof(vector));
  else
    __builtin_masked_store(mask, vector, to);
}

/// The sums of `rows` rows (of complex numbers, of both parts of half as many)
/// with `vectors` vectors of columns.
template <int rows, int vectors, bool isComplex>
WHALE_INLINE void addTile(const Panel &panel, int64_t row) {
  constexpr int parts = isComplex ? 2 : 1;
  const float *lhs = panel.lhs + row / parts * panel.mLhs;
  const float *rhs = panel.rhs;
  Vector sums[rows][vectors];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v)
      sums[r][v] = Vector(0.0f);
  for (int64_t term = 0; term < panel.terms; ++term) {
    Vector factors[vectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v)
      factors[v] = load(rhs + v * kLanes, v + 1 < vectors, panel.mask);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      float element = lhs[r / parts * panel.mLhs + r % parts];
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; ++v)
        sums[r][v] += element * factors[v];
    }
    lhs += panel.kLhs;
    rhs += panel.kRhs;
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; r += parts) {
    float *out = panel.out + (row + r) / parts * panel.mOut;
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v) {
      bool isWhole = v + 1 < vectors;
      Vector sum = sums[r][v];
      if constexpr (isComplex) {
        // (a + ib) * (c + id): b * c and b * d change places, -b * d.
        Vector other =
            __builtin_shufflevector(sums[r + 1][v], sums[r + 1][v], 1, 0, 3, 2,
                                    5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
        Vector signs = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
        sum += other * signs;
      }
      float *to = out + v * kLanes;
      if (panel.adds)
        sum += load(to, isWhole, panel.mask);
      store(sum, to, isWhole, panel.mask);
    }
  }
}

/// Tiles of as many rows as there are registers for.
template <int vectors, bool isComplex>
WHALE_INLINE void addRows(const Panel &panel, bool hasWideVectors) {
  constexpr int wide = vectors == 1 ? 16 : 8;
  int64_t row = 0;
  if (hasWideVectors)
    for (; row + wide <= panel.rows; row += wide)
      addTile<wide, vectors, isComplex>(panel, row);
  if constexpr (vectors == 1)
    if (hasWideVectors && row + 8 <= panel.rows) {
      addTile<8, vectors, isComplex>(panel, row);
      row += 8;
    }
  for (; row + 4 <= panel.rows; row += 4)
    addTile<4, vectors, isComplex>(panel, row);
  for (; row + 2 <= panel.rows; row += 2)
    addTile<2, vectors, isComplex>(panel, row);
  if constexpr (!isComplex)
    if (row < panel.rows)
      addTile<1, vectors, isComplex>(panel, row);
}

/// Elements of one or two floats, which are only moved, and a vector of them.
template <int parts>
using Element = std::conditional_t<parts == 1, float, double>;
template <int parts>
using Line = Element<parts> __attribute__((ext_vector_type(kLanes / parts)));

/// a0 b0 a1 b1 ..., of the lower or the upper halves.
template <typename V, size_t... i>
WHALE_INLINE V zipLow(V a, V b, std::index_sequence<i...>) {
  constexpr size_t n = sizeof...(i);
  return __builtin_shufflevector(a, b, (i % 2 == 0 ? i / 2 : n + i / 2)...);
}
template <typename V, size_t... i>
WHALE_INLINE V zipHigh(V a, V b, std::index_sequence<i...>) {
  constexpr size_t n = sizeof...(i), half = n / 2;
  return __builtin_shufflevector(
      a, b, (i % 2 == 0 ? half + i / 2 : n + half + i / 2)...);
}

/// Writes up to a vector of columns of rhs, whose terms are neighbours, beside
/// each other, with zeros behind them.
template <int parts>
WHALE_INLINE void transposeColumns(const float *rhs, int64_t nRhs,
                                   int64_t columns, int64_t terms, float *to) {
  constexpr int64_t lanes = kLanes / parts;
  using Lanes = std::make_index_sequence<lanes>;
  for (int64_t term = 0; term < terms; term += lanes) {
    int64_t count = std::min(lanes, terms - term);
    Mask mask = firstLanes(count * parts);
    Line<parts> lines[lanes] = {};
    for (int64_t c = 0; c < columns; ++c) {
      Vector line = load(rhs + (c * nRhs + term) * parts, false, mask);
      __builtin_memcpy(&lines[c], &line, sizeof(line));
    }
#pragma clang loop unroll(full)
    for (int round = 1; round < lanes; round *= 2) {
      Line<parts> next[lanes];
#pragma clang loop unroll(full)
      for (int i = 0; i < lanes / 2; ++i) {
        next[2 * i] = zipLow(lines[i], lines[i + lanes / 2], Lanes());
        next[2 * i + 1] = zipHigh(lines[i], lines[i + lanes / 2], Lanes());
      }
#pragma clang loop unroll(full)
      for (int i = 0; i < lanes; ++i)
        lines[i] = next[i];
    }
    for (int64_t i = 0; i < count; ++i)
      __builtin_memcpy(to + (term + i) * kPanelColumns, &lines[i],
                       sizeof(Vector));
  }
}

/// The same of terms that are no neighbours.
void copyColumns(const SmallProduct &op, const float *rhs, int64_t columns,
                 int64_t terms, float *to) {
  int64_t parts = op.isComplex ? 2 : 1;
  for (int64_t term = 0; term < terms; ++term) {
    float *line = to + term * kPanelColumns;
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t part = 0; part < parts; ++part)
        line[c * parts + part] =
            rhs[(term * op.kRhs + c * op.nRhs) * parts + part];
    std::fill(line + columns * parts, line + kLanes, 0.0f);
  }
}

/// Copies the panel's columns of rhs, of which `columns` floats make a row.
WHALE_INLINE void pack(const SmallProduct &op, Panel &panel, int64_t columns,
                       float *to) {
  int64_t parts = op.isComplex ? 2 : 1;
  for (int64_t c = 0; c < columns; c += kLanes) {
    const float *from = panel.rhs + c * op.nRhs;
    int64_t count = std::min(kLanes, columns - c) / parts;
    if (op.kRhs != 1)
      copyColumns(op, from, count, panel.terms, to + c);
    else if (op.isComplex)
      transposeColumns<2>(from, op.nRhs, count, panel.terms, to + c);
    else
      transposeColumns<1>(from, op.nRhs, count, panel.terms, to + c);
  }
  panel.rhs = to;
  panel.kRhs = kPanelColumns;
}

WHALE_VECTORS void multiply(const SmallProduct &op, bool hasWideVectors,
                            const float *lhs, const float *rhs, float *out) {
  alignas(64) float copy[kTerms * kPanelColumns];
  int64_t parts = op.isComplex ? 2 : 1;
  int64_t width = hasWideVectors ? kPanelColumns : kLanes;
  for (int64_t column = 0; column < op.n * parts; column += width)
    for (int64_t term = 0; term < op.k; term += kTerms) {
      int64_t columns = std::min(width, op.n * parts - column);
      Panel panel;
      panel.rows = op.m * parts;
      panel.terms = std::min(kTerms, op.k - term);
      panel.lhs = lhs + term * op.kLhs * parts;
      panel.mLhs = op.mLhs * parts;
      panel.kLhs = op.kLhs * parts;
      panel.rhs = rhs + term * op.kRhs * parts + column * op.nRhs;
      panel.kRhs = op.kRhs * parts;
      panel.out = out + column;
      panel.mOut = op.mOut * parts;
      panel.mask = firstLanes((columns - 1) % kLanes + 1);
      panel.adds = op.adds || term > 0;
      if (op.nRhs != 1 && op.n != 1)
        pack(op, panel, columns, copy);
      if (op.isComplex)
        columns > kLanes ? addRows<2, true>(panel, hasWideVectors)
                         : addRows<1, true>(panel, hasWideVectors);
      else
        columns > kLanes ? addRows<2, false>(panel, hasWideVectors)
                         : addRows<1, false>(panel, hasWideVectors);
    }
}
} // namespace
} // namespace products

void SmallProduct::run(const void *lhs, const void *rhs, void *out) const {
  products::multiply(
      *this, views::hasWideVectors(), static_cast<const float *>(lhs),
      static_cast<const float *>(rhs), static_cast<float *>(out));
}

bool isSmallProduct(int64_t m, int64_t n, int64_t k) {
  constexpr double most = 64 * 64 * 64;
  return static_cast<double>(m) * static_cast<double>(n) *
             static_cast<double>(k) <=
         most;
}

} // namespace whale::runtime
