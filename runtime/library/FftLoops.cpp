//===- FftLoops.cpp - Inner loops of Fourier transforms -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: lines in memory, or blocks of them, number by number with one line in
// each lane of the vectors. Out: the same loaded, stored, or one step further.
// Each loop exists for float and double and is compiled for each kind of
// processor. Where the elements of a line lie side by side, a square of as many
// numbers as lines is transposed in registers; where those of different lines
// do, they are a vector as they are. Cost: a few vector operations for each
// vector of numbers.
//
//===----------------------------------------------------------------------===//

#include "library/FftBlocks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace whale::runtime {

namespace {
template <typename T>
using Vector = FftVector<T>;

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

template <typename T>
WHALE_INLINE Vector<T> loadVector(const T *from) {
  Vector<T> vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}

template <typename T>
WHALE_INLINE void storeVector(Vector<T> vector, T *to) {
  std::memcpy(to, &vector, sizeof(vector));
}

/// a0 b0 a1 b1 ..., of the lower or the upper halves.
template <typename V, size_t... i>
WHALE_INLINE V zipLow(V a, V b, std::index_sequence<i...>) {
  return __builtin_shufflevector(
      a, b, (i % 2 == 0 ? i / 2 : sizeof...(i) + i / 2)...);
}
template <typename V, size_t... i>
WHALE_INLINE V zipHigh(V a, V b, std::index_sequence<i...>) {
  constexpr size_t n = sizeof...(i), half = n / 2;
  return __builtin_shufflevector(
      a, b, (i % 2 == 0 ? half + i / 2 : n + half + i / 2)...);
}
/// Each second element of both, from element `first` on.
template <size_t first, typename V, size_t... i>
WHALE_INLINE V unzip(V a, V b, std::index_sequence<i...>) {
  return __builtin_shufflevector(a, b, (2 * i + first)...);
}

template <typename T>
using Indices = std::make_index_sequence<fftLanes<T>>;

/// Transposes a square: each round moves the first bit of the number of a row
/// and a column behind its last.
template <typename T>
WHALE_INLINE void transpose(Vector<T> *rows) {
  constexpr int n = fftLanes<T>;
#pragma clang loop unroll(full)
  for (int round = 1; round < n; round *= 2) {
    Vector<T> next[n];
#pragma clang loop unroll(full)
    for (int i = 0; i < n / 2; ++i) {
      next[2 * i] = zipLow(rows[i], rows[i + n / 2], Indices<T>());
      next[2 * i + 1] = zipHigh(rows[i], rows[i + n / 2], Indices<T>());
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < n; ++i)
      rows[i] = next[i];
  }
}

//===----------------------------------------------------------------------===//
// Lines in memory
//===----------------------------------------------------------------------===//

/// A vector of numbers that lie side by side.
template <typename T, int parts>
WHALE_INLINE FftNumbers<T> loadNumbers(const T *from) {
  Vector<T> first = loadVector(from);
  if constexpr (parts == 1)
    return {first, Vector<T>{}};
  Vector<T> second = loadVector(from + (parts - 1) * fftLanes<T>);
  return {unzip<0>(first, second, Indices<T>()),
          unzip<1>(first, second, Indices<T>())};
}

template <typename T, int parts>
WHALE_INLINE void storeNumbers(FftNumbers<T> numbers, T *to) {
  if constexpr (parts == 1)
    return storeVector(numbers.re, to);
  storeVector(zipLow(numbers.re, numbers.im, Indices<T>()), to);
  storeVector(zipHigh(numbers.re, numbers.im, Indices<T>()),
              to + (parts - 1) * fftLanes<T>);
}

template <typename T, int parts>
WHALE_INLINE void load(const T *data, const FftPlaces<T> &places,
                       FftNumbers<T> *line) {
  constexpr int64_t lanes = fftLanes<T>;
  int64_t i = 0;
  if (places.areAdjacent) {
    T copy[parts * lanes] = {};
    for (; i < places.length; ++i) {
      const T *from = data + parts * (places.offsets[0] + i * places.stride);
      if (places.count < lanes) {
        for (int64_t lane = 0; lane < parts * places.count; ++lane)
          copy[lane] = from[lane];
        from = copy;
      }
      line[i] = loadNumbers<T, parts>(from);
    }
    return;
  }
  if (places.stride == 1)
    for (; i + lanes <= places.length; i += lanes) {
      Vector<T> re[lanes], im[lanes];
      for (int64_t lane = 0; lane < lanes; ++lane) {
        FftNumbers<T> numbers =
            loadNumbers<T, parts>(data + parts * (places.offsets[lane] + i));
        re[lane] = numbers.re;
        im[lane] = numbers.im;
      }
      transpose<T>(re);
      if constexpr (parts == 2)
        transpose<T>(im);
      for (int64_t lane = 0; lane < lanes; ++lane)
        line[i + lane] = {re[lane], im[lane]};
    }
  for (; i < places.length; ++i)
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const T *from = data + parts * (places.offsets[lane] + i * places.stride);
      line[i].re[lane] = from[0];
      line[i].im[lane] = parts == 2 ? from[parts - 1] : T();
    }
}

template <typename T, int parts>
WHALE_INLINE void store(const FftNumbers<T> *line, const FftPlaces<T> &places,
                        T *data) {
  constexpr int64_t lanes = fftLanes<T>;
  int64_t i = 0;
  if (places.areAdjacent) {
    T copy[parts * lanes];
    for (; i < places.length; ++i) {
      T *to = data + parts * (places.offsets[0] + i * places.stride);
      if (places.count == lanes) {
        storeNumbers<T, parts>(line[i], to);
        continue;
      }
      storeNumbers<T, parts>(line[i], copy);
      for (int64_t lane = 0; lane < parts * places.count; ++lane)
        to[lane] = copy[lane];
    }
    return;
  }
  if (places.stride == 1)
    for (; i + lanes <= places.length; i += lanes) {
      Vector<T> re[lanes], im[lanes];
      for (int64_t lane = 0; lane < lanes; ++lane) {
        re[lane] = line[i + lane].re;
        im[lane] = line[i + lane].im;
      }
      transpose<T>(re);
      if constexpr (parts == 2)
        transpose<T>(im);
      // Copies of the last line are written to its place again.
      for (int64_t lane = 0; lane < lanes; ++lane)
        storeNumbers<T, parts>({re[lane], im[lane]},
                               data + parts * (places.offsets[lane] + i));
    }
  for (; i < places.length; ++i)
    for (int64_t lane = 0; lane < places.count; ++lane) {
      T *to = data + parts * (places.offsets[lane] + i * places.stride);
      to[0] = line[i].re[lane];
      if (parts == 2)
        to[parts - 1] = line[i].im[lane];
    }
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Replaces a[0] to a[radix - 1] by their transform; `unit` has the roots of
/// unity of an odd radix.
template <typename T, int radix>
WHALE_INLINE void butterfly(FftNumbers<T> *a, const FftNumber<T> *unit) {
  using Numbers = FftNumbers<T>;
  if constexpr (radix == 2) {
    Numbers first = a[0];
    a[0] = first + a[1];
    a[1] = first - a[1];
  } else if constexpr (radix == 4) {
    Numbers evenSum = a[0] + a[2], even = a[0] - a[2];
    Numbers oddSum = a[1] + a[3], odd = (a[1] - a[3]).overI();
    a[0] = evenSum + oddSum;
    a[1] = even + odd;
    a[2] = evenSum - oddSum;
    a[3] = even - odd;
  } else {
    Numbers first = a[0];
    for (int k = 1; k <= radix / 2; ++k) {
      Numbers sum = a[k] + a[radix - k];
      a[radix - k] = a[k] - a[radix - k];
      a[k] = sum;
      a[0] = a[0] + sum;
    }
    std::array<Numbers, radix> result;
    for (int j = 1; j <= radix / 2; ++j) {
      Numbers even = first, odd = {};
      for (int k = 1; k <= radix / 2; ++k) {
        FftNumber<T> w = unit[j * k % radix];
        even = even + a[k] * w.re;
        odd = odd + a[radix - k] * w.im;
      }
      result[j] = even + odd.timesI();
      result[radix - j] = even - odd.timesI();
    }
    for (int j = 1; j < radix; ++j)
      a[j] = result[j];
  }
}

/// One step of Stockham's algorithm, which transforms `count` times `stride`
/// tuples of numbers; `roots` are those of the whole length.
template <typename T, int radix>
WHALE_INLINE void step(const FftNumbers<T> *from, FftNumbers<T> *to,
                       int64_t count, int64_t stride,
                       const FftNumber<T> *roots) {
  FftNumber<T> unit[radix], w[radix];
  for (int k = 0; k < radix; ++k)
    unit[k] = roots[k * count * stride];
  FftNumbers<T> a[radix];
  // The first tuples are multiplied with ones.
  for (int64_t j = 0; j < stride; ++j) {
    for (int k = 0; k < radix; ++k)
      a[k] = from[count * k * stride + j];
    butterfly<T, radix>(a, unit);
    for (int k = 0; k < radix; ++k)
      to[k * stride + j] = a[k];
  }
  for (int64_t i = 1; i < count; ++i) {
    for (int k = 1; k < radix; ++k)
      w[k] = roots[i * k * stride];
    for (int64_t j = 0; j < stride; ++j) {
      for (int k = 0; k < radix; ++k)
        a[k] = from[(i + count * k) * stride + j];
      butterfly<T, radix>(a, unit);
      to[i * radix * stride + j] = a[0];
      for (int k = 1; k < radix; ++k)
        to[(i * radix + k) * stride + j] = a[k] * w[k];
    }
  }
}

template <typename T>
WHALE_INLINE void stepAny(int radix, const FftNumbers<T> *from,
                          FftNumbers<T> *to, int64_t count, int64_t stride,
                          const FftNumber<T> *roots) {
  switch (radix) {
  case 2:
    return step<T, 2>(from, to, count, stride, roots);
  case 3:
    return step<T, 3>(from, to, count, stride, roots);
  case 4:
    return step<T, 4>(from, to, count, stride, roots);
  case 5:
    return step<T, 5>(from, to, count, stride, roots);
  case 7:
    return step<T, 7>(from, to, count, stride, roots);
  case 11:
    return step<T, 11>(from, to, count, stride, roots);
  default:
    return step<T, 13>(from, to, count, stride, roots);
  }
}

//===----------------------------------------------------------------------===//
// Pairs of real numbers
//===----------------------------------------------------------------------===//

template <typename T>
WHALE_INLINE void splitPairs(FftNumbers<T> *line, int64_t half,
                             const FftNumber<T> *twist) {
  line[half] = line[0];
  for (int64_t i = 0, j = half; i <= j; ++i, --j) {
    FftNumbers<T> a = line[i], b = line[j].conjugate();
    FftNumbers<T> even = (a + b) * T(0.5);
    FftNumbers<T> odd = (a - b).overI() * T(0.5) * twist[i];
    line[i] = even + odd;
    line[j] = (even - odd).conjugate();
  }
}

template <typename T>
WHALE_INLINE void mergePairs(FftNumbers<T> *line, int64_t half,
                             const FftNumber<T> *twist) {
  for (int64_t i = 0, j = half; i <= j; ++i, --j) {
    FftNumbers<T> a = line[i], b = line[j].conjugate();
    FftNumbers<T> even = a + b;
    FftNumbers<T> odd =
        ((a - b) * FftNumber<T>{twist[i].re, -twist[i].im}).timesI();
    line[i] = even + odd;
    line[j] = (even - odd).conjugate();
  }
}

// The same of one line, each number by itself, so that loops become vectors.

template <typename T>
WHALE_INLINE void splitLine(const T *__restrict re, const T *__restrict im,
                            int64_t half, const FftNumber<T> *__restrict twist,
                            T *__restrict to) {
  // The ends are real.
  to[0] = re[0] + im[0];
  to[1] = 0;
  to[2 * half] = re[0] - im[0];
  to[2 * half + 1] = 0;
  for (int64_t i = 1; i < half; ++i) {
    T aRe = re[i], aIm = im[i], bRe = re[half - i], bIm = -im[half - i];
    T overRe = (aIm - bIm) / 2, overIm = (bRe - aRe) / 2;
    T oddRe = overRe * twist[i].re - overIm * twist[i].im;
    T oddIm = overRe * twist[i].im + overIm * twist[i].re;
    to[2 * i] = (aRe + bRe) / 2 + oddRe;
    to[2 * i + 1] = (aIm + bIm) / 2 + oddIm;
  }
}

template <typename T>
WHALE_INLINE void mergeLine(const T *__restrict from, int64_t half,
                            const FftNumber<T> *__restrict twist,
                            T *__restrict re, T *__restrict im) {
  re[0] = from[0] + from[2 * half];
  im[0] = from[0] - from[2 * half];
  for (int64_t i = 1; i < half; ++i) {
    T aRe = from[2 * i], aIm = from[2 * i + 1];
    T bRe = from[2 * (half - i)], bIm = -from[2 * (half - i) + 1];
    T lessRe = aRe - bRe, lessIm = aIm - bIm;
    re[i] = aRe + bRe + lessRe * twist[i].im - lessIm * twist[i].re;
    im[i] = aIm + bIm + lessRe * twist[i].re + lessIm * twist[i].im;
  }
}

//===----------------------------------------------------------------------===//
// A line as a matrix
//===----------------------------------------------------------------------===//

template <typename T>
WHALE_INLINE void loadColumns(const T *re, const T *im, int64_t pitch,
                              int64_t count, FftNumbers<T> *line) {
  for (int64_t i = 0; i < count; ++i)
    line[i] = {loadVector(re + i * pitch), loadVector(im + i * pitch)};
}

template <typename T>
WHALE_INLINE void storeTwisted(const FftNumbers<T> *line, const T *twistRe,
                               const T *twistIm, int64_t pitch, int64_t count,
                               T *re, T *im) {
  for (int64_t i = 0; i < count; ++i) {
    Vector<T> wRe = loadVector(twistRe + i * pitch);
    Vector<T> wIm = loadVector(twistIm + i * pitch);
    FftNumbers<T> a = line[i];
    storeVector(a.re * wRe - a.im * wIm, re + i * pitch);
    storeVector(a.re * wIm + a.im * wRe, im + i * pitch);
  }
}

template <typename T>
WHALE_INLINE void loadRows(const T *re, const T *im, int64_t pitch,
                           int64_t rows, int64_t count, FftNumbers<T> *line) {
  constexpr int64_t lanes = fftLanes<T>;
  for (int64_t i = 0; i < count; i += lanes) {
    Vector<T> partRe[lanes], partIm[lanes];
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t from = std::min(lane, rows - 1) * pitch + i;
      partRe[lane] = loadVector(re + from);
      partIm[lane] = loadVector(im + from);
    }
    transpose<T>(partRe);
    transpose<T>(partIm);
    for (int64_t lane = 0; lane < lanes; ++lane)
      line[i + lane] = {partRe[lane], partIm[lane]};
  }
}

template <typename T>
WHALE_INLINE void storeColumns(const FftNumbers<T> *line, int64_t pitch,
                               int64_t columns, int64_t count, T *re, T *im) {
  for (int64_t i = 0; i < count; ++i) {
    if (columns >= fftLanes<T>) {
      storeVector(line[i].re, re + i * pitch);
      storeVector(line[i].im, im + i * pitch);
      continue;
    }
    for (int64_t lane = 0; lane < columns; ++lane) {
      re[i * pitch + lane] = line[i].re[lane];
      im[i * pitch + lane] = line[i].im[lane];
    }
  }
}
} // namespace

#define WHALE_FFT_LOOPS(T)                                                     \
  WHALE_VECTORS void fftLoad(int parts, const T *data,                         \
                             const FftPlaces<T> &places,                       \
                             FftNumbers<T> *line) {                            \
    parts == 2 ? load<T, 2>(data, places, line)                                \
               : load<T, 1>(data, places, line);                               \
  }                                                                            \
  WHALE_VECTORS void fftStore(int parts, const FftNumbers<T> *line,            \
                              const FftPlaces<T> &places, T *data) {           \
    parts == 2 ? store<T, 2>(line, places, data)                               \
               : store<T, 1>(line, places, data);                              \
  }                                                                            \
  WHALE_VECTORS void fftStep(int radix, const FftNumbers<T> *from,             \
                             FftNumbers<T> *to, int64_t count, int64_t stride, \
                             const FftNumber<T> *roots) {                      \
    stepAny<T>(radix, from, to, count, stride, roots);                         \
  }                                                                            \
  WHALE_VECTORS void fftMultiply(const FftNumbers<T> *from,                    \
                                 const FftNumber<T> *factors,                  \
                                 FftNumbers<T> *to, int64_t count) {           \
    for (int64_t i = 0; i < count; ++i)                                        \
      to[i] = from[i] * factors[i];                                            \
  }                                                                            \
  WHALE_VECTORS void fftExchange(FftNumbers<T> *line, int64_t count) {         \
    for (int64_t i = 0; i < count; ++i)                                        \
      line[i] = line[i].exchanged();                                           \
  }                                                                            \
  WHALE_VECTORS void fftSplitPairs(FftNumbers<T> *line, int64_t half,          \
                                   const FftNumber<T> *twist) {                \
    splitPairs<T>(line, half, twist);                                          \
  }                                                                            \
  WHALE_VECTORS void fftMergePairs(FftNumbers<T> *line, int64_t half,          \
                                   const FftNumber<T> *twist) {                \
    mergePairs<T>(line, half, twist);                                          \
  }                                                                            \
  WHALE_VECTORS void fftLoadColumns(const T *re, const T *im, int64_t pitch,   \
                                    int64_t count, FftNumbers<T> *line) {      \
    loadColumns<T>(re, im, pitch, count, line);                                \
  }                                                                            \
  WHALE_VECTORS void fftStoreTwisted(                                          \
      const FftNumbers<T> *line, const T *twistRe, const T *twistIm,           \
      int64_t pitch, int64_t count, T *re, T *im) {                            \
    storeTwisted<T>(line, twistRe, twistIm, pitch, count, re, im);             \
  }                                                                            \
  WHALE_VECTORS void fftLoadRows(const T *re, const T *im, int64_t pitch,      \
                                 int64_t rows, int64_t count,                  \
                                 FftNumbers<T> *line) {                        \
    loadRows<T>(re, im, pitch, rows, count, line);                             \
  }                                                                            \
  WHALE_VECTORS void fftStoreColumns(const FftNumbers<T> *line, int64_t pitch, \
                                     int64_t columns, int64_t count, T *re,    \
                                     T *im) {                                  \
    storeColumns<T>(line, pitch, columns, count, re, im);                      \
  }                                                                            \
  WHALE_VECTORS void fftDeinterleave(const T *from, int64_t count,             \
                                     T *__restrict re, T *__restrict im) {     \
    for (int64_t i = 0; i < count; ++i) {                                      \
      re[i] = from[2 * i];                                                     \
      im[i] = from[2 * i + 1];                                                 \
    }                                                                          \
  }                                                                            \
  WHALE_VECTORS void fftInterleave(const T *re, const T *im, int64_t count,    \
                                   T *__restrict to) {                         \
    for (int64_t i = 0; i < count; ++i) {                                      \
      to[2 * i] = re[i];                                                       \
      to[2 * i + 1] = im[i];                                                   \
    }                                                                          \
  }                                                                            \
  WHALE_VECTORS void fftMultiply(T *__restrict re, T *__restrict im,           \
                                 const FftNumber<T> *factors, int64_t count) { \
    for (int64_t i = 0; i < count; ++i) {                                      \
      T oldRe = re[i], oldIm = im[i];                                          \
      re[i] = oldRe * factors[i].re - oldIm * factors[i].im;                   \
      im[i] = oldRe * factors[i].im + oldIm * factors[i].re;                   \
    }                                                                          \
  }                                                                            \
  WHALE_VECTORS void fftSplitLine(const T *re, const T *im, int64_t half,      \
                                  const FftNumber<T> *twist, T *to) {          \
    splitLine<T>(re, im, half, twist, to);                                     \
  }                                                                            \
  WHALE_VECTORS void fftMergeLine(const T *from, int64_t half,                 \
                                  const FftNumber<T> *twist, T *re, T *im) {   \
    mergeLine<T>(from, half, twist, re, im);                                   \
  }
WHALE_FFT_LOOPS(float)
WHALE_FFT_LOOPS(double)

} // namespace whale::runtime
