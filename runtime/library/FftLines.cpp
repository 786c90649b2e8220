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
// Eight lines are transformed at once, number by number, so that each operation
// is one on vectors. They are loaded into a block of doubles, transformed
// between two blocks by Stockham's autosort algorithm of mixed radix, and
// stored. A length with a prime factor above 13 is Bluestein's convolution of
// a length without. An inverse transform is the forward one with real and
// imaginary parts exchanged before and after. A real line of even length is
// transformed as a complex one of half the length. No line depends on another
// one. Cost: n log n operations for a line of n numbers, some five times as
// many by Bluestein; each thread has two blocks, 256 n bytes, and fewer than
// eight lines cost as much as eight.
//
//===----------------------------------------------------------------------===//

#include "library/FftLines.h"
#include "device/cpu/Parallel.h"
#include "library/Vectors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

namespace whale::runtime {

static constexpr int64_t lanes = 8;
using Lanes = double __attribute__((vector_size(lanes * sizeof(double))));

struct FftLines::Numbers {
  Lanes re, im;
  friend WHALE_INLINE Numbers operator+(Numbers a, Numbers b) {
    return {a.re + b.re, a.im + b.im};
  }
  friend WHALE_INLINE Numbers operator-(Numbers a, Numbers b) {
    return {a.re - b.re, a.im - b.im};
  }
  friend WHALE_INLINE Numbers operator*(Numbers a, double b) {
    return {a.re * b, a.im * b};
  }
  friend WHALE_INLINE Numbers operator*(Numbers a, Number b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  WHALE_INLINE Numbers timesI() const { return {-im, re}; }
  WHALE_INLINE Numbers overI() const { return {im, -re}; }
  WHALE_INLINE Numbers conjugate() const { return {re, -im}; }
  WHALE_INLINE Numbers exchanged() const { return {im, re}; }
};

namespace {
using Number = FftLines::Number;
using Numbers = FftLines::Numbers;

/// exp(-2 * i * pi * numerator / denominator).
Number root(int64_t numerator, int64_t denominator) {
  double angle = -2.0 * std::numbers::pi * static_cast<double>(numerator) /
                 static_cast<double>(denominator);
  return {std::cos(angle), std::sin(angle)};
}

/// The factors of `length` that have a butterfly; returns what remains.
int64_t factorize(int64_t length, std::vector<int> &radices) {
  radices.clear();
  for (int radix : {4, 2, 3, 5, 7, 11, 13})
    for (; length > 1 && length % radix == 0; length /= radix)
      radices.push_back(radix);
  return length;
}

/// Replaces a[0] to a[radix - 1] by their transform; `unit` has the roots of
/// unity of an odd radix.
template <int radix>
WHALE_INLINE void butterfly(Numbers *a, const Number *unit) {
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
        Number w = unit[j * k % radix];
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
template <int radix>
WHALE_INLINE void step(const Numbers *from, Numbers *to, int64_t count,
                       int64_t stride, const Number *roots) {
  Number unit[radix], w[radix];
  for (int k = 0; k < radix; ++k)
    unit[k] = roots[k * count * stride];
  for (int64_t i = 0; i < count; ++i) {
    for (int k = 1; k < radix; ++k)
      w[k] = roots[i * k * stride];
    for (int64_t j = 0; j < stride; ++j) {
      Numbers a[radix];
      for (int k = 0; k < radix; ++k)
        a[k] = from[(i + count * k) * stride + j];
      butterfly<radix>(a, unit);
      to[i * radix * stride + j] = a[0];
      for (int k = 1; k < radix; ++k)
        to[(i * radix + k) * stride + j] = a[k] * w[k];
    }
  }
}

/// Where the `length` elements of each line of a block are: offsets of the
/// first ones, and the stride between neighbours.
struct Places {
  int64_t offsets[lanes];
  int64_t count, stride, length;

  Places(int64_t first, int64_t count, int64_t stride, int64_t length)
      : count(count), stride(stride), length(length) {
    // Lines that a block lacks are copies of its last.
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t line = first + std::min(lane, count - 1);
      offsets[lane] = line / stride * stride * length + line % stride;
    }
  }
};

/// Elements of one part, real, or of two.
template <typename T, int parts>
WHALE_INLINE void load(const void *data, const Places &places, Numbers *line) {
  const T *from = static_cast<const T *>(data);
  for (int64_t i = 0; i < places.length; ++i)
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const T *element =
          from + parts * (places.offsets[lane] + i * places.stride);
      line[i].re[lane] = element[0];
      line[i].im[lane] = parts == 2 ? element[parts - 1] : T();
    }
}

template <typename T, int parts>
WHALE_INLINE void store(const Numbers *line, const Places &places, void *data) {
  T *to = static_cast<T *>(data);
  for (int64_t i = 0; i < places.length; ++i)
    for (int64_t lane = 0; lane < places.count; ++lane) {
      T *element = to + parts * (places.offsets[lane] + i * places.stride);
      element[0] = static_cast<T>(line[i].re[lane]);
      if (parts == 2)
        element[parts - 1] = static_cast<T>(line[i].im[lane]);
    }
}

WHALE_VECTORS void loadBlock(DType dtype, const void *data,
                             const Places &places, Numbers *line) {
  switch (dtype) {
  case DType::F32:
    return load<float, 1>(data, places, line);
  case DType::F64:
    return load<double, 1>(data, places, line);
  case DType::C64:
    return load<float, 2>(data, places, line);
  default:
    return load<double, 2>(data, places, line);
  }
}

WHALE_VECTORS void storeBlock(DType dtype, const Numbers *line,
                              const Places &places, void *data) {
  switch (dtype) {
  case DType::F32:
    return store<float, 1>(line, places, data);
  case DType::F64:
    return store<double, 1>(line, places, data);
  case DType::C64:
    return store<float, 2>(line, places, data);
  default:
    return store<double, 2>(line, places, data);
  }
}

WHALE_VECTORS void stepBlock(int radix, const Numbers *from, Numbers *to,
                             int64_t count, int64_t stride,
                             const Number *roots) {
  switch (radix) {
  case 2:
    return step<2>(from, to, count, stride, roots);
  case 3:
    return step<3>(from, to, count, stride, roots);
  case 4:
    return step<4>(from, to, count, stride, roots);
  case 5:
    return step<5>(from, to, count, stride, roots);
  case 7:
    return step<7>(from, to, count, stride, roots);
  case 11:
    return step<11>(from, to, count, stride, roots);
  default:
    return step<13>(from, to, count, stride, roots);
  }
}

/// to[i] = from[i] * factors[i].
WHALE_VECTORS void multiplyBlock(const Numbers *from, const Number *factors,
                                 Numbers *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = from[i] * factors[i];
}

WHALE_VECTORS void exchangeBlock(Numbers *line, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    line[i] = line[i].exchanged();
}

/// From the transform of pairs of real numbers, `half` many, to the first
/// half + 1 numbers of that of the real numbers: of the even ones and the odd
/// ones, combined as by a last step of radix 2.
WHALE_VECTORS void splitPairs(Numbers *line, int64_t half,
                              const Number *twist) {
  line[half] = line[0];
  for (int64_t i = 0, j = half; i <= j; ++i, --j) {
    Numbers a = line[i], b = line[j].conjugate();
    Numbers even = (a + b) * 0.5, odd = (a - b).overI() * 0.5 * twist[i];
    line[i] = even + odd;
    line[j] = (even - odd).conjugate();
  }
}

/// The inverse of it, but for a factor of 2.
WHALE_VECTORS void mergePairs(Numbers *line, int64_t half,
                              const Number *twist) {
  for (int64_t i = 0, j = half; i <= j; ++i, --j) {
    Numbers a = line[i], b = line[j].conjugate();
    Numbers even = a + b,
            odd = ((a - b) * Number{twist[i].re, -twist[i].im}).timesI();
    line[i] = even + odd;
    line[j] = (even - odd).conjugate();
  }
}

DType pairOf(DType dtype) {
  return dtype == DType::F32 ? DType::C64 : DType::C128;
}
} // namespace

FftLines::FftLines(int64_t whole, FftKind kind)
    : kind(kind), read(whole), written(whole), length(whole), size(whole) {
  bool fromReal = kind == FftKind::FromReal, toReal = kind == FftKind::ToReal;
  isPaired = (fromReal || toReal) && whole > 0 && whole % 2 == 0;
  if (isPaired)
    read = written = length = size = whole / 2;
  if (fromReal)
    written = whole / 2 + 1;
  if (toReal)
    read = whole / 2 + 1;
  for (int64_t i = 0; isPaired && i <= length / 2; ++i)
    twist.push_back(root(i, whole));
  if (length <= 1)
    return;
  bool isBluestein = factorize(length, radices) > 1;
  if (isBluestein)
    for (size = 2 * length - 1; factorize(size, radices) > 1;)
      ++size;
  for (int64_t i = 0; i < size; ++i)
    roots.push_back(root(i, size));
  if (!isBluestein)
    return;
  // Angles modulo a turn, which are exact for long lines, too.
  for (int64_t i = 0; i < length; ++i)
    chirp.push_back(root(i * i % (2 * length), 2 * length));
  auto block = std::make_unique<Numbers[]>(2 * size);
  for (int64_t i = 0; i < length; ++i) {
    double scale = 1.0 / static_cast<double>(size);
    block[i] = block[(size - i) % size] = {Lanes{} + chirp[i].re * scale,
                                           Lanes{} - chirp[i].im * scale};
  }
  const Numbers *transformed = autosort(block.get(), block.get() + size);
  for (int64_t i = 0; i < size; ++i)
    filter.push_back({transformed[i].re[0], transformed[i].im[0]});
}

/// Transforms `size` numbers; returns which of the two has the result.
Numbers *FftLines::autosort(Numbers *line, Numbers *other) const {
  int64_t count = size, stride = 1;
  for (int radix : radices) {
    count /= radix;
    stepBlock(radix, line, other, count, stride, roots.data());
    stride *= radix;
    std::swap(line, other);
  }
  return line;
}

/// Transforms `length` numbers; returns which of the two has the result.
Numbers *FftLines::transform(Numbers *line, Numbers *other) const {
  if (chirp.empty())
    return autosort(line, other);
  multiplyBlock(line, chirp.data(), other, length);
  std::fill(other + length, other + size, Numbers{});
  Numbers *padded = autosort(other, line);
  multiplyBlock(padded, filter.data(), padded, size);
  exchangeBlock(padded, size);
  padded = autosort(padded, padded == line ? other : line);
  exchangeBlock(padded, length);
  multiplyBlock(padded, chirp.data(), padded, length);
  return padded;
}

/// Makes the input of the complex transform of what was loaded.
void FftLines::prepare(Numbers *line) const {
  if (kind == FftKind::ToReal) {
    // The ends are real; what is missing is the conjugate of what is there.
    line[0].im = Lanes{};
    if (isPaired) {
      line[length].im = Lanes{};
      mergePairs(line, length, twist.data());
    }
    for (int64_t i = read; i < length; ++i)
      line[i] = line[length - i].conjugate();
  }
  if (kind == FftKind::Inverse || kind == FftKind::ToReal)
    exchangeBlock(line, length);
}

/// Makes what is stored of the result of the complex transform.
void FftLines::finish(Numbers *line) const {
  if (kind == FftKind::Inverse || kind == FftKind::ToReal)
    exchangeBlock(line, length);
  if (kind == FftKind::FromReal && isPaired)
    splitPairs(line, length, twist.data());
}

void FftLines::run(DType fromType, const void *from, DType toType, void *to,
                   int64_t outer, int64_t stride, int64_t threads) const {
  if (isPaired)
    (kind == FftKind::FromReal ? fromType : toType) =
        pairOf(kind == FftKind::FromReal ? fromType : toType);
  int64_t lines = outer * stride;
  // One more than the length is read or written where pairs are.
  int64_t room = size + isPaired;
  parallelFor(
      (lines + lanes - 1) / lanes, threads, [&](int64_t begin, int64_t end) {
        auto work = std::make_unique_for_overwrite<Numbers[]>(2 * room);
        for (int64_t block = begin; block < end; ++block) {
          int64_t first = block * lanes, count = std::min(lanes, lines - first);
          loadBlock(fromType, from, {first, count, stride, read}, work.get());
          prepare(work.get());
          Numbers *result = transform(work.get(), work.get() + room);
          finish(result);
          storeBlock(toType, result, {first, count, stride, written}, to);
        }
      });
}

} // namespace whale::runtime
