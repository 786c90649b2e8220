//===- RowMath.h - Loops over rows of numbers -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARY_ROWMATH_H
#define WHALE_RUNTIME_LIBRARY_ROWMATH_H

#include "Numeric.h"

#include <cstdint>

namespace whale::runtime {

/// Loops over `count` neighbouring numbers, in the widest vectors of the
/// processor. Sums have the same order for all widths.

/// The largest, or -inf; what NaN gives is not specified.
float maximumOf(const float *row, int64_t count);

/// Replaces each x by exp(x - shift), to about 2 units in the last place;
/// results below the least normal number are 0. Returns their sum.
float exponentials(float *row, int64_t count, float shift);

void scaleRow(float *row, int64_t count, float factor);

/// The sum of a[i] * b[i].
float dotRows(const float *a, const float *b, int64_t count);

/// Replaces each gradient[i] by p[i] * (gradient[i] - shift) * factor.
void softmaxGradient(const float *p, float *gradient, int64_t count,
                     float shift, float factor);

/// Converts each number to the other type, in another array; to half precision
/// it is rounded to nearest, ties to even.
void convertRow(const BFloat16 *from, float *to, int64_t count);
void convertRow(const float *from, BFloat16 *to, int64_t count);
void convertRow(const Float16 *from, float *to, int64_t count);
void convertRow(const float *from, Float16 *to, int64_t count);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LIBRARY_ROWMATH_H
