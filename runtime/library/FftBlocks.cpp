//===- FftBlocks.cpp - Fourier transforms in vectors ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a block of lines, one in each lane of vectors, or one long line. Out: the
// transform of each.
//
// A block is transformed between two arrays by Stockham's autosort algorithm of
// mixed radix. A long line is a matrix, row after row: the transform of its
// columns, a factor for each element, and the transform of its rows, whose
// results are read column after column, are its own transform. Columns and rows
// are blocks of lines. Cost: n log n operations for a line of n numbers; those
// of a matrix cost about a third more, but stay in the first cache.
//
//===----------------------------------------------------------------------===//

#include "library/FftBlocks.h"
#include "device/cpu/Parallel.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <numbers>
#include <utility>

namespace whale::runtime {

template <typename T>
FftNumber<T> fftRoot(int64_t numerator, int64_t denominator) {
  double angle = -2.0 * std::numbers::pi * static_cast<double>(numerator) /
                 static_cast<double>(denominator);
  return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
}

//===----------------------------------------------------------------------===//
// FftWorkspace
//===----------------------------------------------------------------------===//

namespace {
/// What a thread keeps: the workspace of short lines.
struct Kept {
  std::byte *data = nullptr;
  size_t bytes = 0;
  ~Kept() { ::operator delete(data, std::align_val_t(64)); }
};
thread_local Kept kept;
constexpr size_t mostKept = size_t(1) << 20;
} // namespace

FftWorkspace::FftWorkspace(size_t wanted) {
  data = std::exchange(kept.data, nullptr);
  bytes = std::exchange(kept.bytes, 0);
  if (bytes < wanted) {
    ::operator delete(data, std::align_val_t(64));
    data = nullptr;
    data =
        static_cast<std::byte *>(::operator new(wanted, std::align_val_t(64)));
    bytes = wanted;
  }
  next = data;
}

FftWorkspace::~FftWorkspace() {
  if (bytes > mostKept || bytes < kept.bytes) {
    ::operator delete(data, std::align_val_t(64));
    return;
  }
  ::operator delete(kept.data, std::align_val_t(64));
  kept.data = data;
  kept.bytes = bytes;
}

//===----------------------------------------------------------------------===//
// FftSteps
//===----------------------------------------------------------------------===//

/// The factors of `size` that have a butterfly; returns what remains.
static int64_t factorize(int64_t size, std::vector<int> &radices) {
  radices.clear();
  for (int radix : {4, 2, 3, 5, 7, 11, 13})
    for (; size > 1 && size % radix == 0; size /= radix)
      radices.push_back(radix);
  return size;
}

template <typename T>
bool FftSteps<T>::takes(int64_t size) {
  std::vector<int> radices;
  return factorize(size, radices) <= 1;
}

template <typename T>
FftSteps<T>::FftSteps(int64_t size) : size(size) {
  factorize(size, radices);
  for (int64_t i = 0; i < size; ++i)
    roots.push_back(fftRoot<T>(i, size));
}

template <typename T>
FftNumbers<T> *FftSteps<T>::run(FftNumbers<T> *line,
                                FftNumbers<T> *other) const {
  int64_t count = size, stride = 1;
  for (int radix : radices) {
    count /= radix;
    fftStep(radix, line, other, count, stride, roots.data());
    stride *= radix;
    std::swap(line, other);
  }
  return line;
}

//===----------------------------------------------------------------------===//
// FftMatrix
//===----------------------------------------------------------------------===//

/// How much of the lanes is used for nothing, at most, as a factor.
template <typename T>
double FftMatrix<T>::wasteOf(int64_t rows, int64_t columns) {
  auto waste = [](int64_t count) {
    int64_t blocks = (count + fftLanes<T> - 1) / fftLanes<T>;
    return static_cast<double>(blocks * fftLanes<T>) /
           static_cast<double>(count);
  };
  return (waste(rows) + waste(columns)) / 2;
}

template <typename T>
std::unique_ptr<FftMatrix<T>> FftMatrix<T>::make(int64_t size) {
  if (size < 64 || !FftSteps<T>::takes(size))
    return nullptr;
  int64_t best = 0;
  double bestWaste = 0;
  for (int64_t rows = 4; rows <= size / 4; ++rows) {
    if (size % rows != 0)
      continue;
    // Far from a square, one of the sides leaves the cache.
    double aspect = std::abs(
        std::log2(static_cast<double>(rows) * static_cast<double>(rows) /
                  static_cast<double>(size)));
    double waste = wasteOf(rows, size / rows) + 0.1 * aspect;
    if (best == 0 || waste < bestWaste) {
      best = rows;
      bestWaste = waste;
    }
  }
  if (best == 0)
    return nullptr;
  return std::unique_ptr<FftMatrix>(new FftMatrix(best, size / best));
}

template <typename T>
FftMatrix<T>::FftMatrix(int64_t rows, int64_t columns)
    : rows(rows), columns(columns),
      pitch((columns + fftLanes<T> - 1) / fftLanes<T> * fftLanes<T>),
      alongColumns(rows), alongRows(columns) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < pitch; ++column) {
      FftNumber<T> twist{};
      if (column < columns)
        twist = fftRoot<T>(row * column, rows * columns);
      twistRe.push_back(twist.re);
      twistIm.push_back(twist.im);
    }
}

template <typename T>
double FftMatrix<T>::relativeCost() const {
  return wasteOf(rows, columns) + 0.35;
}

template <typename T>
void FftMatrix<T>::runColumns(const T *re, const T *im, T *toRe, T *toIm,
                              int64_t begin, int64_t end) const {
  using Numbers = FftNumbers<T>;
  FftWorkspace work(2 * FftWorkspace::paddedBytes<Numbers>(rows));
  auto *line = work.take<Numbers>(rows), *other = work.take<Numbers>(rows);
  for (int64_t block = begin; block < end; ++block) {
    int64_t at = block * fftLanes<T>;
    fftLoadColumns(re + at, im + at, columns, rows, line);
    fftStoreTwisted(alongColumns.run(line, other), twistRe.data() + at,
                    twistIm.data() + at, pitch, rows, toRe + at, toIm + at);
  }
}

template <typename T>
void FftMatrix<T>::runRows(const T *re, const T *im, T *toRe, T *toIm,
                           int64_t begin, int64_t end) const {
  using Numbers = FftNumbers<T>;
  FftWorkspace work(2 * FftWorkspace::paddedBytes<Numbers>(pitch));
  auto *line = work.take<Numbers>(pitch), *other = work.take<Numbers>(pitch);
  for (int64_t block = begin; block < end; ++block) {
    int64_t at = block * fftLanes<T>;
    fftLoadRows(re + at * pitch, im + at * pitch, pitch, rows - at, columns,
                line);
    fftStoreColumns(alongRows.run(line, other), rows, rows - at, columns,
                    toRe + at, toIm + at);
  }
}

template <typename T>
void FftMatrix<T>::run(T *re, T *im, int64_t threads) const {
  FftWorkspace work(2 * FftWorkspace::paddedBytes<T>(rows * pitch));
  T *turnedRe = work.take<T>(rows * pitch);
  T *turnedIm = work.take<T>(rows * pitch);
  parallelFor(pitch / fftLanes<T>, threads, [&](int64_t begin, int64_t end) {
    runColumns(re, im, turnedRe, turnedIm, begin, end);
  });
  parallelFor((rows + fftLanes<T> - 1) / fftLanes<T>, threads,
              [&](int64_t begin, int64_t end) {
                runRows(turnedRe, turnedIm, re, im, begin, end);
              });
}

#define WHALE_FFT_INSTANCES(T)                                                 \
  template FftNumber<T> fftRoot<T>(int64_t, int64_t);                          \
  template class FftSteps<T>;                                                  \
  template class FftMatrix<T>;
WHALE_FFT_INSTANCES(float)
WHALE_FFT_INSTANCES(double)

} // namespace whale::runtime
