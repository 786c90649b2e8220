//===- Gemm.cpp - Products of dense matrices --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C = A B of dense row-major matrices, and copies of strided matrices to dense
// ones and back. Products of f32 are oneDNN's, or those of SmallProduct.h.
// Other types, and extents above 32 bits, take blockedGemm, whose bits depend
// neither on its panels nor on the threads. Matrices that are in memory column
// by column are copied by tiles; half precision becomes f32 and back a row or a
// column of a tile at a time.
//
// Cost: m n k multiplications and additions. blockedGemm splits rows over
// threads; a panel of B, 128 by 512, is used for all rows of a thread, so that
// A is read n / 512 times, C k / 128 times, and B once by each thread. A copy
// reads and writes each element once, on all threads from 65536 elements on.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Gemm.h"

#include "device/cpu/Parallel.h"
#include "device/cpu/SmallProduct.h"
#include "library/RowMath.h"
#include "whale/Runtime/Types.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

namespace whale::runtime {

/// Rows of C in blocks over threads, panels of B that stay in cache; each
/// element of C sums over k in ascending order whatever the blocks.
template <typename T>
static void blockedGemm(int64_t m, int64_t n, int64_t k, const T *a, const T *b,
                        T *c, int64_t threads) {
  constexpr int64_t panelK = 128, panelN = 512;
  double work = static_cast<double>(m) * n * k;
  int64_t parts = work < 1e5 ? 1 : threads;
  parallelFor(m, parts, [&](int64_t begin, int64_t end) {
    std::fill(c + begin * n, c + end * n, T());
    for (int64_t n0 = 0; n0 < n; n0 += panelN) {
      int64_t n1 = std::min(n0 + panelN, n);
      for (int64_t k0 = 0; k0 < k; k0 += panelK) {
        int64_t k1 = std::min(k0 + panelK, k);
        for (int64_t i = begin; i < end; ++i)
          for (int64_t p = k0; p < k1; ++p) {
            T factor = a[i * k + p];
            const T *row = b + p * n;
            T *sum = c + i * n;
            for (int64_t j = n0; j < n1; ++j)
              sum[j] += factor * row[j];
          }
      }
    }
  });
}

template <typename T>
void gemm(int64_t m, int64_t n, int64_t k, const T *a, const T *b, T *c,
          int64_t threads) {
  blockedGemm(m, n, k, a, b, c, threads);
}

template <>
void gemm<float>(int64_t m, int64_t n, int64_t k, const float *a,
                 const float *b, float *c, int64_t threads) {
  if (m == 0 || n == 0)
    return;
  if (k == 0) {
    std::fill(c, c + m * n, 0.0f);
    return;
  }
  if (isSmallProduct(m, n, k))
    return SmallProduct{m, n, k, k, 1, n, 1, n}.run(a, b, c);
  // oneDNN computes with 32 bits of the extents.
  if (std::max({m, n, k}) > INT32_MAX)
    return blockedGemm(m, n, k, a, b, c, threads);
  if (dnnl_sgemm('N', 'N', m, n, k, 1.0f, a, k, b, n, 0.0f, c, n) !=
      dnnl_success)
    throw Error("oneDNN could not compute a matrix product");
}

template void gemm<double>(int64_t, int64_t, int64_t, const double *,
                           const double *, double *, int64_t);
template void gemm<uint64_t>(int64_t, int64_t, int64_t, const uint64_t *,
                             const uint64_t *, uint64_t *, int64_t);
template void gemm<std::complex<float>>(int64_t, int64_t, int64_t,
                                        const std::complex<float> *,
                                        const std::complex<float> *,
                                        std::complex<float> *, int64_t);
template void gemm<std::complex<double>>(int64_t, int64_t, int64_t,
                                         const std::complex<double> *,
                                         const std::complex<double> *,
                                         std::complex<double> *, int64_t);

static int64_t partsFor(int64_t elements, int64_t threads) {
  return elements < 65536 ? 1 : threads;
}

/// Calls `move(i, j)` for the elements of rows `begin` to `end`. A matrix that
/// is in memory column by column is gone through in tiles: each line of the
/// cache holds elements of many rows, and few enough are read beside each other
/// that they stay in it, even where they are a power of two apart.
template <typename Move>
static void forElements(int64_t begin, int64_t end, int64_t columns,
                        bool isByColumns, Move move) {
  if (!isByColumns) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < columns; ++j)
        move(i, j);
    return;
  }
  constexpr int64_t rows = 32, width = 8;
  for (int64_t row = begin; row < end; row += rows)
    for (int64_t column = 0; column < columns; column += width) {
      int64_t lastRow = std::min(row + rows, end);
      int64_t lastColumn = std::min(column + width, columns);
      for (int64_t i = row; i < lastRow; ++i)
        for (int64_t j = column; j < lastColumn; ++j)
          move(i, j);
    }
}

/// Whether rows of such elements are converted to and from float in vectors.
template <typename Storage, typename T>
constexpr bool hasRowConversion =
    std::is_same_v<T, float> &&
    (std::is_same_v<Storage, Float16> || std::is_same_v<Storage, BFloat16>);

/// A tile of a matrix that is in memory column by column.
constexpr int64_t kTileRows = 64, kTileColumns = 16;

/// Calls `move(row, rows, column, columns)` for the tiles of some rows.
template <typename Move>
static void forTiles(int64_t begin, int64_t end, int64_t columns, Move move) {
  for (int64_t row = begin; row < end; row += kTileRows)
    for (int64_t column = 0; column < columns; column += kTileColumns)
      move(row, std::min(kTileRows, end - row), column,
           std::min(kTileColumns, columns - column));
}

/// Moves rows `begin` to `end` of a strided matrix to a dense one of floats
/// where the strided one is constant, else the way back. One of its strides
/// is 1.
template <typename Strided, typename Float>
static void moveRows(Strided *strided, int64_t rowStride, int64_t columns,
                     int64_t columnStride, Float *dense, int64_t begin,
                     int64_t end) {
  constexpr bool isPacking = std::is_const_v<Strided>;
  auto convert = [](Strided *stored, auto *floats, int64_t count) {
    if constexpr (isPacking)
      convertRow(stored, floats, count);
    else
      convertRow(floats, stored, count);
  };
  if (columnStride == 1) {
    for (int64_t i = begin; i < end; ++i)
      convert(strided + i * rowStride, dense + i * columns, columns);
    return;
  }
  float tile[kTileColumns][kTileRows];
  forTiles(begin, end, columns,
           [&](int64_t row, int64_t rows, int64_t column, int64_t count) {
             auto convertTile = [&] {
               for (int64_t j = 0; j < count; ++j)
                 convert(strided + row + (column + j) * columnStride, tile[j],
                         rows);
             };
             if constexpr (isPacking)
               convertTile();
             for (int64_t i = 0; i < rows; ++i)
               for (int64_t j = 0; j < count; ++j) {
                 Float &element = dense[(row + i) * columns + column + j];
                 if constexpr (isPacking)
                   element = tile[j][i];
                 else
                   tile[j][i] = element;
               }
             if constexpr (!isPacking)
               convertTile();
           });
}

/// Moves a strided matrix, of elements of `dtype`, to a dense one where `Bytes`
/// is constant, else the way back.
template <typename Bytes, typename Dense>
static void moveMatrix(DType dtype, Bytes *bytes, int64_t rows,
                       int64_t rowStride, int64_t columns, int64_t columnStride,
                       Dense *dense, int64_t threads) {
  using T = std::remove_const_t<Dense>;
  constexpr bool isPacking = std::is_const_v<Bytes>;
  dispatch(dtype, [&]<typename Storage>() {
    if constexpr (!isOpaque<Storage>) {
      auto *strided =
          static_cast<std::conditional_t<isPacking, const Storage, Storage> *>(
              bytes);
      auto moveElement = [&](int64_t i, int64_t j) {
        auto &element = strided[i * rowStride + j * columnStride];
        if constexpr (isPacking)
          dense[i * columns + j] = toProduct<T>(element);
        else
          element = fromProduct<Storage>(dense[i * columns + j]);
      };
      parallelFor(rows, partsFor(rows * columns, threads),
                  [&](int64_t begin, int64_t end) {
                    if constexpr (hasRowConversion<Storage, T>)
                      if (columnStride == 1 || rowStride == 1)
                        return moveRows(strided, rowStride, columns,
                                        columnStride, dense, begin, end);
                    forElements(begin, end, columns,
                                rowStride == 1 && columnStride != 1,
                                moveElement);
                  });
    }
  });
}

template <typename T>
void packMatrix(DType dtype, const void *src, int64_t rows, int64_t rowStride,
                int64_t columns, int64_t columnStride, T *dst,
                int64_t threads) {
  moveMatrix(dtype, src, rows, rowStride, columns, columnStride, dst, threads);
}

template <typename T>
void unpackMatrix(DType dtype, void *dst, int64_t rows, int64_t rowStride,
                  int64_t columns, int64_t columnStride, const T *src,
                  int64_t threads) {
  moveMatrix(dtype, dst, rows, rowStride, columns, columnStride, src, threads);
}

#define INSTANTIATE(...)                                                       \
  template void packMatrix<__VA_ARGS__>(DType, const void *, int64_t, int64_t, \
                                        int64_t, int64_t, __VA_ARGS__ *,       \
                                        int64_t);                              \
  template void unpackMatrix<__VA_ARGS__>(DType, void *, int64_t, int64_t,     \
                                          int64_t, int64_t,                    \
                                          const __VA_ARGS__ *, int64_t);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(uint64_t)
INSTANTIATE(std::complex<float>)
INSTANTIATE(std::complex<double>)
#undef INSTANTIATE

} // namespace whale::runtime
