//===- FftLines.h - Fourier transforms of many lines ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARY_FFTLINES_H
#define WHALE_RUNTIME_LIBRARY_FFTLINES_H

#include "library/FftBlocks.h"

#include <cstdint>
#include <memory>

namespace whale::runtime {

enum class FftKind : uint8_t { Forward, Inverse, FromReal, ToReal };

/// The transform of lines of one length along one dimension, in numbers of type
/// T (float or double), without scaling. Immutable once made.
template <typename T>
class FftLines {
public:
  /// `length` counts the numbers of a whole line, at least one. FromReal writes
  /// and ToReal reads the first length / 2 + 1 alone, as the rest are their
  /// conjugates.
  FftLines(int64_t length, FftKind kind);

  /// Transforms `outer` times `stride` lines, whose elements are `stride`
  /// apart (1 for lines of real numbers), complex ones as pairs; `from` may be
  /// `to` for complex lines. Results have the same bits for any number of
  /// threads.
  void run(const T *from, T *to, int64_t outer, int64_t stride,
           int64_t threads) const;

private:
  bool dividesLines(int64_t lines, int64_t stride) const;
  void runBlocks(const T *from, T *to, int64_t outer, int64_t stride,
                 int64_t begin, int64_t end) const;
  void runLine(const T *from, T *to, int64_t threads) const;
  void prepare(FftNumbers<T> *line) const;
  FftNumbers<T> *transform(FftNumbers<T> *line, FftNumbers<T> *other) const;
  void finish(FftNumbers<T> *line) const;

  FftKind kind;
  /// Two real numbers side by side are taken as one complex number.
  bool isPaired = false;
  int64_t read, written; // Numbers of a line.
  int64_t length, size;  // Of the complex transform, and of Bluestein's.
  FftSteps<T> steps;     // Of `size` numbers.
  /// The same as a matrix, where the size allows.
  std::unique_ptr<FftMatrix<T>> matrix;
  std::vector<FftNumber<T>> chirp, filter, twist;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LIBRARY_FFTLINES_H
