//===- FftLines.h - Fourier transforms of many lines ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARY_FFTLINES_H
#define WHALE_RUNTIME_LIBRARY_FFTLINES_H

#include "whale/Runtime/Types.h"

#include <cstdint>
#include <vector>

namespace whale::runtime {

enum class FftKind : uint8_t { Forward, Inverse, FromReal, ToReal };

/// The transform of lines of one length along one dimension, in double
/// precision, without scaling. Immutable once made.
class FftLines {
public:
  /// `length` counts the numbers of a whole line, at least one. FromReal writes
  /// and ToReal reads the first length / 2 + 1 alone, as the rest are their
  /// conjugates.
  FftLines(int64_t length, FftKind kind);

  /// Transforms `outer` times `stride` lines, whose elements are `stride`
  /// apart (1 for lines of real numbers); `from` may be `to` where the types
  /// agree. Results have the same bits for any number of threads.
  void run(DType fromType, const void *from, DType toType, void *to,
           int64_t outer, int64_t stride, int64_t threads) const;

  /// One number of each line of a block.
  struct Numbers;

  struct Number {
    double re, im;
  };

private:
  void prepare(Numbers *line) const;
  Numbers *autosort(Numbers *line, Numbers *other) const;
  Numbers *transform(Numbers *line, Numbers *other) const;
  void finish(Numbers *line) const;

  FftKind kind;
  /// Two real numbers side by side are taken as one complex number.
  bool isPaired = false;
  int64_t read, written; // Numbers of a line.
  int64_t length, size;  // Of the complex transform, and of Bluestein's.
  std::vector<int> radices;
  std::vector<Number> roots, chirp, filter, twist;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LIBRARY_FFTLINES_H
