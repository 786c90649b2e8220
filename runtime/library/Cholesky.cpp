//===- Cholesky.cpp - Factors of small matrices ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a triangle of a symmetric matrix. Out: its Cholesky factor, or which
// leading minor is not positive. A routine of LAPACK calls itself and BLAS so
// often for a small matrix that this takes longer than its factor. Here the
// upper triangle is copied to whole vectors, row after row, and each row is
// subtracted from those below it. Cost: n^3 / 3 multiplications, in vectors of
// 64 bytes; the copy is 4 or 8 bytes for each of n^2 elements.
//
//===----------------------------------------------------------------------===//

#include "library/Lapack.h"
#include "library/Vectors.h"

#include <cmath>
#include <memory>

namespace whale::runtime {

namespace {
constexpr int64_t vectorBytes = 64;
template <typename T>
constexpr int64_t lanes = vectorBytes / sizeof(T);
template <typename T>
using Lanes = T __attribute__((vector_size(vectorBytes)));

/// Replaces the upper triangle of rows of `vectors` vectors by its factor.
/// Elements left of the diagonal mean nothing.
template <typename T>
WHALE_INLINE int64_t factorizeRows(Lanes<T> *rows, int64_t n, int64_t vectors) {
  for (int64_t j = 0; j < n; ++j) {
    Lanes<T> *row = rows + j * vectors;
    const T *elements = reinterpret_cast<const T *>(row);
    if (!(elements[j] > 0))
      return j + 1;
    T root = std::sqrt(elements[j]);
    for (int64_t v = j / lanes<T>; v < vectors; ++v)
      row[v] /= root;
    for (int64_t i = j + 1; i < n; ++i) {
      T factor = elements[i];
      for (int64_t v = i / lanes<T>; v < vectors; ++v)
        rows[i * vectors + v] -= factor * row[v];
    }
  }
  return 0;
}

WHALE_VECTORS int64_t factorize(Lanes<float> *rows, int64_t n,
                                int64_t vectors) {
  return factorizeRows<float>(rows, n, vectors);
}
WHALE_VECTORS int64_t factorize(Lanes<double> *rows, int64_t n,
                                int64_t vectors) {
  return factorizeRows<double>(rows, n, vectors);
}
} // namespace

template <typename T>
Int factorizeSmall(char uplo, int64_t n, T *a) {
  int64_t vectors = (n + lanes<T> - 1) / lanes<T>, pitch = vectors * lanes<T>;
  auto rows = std::make_unique<Lanes<T>[]>(n * vectors);
  T *upper = reinterpret_cast<T *>(rows.get());
  // The triangles of matrices in column-major order.
  bool isUpper = uplo == 'U';
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i; j < n; ++j)
      upper[i * pitch + j] = isUpper ? a[j * n + i] : a[i * n + j];
  int64_t info = factorize(rows.get(), n, vectors);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i; j < n; ++j)
      (isUpper ? a[j * n + i] : a[i * n + j]) = upper[i * pitch + j];
  return static_cast<Int>(info);
}

template Int factorizeSmall(char, int64_t, float *);
template Int factorizeSmall(char, int64_t, double *);

} // namespace whale::runtime
