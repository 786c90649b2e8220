//===- FftLines.cpp - Fourier transforms of many lines --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: lines of real or complex numbers along a dimension. Out: their discrete
// Fourier transforms.
//
// As many lines as fit a vector are a block and are transformed at once; few
// long lines are transformed one by one, each as a matrix (FftBlocks.h has
// both). A length with a prime factor above 13 is Bluestein's convolution of a
// length without. An inverse transform is the forward one with real and
// imaginary parts exchanged before and after. A real line of even length is
// transformed as a complex one of half the length. No line depends on another
// one. Cost: n log n operations for a line of n numbers, some five times as
// many by Bluestein; each thread has two blocks, of 128 n bytes each in float
// and double, and a block that is not full costs as much as a full one.
//
//===----------------------------------------------------------------------===//

#include "library/FftLines.h"
#include "device/cpu/Parallel.h"

#include <algorithm>
#include <utility>

namespace whale::runtime {

template <typename T>
FftPlaces<T>::FftPlaces(int64_t first, int64_t count, int64_t stride,
                        int64_t length)
    : count(count), stride(stride), length(length) {
  for (int64_t lane = 0; lane < fftLanes<T>; ++lane) {
    int64_t line = first + std::min(lane, count - 1);
    offsets[lane] = line / stride * stride * length + line % stride;
  }
  areAdjacent = count > 1 && offsets[count - 1] == offsets[0] + count - 1;
}

/// The length of the complex transform that Bluestein's convolution takes.
template <typename T>
static int64_t convolutionSize(int64_t length) {
  int64_t size = 2 * length - 1;
  while (!FftSteps<T>::takes(size))
    ++size;
  return size;
}

/// Whether lines are transformed as pairs of real numbers.
static bool hasPairs(int64_t whole, FftKind kind) {
  return (kind == FftKind::FromReal || kind == FftKind::ToReal) && whole > 0 &&
         whole % 2 == 0;
}

template <typename T>
FftLines<T>::FftLines(int64_t whole, FftKind kind)
    : kind(kind), isPaired(hasPairs(whole, kind)), read(whole), written(whole),
      length(isPaired ? whole / 2 : whole),
      size(length <= 1 || FftSteps<T>::takes(length)
               ? length
               : convolutionSize<T>(length)),
      steps(size), matrix(FftMatrix<T>::make(size)) {
  if (isPaired)
    read = written = length;
  if (kind == FftKind::FromReal)
    written = whole / 2 + 1;
  if (kind == FftKind::ToReal)
    read = whole / 2 + 1;
  for (int64_t i = 0; isPaired && i <= length; ++i)
    twist.push_back(fftRoot<T>(i, whole));
  if (size == length)
    return;
  // Angles modulo a turn, which are exact for long lines, too.
  for (int64_t i = 0; i < length; ++i)
    chirp.push_back(fftRoot<T>(i * i % (2 * length), 2 * length));
  FftWorkspace work(2 * FftWorkspace::paddedBytes<FftNumbers<T>>(size));
  auto *line = work.take<FftNumbers<T>>(size);
  auto *other = work.take<FftNumbers<T>>(size);
  std::fill(line, line + size, FftNumbers<T>{});
  for (int64_t i = 0; i < length; ++i) {
    T scale = T(1) / static_cast<T>(size);
    line[i] = line[(size - i) % size] = {FftVector<T>{} + chirp[i].re * scale,
                                         FftVector<T>{} - chirp[i].im * scale};
  }
  const FftNumbers<T> *transformed = steps.run(line, other);
  for (int64_t i = 0; i < size; ++i)
    filter.push_back({transformed[i].re[0], transformed[i].im[0]});
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Transforms `length` numbers; returns which of the two has the result.
template <typename T>
FftNumbers<T> *FftLines<T>::transform(FftNumbers<T> *line,
                                      FftNumbers<T> *other) const {
  if (chirp.empty())
    return steps.run(line, other);
  fftMultiply(line, chirp.data(), other, length);
  std::fill(other + length, other + size, FftNumbers<T>{});
  FftNumbers<T> *padded = steps.run(other, line);
  fftMultiply(padded, filter.data(), padded, size);
  fftExchange(padded, size);
  padded = steps.run(padded, padded == line ? other : line);
  fftExchange(padded, length);
  fftMultiply(padded, chirp.data(), padded, length);
  return padded;
}

/// Makes the input of the complex transform of what was loaded.
template <typename T>
void FftLines<T>::prepare(FftNumbers<T> *line) const {
  if (kind == FftKind::ToReal) {
    // The ends are real; what is missing is the conjugate of what is there.
    line[0].im = FftVector<T>{};
    if (isPaired) {
      line[length].im = FftVector<T>{};
      fftMergePairs(line, length, twist.data());
    }
    for (int64_t i = read; i < length; ++i)
      line[i] = line[length - i].conjugate();
  }
  if (kind == FftKind::Inverse || kind == FftKind::ToReal)
    fftExchange(line, length);
}

/// Makes what is stored of the result of the complex transform.
template <typename T>
void FftLines<T>::finish(FftNumbers<T> *line) const {
  if (kind == FftKind::Inverse || kind == FftKind::ToReal)
    fftExchange(line, length);
  if (kind == FftKind::FromReal && isPaired)
    fftSplitPairs(line, length, twist.data());
}

/// Blocks are of lines of one of the `outer` arrays where these have many, and
/// of any neighbours else.
template <typename T>
void FftLines<T>::runBlocks(const T *from, T *to, int64_t outer, int64_t stride,
                            int64_t begin, int64_t end) const {
  int partsFrom = kind == FftKind::FromReal && !isPaired ? 1 : 2;
  int partsTo = kind == FftKind::ToReal && !isPaired ? 1 : 2;
  bool areWhole = stride >= fftLanes<T>;
  int64_t lines = areWhole ? stride : outer * stride;
  int64_t blocks = (lines + fftLanes<T> - 1) / fftLanes<T>;
  // One more than the length is read or written where pairs are.
  int64_t room = size + isPaired;
  FftWorkspace work(2 * FftWorkspace::paddedBytes<FftNumbers<T>>(room));
  auto *line = work.take<FftNumbers<T>>(room);
  auto *other = work.take<FftNumbers<T>>(room);
  for (int64_t block = begin; block < end; ++block) {
    int64_t first = block % blocks * fftLanes<T>;
    int64_t count = std::min(fftLanes<T>, lines - first);
    first += block / blocks * lines;
    fftLoad(partsFrom, from, {first, count, stride, read}, line);
    prepare(line);
    FftNumbers<T> *result = transform(line, other);
    finish(result);
    fftStore(partsTo, result, {first, count, stride, written}, to);
  }
}

//===----------------------------------------------------------------------===//
// Single lines
//===----------------------------------------------------------------------===//

/// Whether to transform lines one by one.
template <typename T>
bool FftLines<T>::dividesLines(int64_t lines, int64_t stride) const {
  if (!matrix || stride != 1)
    return false;
  int64_t blocks = (lines + fftLanes<T> - 1) / fftLanes<T>;
  double asBlocks =
      static_cast<double>(blocks * fftLanes<T>) / static_cast<double>(lines);
  // Two blocks of longer lines do not fit the first cache.
  constexpr int64_t cacheBytes = 40 << 10;
  if (2 * size * int64_t(sizeof(FftNumbers<T>)) > cacheBytes)
    asBlocks *= 1.6;
  return matrix->relativeCost() < asBlocks;
}

/// Transforms a line whose numbers lie side by side.
template <typename T>
void FftLines<T>::runLine(const T *from, T *to, int64_t threads) const {
  int64_t room = std::max(matrix->padded(), length + 1);
  FftWorkspace work(2 * FftWorkspace::paddedBytes<T>(room));
  T *re = work.take<T>(room), *im = work.take<T>(room);
  if (kind == FftKind::ToReal && isPaired) {
    fftMergeLine(from, length, twist.data(), re, im);
  } else if (kind == FftKind::FromReal && !isPaired) {
    std::copy_n(from, length, re);
    std::fill_n(im, length, T());
  } else {
    fftDeinterleave(from, read, re, im);
  }
  if (kind == FftKind::ToReal && !isPaired) {
    im[0] = 0;
    for (int64_t i = read; i < length; ++i) {
      re[i] = re[length - i];
      im[i] = -im[length - i];
    }
  }
  bool isInverse = kind == FftKind::Inverse || kind == FftKind::ToReal;
  if (isInverse)
    std::swap(re, im);
  if (chirp.empty()) {
    matrix->run(re, im, threads);
  } else {
    fftMultiply(re, im, chirp.data(), length);
    std::fill(re + length, re + size, T());
    std::fill(im + length, im + size, T());
    matrix->run(re, im, threads);
    fftMultiply(re, im, filter.data(), size);
    matrix->run(im, re, threads);
    fftMultiply(re, im, chirp.data(), length);
  }
  if (isInverse)
    std::swap(re, im);
  if (kind == FftKind::FromReal && isPaired)
    fftSplitLine(re, im, length, twist.data(), to);
  else if (kind == FftKind::ToReal && !isPaired)
    std::copy_n(re, length, to);
  else
    fftInterleave(re, im, written, to);
}

template <typename T>
void FftLines<T>::run(const T *from, T *to, int64_t outer, int64_t stride,
                      int64_t threads) const {
  if (dividesLines(outer * stride, stride)) {
    int64_t fromSize = kind == FftKind::FromReal && !isPaired ? read : 2 * read;
    int64_t toSize =
        kind == FftKind::ToReal && !isPaired ? written : 2 * written;
    parallelFor(outer, threads, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line)
        runLine(from + line * fromSize, to + line * toSize,
                outer == 1 ? threads : 1);
    });
    return;
  }
  bool areWhole = stride >= fftLanes<T>;
  int64_t lines = areWhole ? stride : outer * stride;
  int64_t blocks = (lines + fftLanes<T> - 1) / fftLanes<T>;
  parallelFor(areWhole ? outer * blocks : blocks, threads,
              [&](int64_t begin, int64_t end) {
                runBlocks(from, to, outer, stride, begin, end);
              });
}

template struct FftPlaces<float>;
template struct FftPlaces<double>;
template class FftLines<float>;
template class FftLines<double>;

} // namespace whale::runtime
