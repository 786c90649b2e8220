//===- RowMath.cpp - Loops over rows of numbers ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "library/RowMath.h"
#include "library/Vectors.h"

#include <bit>
#include <limits>

namespace whale::runtime {

/// Partial results that loops keep, so that vectors up to 64 bytes, two at a
/// time, add in the same order as single numbers do.
static constexpr int64_t lanes = 32;

template <typename Combine>
static WHALE_INLINE float join(float *partial, Combine combine) {
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      partial[i] = combine(partial[i], partial[i + half]);
  return partial[0];
}

static WHALE_INLINE float add(float a, float b) { return a + b; }
static WHALE_INLINE float larger(float a, float b) { return a > b ? a : b; }

/// exp(x) = 2^n * exp(r), with |r| at most half of ln 2; the polynomial is that
/// of Cephes' expf.
static WHALE_INLINE float exponential(float x) {
  constexpr float least = -87.33654f, log2e = 1.44269504f;
  constexpr float ln2High = 0.693359375f, ln2Low = -2.12194440e-4f;
  // Adding it rounds to an integer, which is in the lowest bits then.
  constexpr float rounder = 12582912.0f;
  float bounded = x < least ? least : x;
  bounded = bounded > 88.72283f ? 88.72283f : bounded;
  float shifted = bounded * log2e + rounder;
  float n = shifted - rounder;
  float r = bounded - n * ln2High - n * ln2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  auto exponent = (std::bit_cast<uint32_t>(shifted) + 127u) << 23;
  float result = p * std::bit_cast<float>(exponent);
  return x < least ? 0.0f : result;
}

WHALE_VECTORS float maximumOf(const float *row, int64_t count) {
  float partial[lanes];
  for (float &each : partial)
    each = -std::numeric_limits<float>::infinity();
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane)
      partial[lane] = larger(partial[lane], row[i + lane]);
  for (int64_t lane = 0; i + lane < count; ++lane)
    partial[lane] = larger(partial[lane], row[i + lane]);
  return join(partial, larger);
}

WHALE_VECTORS float exponentials(float *row, int64_t count, float shift) {
  float partial[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane) {
      float value = exponential(row[i + lane] - shift);
      row[i + lane] = value;
      partial[lane] += value;
    }
  for (int64_t lane = 0; i + lane < count; ++lane) {
    float value = exponential(row[i + lane] - shift);
    row[i + lane] = value;
    partial[lane] += value;
  }
  return join(partial, add);
}

WHALE_VECTORS void scaleRow(float *row, int64_t count, float factor) {
  for (int64_t i = 0; i < count; ++i)
    row[i] *= factor;
}

WHALE_VECTORS float dotRows(const float *a, const float *b, int64_t count) {
  float partial[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane)
      partial[lane] += a[i + lane] * b[i + lane];
  for (int64_t lane = 0; i + lane < count; ++lane)
    partial[lane] += a[i + lane] * b[i + lane];
  return join(partial, add);
}

WHALE_VECTORS void softmaxGradient(const float *p, float *gradient,
                                   int64_t count, float shift, float factor) {
  for (int64_t i = 0; i < count; ++i)
    gradient[i] = p[i] * (gradient[i] - shift) * factor;
}

WHALE_VECTORS void convertRow(const BFloat16 *from, float *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = Element<BFloat16>::load(from[i]);
}

WHALE_VECTORS void convertRow(const float *from, BFloat16 *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = Element<BFloat16>::store(from[i]);
}

// The compiler's own type is converted in one instruction where there is one.

WHALE_VECTORS void convertRow(const Float16 *from, float *to, int64_t count) {
  static_assert(sizeof(_Float16) == sizeof(Float16));
  const auto *halves = reinterpret_cast<const _Float16 *>(from);
  for (int64_t i = 0; i < count; ++i)
    to[i] = halves[i];
}

WHALE_VECTORS void convertRow(const float *from, Float16 *to, int64_t count) {
  auto *halves = reinterpret_cast<_Float16 *>(to);
  for (int64_t i = 0; i < count; ++i)
    halves[i] = static_cast<_Float16>(from[i]);
}

} // namespace whale::runtime
