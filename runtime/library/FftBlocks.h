//===- FftBlocks.h - Fourier transforms in vectors --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARY_FFTBLOCKS_H
#define WHALE_RUNTIME_LIBRARY_FFTBLOCKS_H

#include "library/Vectors.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace whale::runtime {

/// How many lines a block has: what fits a vector of 64 bytes.
template <typename T>
constexpr int64_t fftLanes = 64 / sizeof(T);

template <typename T>
struct FftVectorOf;
// GCC ignores the attribute where the type is a template's parameter.
template <>
struct FftVectorOf<float> {
  using Type = float __attribute__((vector_size(64)));
};
template <>
struct FftVectorOf<double> {
  using Type = double __attribute__((vector_size(64)));
};
template <typename T>
using FftVector = typename FftVectorOf<T>::Type;

template <typename T>
struct FftNumber {
  T re, im;
};

/// exp(-2 * i * pi * numerator / denominator).
template <typename T>
FftNumber<T> fftRoot(int64_t numerator, int64_t denominator);

/// One number of each line of a block.
template <typename T>
struct FftNumbers {
  FftVector<T> re, im;
  friend WHALE_INLINE FftNumbers operator+(FftNumbers a, FftNumbers b) {
    return {a.re + b.re, a.im + b.im};
  }
  friend WHALE_INLINE FftNumbers operator-(FftNumbers a, FftNumbers b) {
    return {a.re - b.re, a.im - b.im};
  }
  friend WHALE_INLINE FftNumbers operator*(FftNumbers a, T b) {
    return {a.re * b, a.im * b};
  }
  friend WHALE_INLINE FftNumbers operator*(FftNumbers a, FftNumber<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  WHALE_INLINE FftNumbers timesI() const { return {-im, re}; }
  WHALE_INLINE FftNumbers overI() const { return {im, -re}; }
  WHALE_INLINE FftNumbers conjugate() const { return {re, -im}; }
  WHALE_INLINE FftNumbers exchanged() const { return {im, re}; }
};

/// Memory of the calling thread, aligned to 64 bytes, until the next one that
/// this thread makes is gone. A little is kept for the next call.
class FftWorkspace {
public:
  explicit FftWorkspace(size_t bytes);
  ~FftWorkspace();
  FftWorkspace(const FftWorkspace &) = delete;
  FftWorkspace &operator=(const FftWorkspace &) = delete;

  /// The next `count` elements of type U.
  template <typename U>
  U *take(int64_t count) {
    auto *taken = reinterpret_cast<U *>(next);
    next += paddedBytes<U>(count);
    return taken;
  }
  template <typename U>
  static constexpr size_t paddedBytes(int64_t count) {
    return (static_cast<size_t>(count) * sizeof(U) + 63) / 64 * 64;
  }

private:
  std::byte *data, *next;
  size_t bytes;
};

/// The forward transform of blocks of lines of one length, whose prime factors
/// are at most 13.
template <typename T>
class FftSteps {
public:
  static bool takes(int64_t size);
  explicit FftSteps(int64_t size);

  /// Transforms the lines of a block between two arrays of `size` numbers;
  /// returns which of the two has the result.
  FftNumbers<T> *run(FftNumbers<T> *line, FftNumbers<T> *other) const;

private:
  int64_t size;
  std::vector<int> radices;
  std::vector<FftNumber<T>> roots;
};

/// The forward transform of one line, as that of the columns and then of the
/// rows of a matrix.
template <typename T>
class FftMatrix {
public:
  /// Null for lengths that have no factors for it.
  static std::unique_ptr<FftMatrix> make(int64_t size);

  /// Transforms a line in place. Arrays have `padded()` elements, of which
  /// those behind the line are arbitrary.
  void run(T *re, T *im, int64_t threads) const;
  int64_t padded() const { return rows * columns + fftLanes<T>; }

  /// How many times as long it takes as one of the lines of a full block,
  /// while blocks fit the cache.
  double relativeCost() const;

private:
  FftMatrix(int64_t rows, int64_t columns);
  static double wasteOf(int64_t rows, int64_t columns);
  void runColumns(const T *re, const T *im, T *toRe, T *toIm, int64_t begin,
                  int64_t end) const;
  void runRows(const T *re, const T *im, T *toRe, T *toIm, int64_t begin,
               int64_t end) const;

  int64_t rows, columns, pitch;
  FftSteps<T> alongColumns, alongRows;
  std::vector<T> twistRe, twistIm; // A row has `pitch` elements.
};

/// The lines of a block in memory: where the first elements are, counted in
/// numbers, and how far apart are those of one line.
template <typename T>
struct FftPlaces {
  int64_t offsets[fftLanes<T>];
  int64_t count, stride, length;
  bool areAdjacent; // Each line begins beside the one before it.

  /// Lines that a block lacks are copies of its last.
  FftPlaces(int64_t first, int64_t count, int64_t stride, int64_t length);
};

// Inner loops, for the vectors of each processor. What is loaded and stored is
// real (one part) or complex (two).
#define WHALE_FFT_LOOPS(T)                                                     \
  void fftLoad(int parts, const T *data, const FftPlaces<T> &places,           \
               FftNumbers<T> *line);                                           \
  void fftStore(int parts, const FftNumbers<T> *line,                          \
                const FftPlaces<T> &places, T *data);                          \
  void fftStep(int radix, const FftNumbers<T> *from, FftNumbers<T> *to,        \
               int64_t count, int64_t stride, const FftNumber<T> *roots);      \
  void fftMultiply(const FftNumbers<T> *from, const FftNumber<T> *factors,     \
                   FftNumbers<T> *to, int64_t count);                          \
  void fftExchange(FftNumbers<T> *line, int64_t count);                        \
  void fftSplitPairs(FftNumbers<T> *line, int64_t half,                        \
                     const FftNumber<T> *twist);                               \
  void fftMergePairs(FftNumbers<T> *line, int64_t half,                        \
                     const FftNumber<T> *twist);                               \
  void fftLoadColumns(const T *re, const T *im, int64_t pitch, int64_t count,  \
                      FftNumbers<T> *line);                                    \
  void fftStoreTwisted(const FftNumbers<T> *line, const T *twistRe,            \
                       const T *twistIm, int64_t pitch, int64_t count, T *re,  \
                       T *im);                                                 \
  void fftLoadRows(const T *re, const T *im, int64_t pitch, int64_t rows,      \
                   int64_t count, FftNumbers<T> *line);                        \
  void fftStoreColumns(const FftNumbers<T> *line, int64_t pitch,               \
                       int64_t columns, int64_t count, T *re, T *im);          \
  void fftDeinterleave(const T *from, int64_t count, T *re, T *im);            \
  void fftInterleave(const T *re, const T *im, int64_t count, T *to);          \
  void fftMultiply(T *re, T *im, const FftNumber<T> *factors, int64_t count);  \
  void fftSplitLine(const T *re, const T *im, int64_t half,                    \
                    const FftNumber<T> *twist, T *to);                         \
  void fftMergeLine(const T *from, int64_t half, const FftNumber<T> *twist,    \
                    T *re, T *im);
WHALE_FFT_LOOPS(float)
WHALE_FFT_LOOPS(double)
#undef WHALE_FFT_LOOPS

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LIBRARY_FFTBLOCKS_H
