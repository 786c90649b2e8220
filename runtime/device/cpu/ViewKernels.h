//===- ViewKernels.h - Tiles of products of shifted views -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The innermost loops of convolutions that are computed as products of shifted
// views (ViewConvolution.h): a tile of a few rows by a few vectors of columns
// stays in registers while all terms are added to it. Terms are added one after
// the other, in a fixed order.
//
// Cost: with AVX-512 one multiply-add of 16 elements for each half of a cycle,
// where the operands are in the nearest caches.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CPU_VIEWKERNELS_H
#define WHALE_RUNTIME_DEVICE_CPU_VIEWKERNELS_H

#include "library/Vectors.h"

#include <cstdint>

namespace whale::runtime::views {

/// Elements of a vector: one register with AVX-512, several elsewhere.
constexpr int64_t kLanes = 16;
using Vector = float __attribute__((vector_size(64)));

WHALE_INLINE Vector load(const float *base, int64_t vector) {
  Vector value;
  __builtin_memcpy(&value, base + vector * kLanes, sizeof(value));
  return value;
}
WHALE_INLINE void store(float *base, int64_t vector, Vector value) {
  __builtin_memcpy(base + vector * kLanes, &value, sizeof(value));
}

/// Whether there are enough registers of a whole vector for large tiles.
inline bool hasWideVectors() {
#ifdef __x86_64__
  static const bool wide = __builtin_cpu_supports("avx512f");
  return wide;
#else
  return false;
#endif
}

/// Rows of the next tile of a filter's gradient.
constexpr int64_t rowsOfTile(int64_t rows, int64_t vectors, int64_t most) {
  int64_t large = vectors == 4 ? 6 : vectors == 3 ? 8 : 12;
  if (rows >= large && most > 6)
    return large;
  return rows >= 6 ? 6 : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
}

/// Terms that a tile adds up: of each of `taps`, `length` neighbouring elements
/// of a row (`rows`: for each tap the tile's rows; a null first one skips it)
/// times as many rows of `weights`, which are `width` elements.
struct Terms {
  const float *const *rows;
  const int32_t *taps;
  int64_t count, length;
  const float *weights;
  int64_t tapStride;
};

/// out[row] (= or +=) the sum of the terms.
template <int Rows, int Vectors>
WHALE_INLINE void addTerms(const Terms &terms, float *const *out, bool adds) {
  Vector sums[Rows][Vectors];
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r)
#pragma clang loop unroll(full)
    for (int v = 0; v < Vectors; ++v)
      sums[r][v] = adds ? load(out[r], v) : Vector{};
  for (int64_t t = 0; t < terms.count; ++t) {
    const float *const *from = terms.rows + t * Rows;
    if (!from[0])
      continue;
    const float *row[Rows];
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r)
      row[r] = from[r];
    const float *weights = terms.weights + terms.taps[t] * terms.tapStride;
    for (int64_t i = 0; i < terms.length; ++i) {
      Vector factors[Vectors];
#pragma clang loop unroll(full)
      for (int v = 0; v < Vectors; ++v)
        factors[v] = load(weights, v);
#pragma clang loop unroll(full)
      for (int r = 0; r < Rows; ++r) {
        float element = row[r][i];
#pragma clang loop unroll(full)
        for (int v = 0; v < Vectors; ++v)
          sums[r][v] += element * factors[v];
      }
      weights += Vectors * kLanes;
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r)
#pragma clang loop unroll(full)
    for (int v = 0; v < Vectors; ++v)
      store(out[r], v, sums[r][v]);
}

/// The same where each channel has its own weights: out[row][c] is the sum of
/// rows[row][c] * weights[c].
template <int Rows, int Vectors>
WHALE_INLINE void addTermsByChannel(const Terms &terms, int64_t channel,
                                    float *const *out) {
  Vector sums[Rows][Vectors] = {};
  for (int64_t t = 0; t < terms.count; ++t) {
    const float *const *from = terms.rows + t * Rows;
    if (!from[0])
      continue;
    const float *weights =
        terms.weights + terms.taps[t] * terms.tapStride + channel;
    Vector factors[Vectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < Vectors; ++v)
      factors[v] = load(weights, v);
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r)
#pragma clang loop unroll(full)
      for (int v = 0; v < Vectors; ++v)
        sums[r][v] += load(from[r] + channel, v) * factors[v];
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r)
#pragma clang loop unroll(full)
    for (int v = 0; v < Vectors; ++v)
      store(out[r], v, sums[r][v]);
}

/// Positions of an image and of a gradient whose products are summed: `count`
/// of them, each behind the one before.
struct Stretch {
  int64_t image, gradient, count;
};

/// sums[row][column] (= or +=) the sum over all positions of
/// image[row] * gradient[column].
template <int Rows, int Vectors>
WHALE_INLINE void addRuns(const Stretch *runs, int64_t count,
                          const float *image, int64_t imageStep,
                          const float *gradient, int64_t gradientStep,
                          float *sums, int64_t sumsStride, bool adds) {
  Vector tile[Rows][Vectors];
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r)
#pragma clang loop unroll(full)
    for (int v = 0; v < Vectors; ++v)
      tile[r][v] = adds ? load(sums + r * sumsStride, v) : Vector{};
  for (const Stretch *run = runs; run != runs + count; ++run) {
    const float *left = image + run->image;
    const float *right = gradient + run->gradient;
    for (int64_t i = 0; i < run->count; ++i) {
      Vector factors[Vectors];
#pragma clang loop unroll(full)
      for (int v = 0; v < Vectors; ++v)
        factors[v] = load(right, v);
#pragma clang loop unroll(full)
      for (int r = 0; r < Rows; ++r) {
        float element = left[r];
#pragma clang loop unroll(full)
        for (int v = 0; v < Vectors; ++v)
          tile[r][v] += element * factors[v];
      }
      left += imageStep;
      right += gradientStep;
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r)
#pragma clang loop unroll(full)
    for (int v = 0; v < Vectors; ++v)
      store(sums + r * sumsStride, v, tile[r][v]);
}

/// The same where each channel has its own filter: sums[c] (= or +=) the sum of
/// image[c] * gradient[c].
template <int Vectors>
WHALE_INLINE void addRunsByChannel(const Stretch *runs, int64_t count,
                                   const float *image, int64_t imageStep,
                                   const float *gradient, int64_t gradientStep,
                                   float *sums, bool adds) {
  // Two sums of each, so that one multiply-add needn't wait for the other.
  Vector even[Vectors], odd[Vectors] = {};
#pragma clang loop unroll(full)
  for (int v = 0; v < Vectors; ++v)
    even[v] = adds ? load(sums, v) : Vector{};
  for (const Stretch *run = runs; run != runs + count; ++run) {
    const float *left = image + run->image;
    const float *right = gradient + run->gradient;
    int64_t i = 0;
    for (; i + 2 <= run->count; i += 2) {
#pragma clang loop unroll(full)
      for (int v = 0; v < Vectors; ++v) {
        even[v] += load(left, v) * load(right, v);
        odd[v] += load(left + imageStep, v) * load(right + gradientStep, v);
      }
      left += 2 * imageStep;
      right += 2 * gradientStep;
    }
    if (i < run->count)
#pragma clang loop unroll(full)
      for (int v = 0; v < Vectors; ++v)
        even[v] += load(left, v) * load(right, v);
  }
#pragma clang loop unroll(full)
  for (int v = 0; v < Vectors; ++v)
    store(sums, v, even[v] + odd[v]);
}

} // namespace whale::runtime::views

#endif // WHALE_RUNTIME_DEVICE_CPU_VIEWKERNELS_H
