//===- Fft.cpp - Discrete Fourier transforms --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Transforms of one to three dimensions, line by line, computed in double
// precision: powers of two by Stockham's autosort algorithm, other lengths by
// Bluestein's as a convolution of the next power of two. Inverse transforms are
// not scaled. Arrays of a batch are shared out to threads, each of which has
// one in double precision; the lines of a single one are.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Parallel.h"
#include "library/Library.h"
#include "whale/Runtime/Types.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <complex>
#include <cstring>
#include <numbers>

namespace whale::runtime {

namespace {
using Number = std::complex<double>;
using Line = std::vector<Number>;

/// exp(sign * i * pi * numerator / denominator).
Number root(double sign, int64_t numerator, int64_t denominator) {
  return std::polar(1.0, sign * std::numbers::pi *
                             static_cast<double>(numerator) /
                             static_cast<double>(denominator));
}

/// Without the look at infinities that the operator has.
Number times(Number a, Number b) {
  return {a.real() * b.real() - a.imag() * b.imag(),
          a.real() * b.imag() + a.imag() * b.real()};
}

/// A transform of lines of one length, in one direction, without scaling.
class Transform {
public:
  /// What a thread needs for its lines.
  struct Work {
    Line line, other, padded;
  };

  Transform(int64_t length, bool inverse)
      : length(length), sign(inverse ? 1.0 : -1.0) {
    if (length <= 1)
      return;
    isPower = std::has_single_bit(static_cast<uint64_t>(length));
    size = isPower ? length
                   : static_cast<int64_t>(
                         std::bit_ceil(static_cast<uint64_t>(2 * length - 1)));
    for (int64_t i = 0; i < size; ++i)
      roots.push_back(root(-1.0, 2 * i, size));
    if (isPower)
      return;
    // The square may overflow, but not modulo twice the length.
    for (int64_t i = 0; i < length; ++i)
      chirp.push_back(root(sign, (i * i) % (2 * length), length));
    filter.assign(size, 0.0);
    for (int64_t i = 0; i < length; ++i)
      filter[i] = filter[(size - i) % size] = std::conj(chirp[i]);
    Line other;
    power(filter, other, -1.0);
  }

  /// Transforms `work.line`.
  void operator()(Work &work) const {
    Line &line = work.line, &padded = work.padded;
    if (length <= 1)
      return;
    if (isPower) {
      power(line, work.other, sign);
      return;
    }
    padded.assign(size, 0.0);
    for (int64_t i = 0; i < length; ++i)
      padded[i] = times(line[i], chirp[i]);
    power(padded, work.other, -1.0);
    for (int64_t i = 0; i < size; ++i)
      padded[i] = times(padded[i], filter[i]);
    power(padded, work.other, 1.0);
    for (int64_t i = 0; i < length; ++i)
      line[i] = times(padded[i], chirp[i]) / static_cast<double>(size);
  }

private:
  /// Stockham: `size` elements, a power of two.
  void power(Line &line, Line &other, double direction) const {
    other.resize(size);
    for (int64_t half = size / 2, stride = 1; half >= 1;
         half /= 2, stride *= 2) {
      for (int64_t i = 0; i < half; ++i) {
        Number w = roots[i * stride];
        if (direction > 0)
          w = std::conj(w);
        const Number *a = &line[stride * i], *b = &line[stride * (i + half)];
        Number *sum = &other[2 * stride * i], *difference = sum + stride;
        for (int64_t j = 0; j < stride; ++j) {
          sum[j] = a[j] + b[j];
          difference[j] = times(a[j] - b[j], w);
        }
      }
      std::swap(line, other);
    }
  }

  int64_t length, size = 1;
  double sign;
  bool isPower = true;
  Line roots, chirp, filter;
};

/// Complex elements of any precision as doubles, and back.
template <typename T>
Line widen(const void *data, int64_t count) {
  const T *from = static_cast<const T *>(data);
  return Line(from, from + count);
}

template <typename T>
void narrow(const Line &line, void *data) {
  T *to = static_cast<T *>(data);
  for (const Number &number : line) {
    if constexpr (std::is_floating_point_v<T>)
      *to++ = static_cast<T>(number.real());
    else
      *to++ = static_cast<T>(number);
  }
}

Line load(DType dtype, const void *data, int64_t count) {
  switch (dtype) {
  case DType::F32:
    return widen<float>(data, count);
  case DType::F64:
    return widen<double>(data, count);
  case DType::C64:
    return widen<std::complex<float>>(data, count);
  default:
    return widen<std::complex<double>>(data, count);
  }
}

void store(DType dtype, const Line &line, void *data) {
  switch (dtype) {
  case DType::F32:
    return narrow<float>(line, data);
  case DType::F64:
    return narrow<double>(line, data);
  case DType::C64:
    return narrow<std::complex<float>>(line, data);
  default:
    return narrow<std::complex<double>>(line, data);
  }
}

struct Fft {
  enum Kind : uint8_t { Forward, Inverse, FromReal, ToReal } kind;
  DType from, to;
  Shape lengths; // Of the last dimensions of the whole transform.
  int64_t batch, inner;

  int64_t last() const { return lengths.back(); }
  int64_t halfLast() const { return last() / 2 + 1; }

  /// Of each of the lengths.
  std::vector<Transform> transforms;

  /// Transforms dimension `dim` of an array of `shape`, by so many threads.
  void alongDim(Line &data, const Shape &shape, size_t dim,
                int64_t threads) const {
    int64_t length = shape[dim], stride = 1;
    for (size_t d = dim + 1; d < shape.size(); ++d)
      stride *= shape[d];
    if (length == 0 || stride == 0)
      return;
    int64_t lines = static_cast<int64_t>(data.size()) / length;
    parallelFor(lines, threads, [&](int64_t begin, int64_t end) {
      Transform::Work work;
      work.line.resize(length);
      for (int64_t i = begin; i < end; ++i) {
        Number *first = &data[i / stride * stride * length + i % stride];
        for (int64_t j = 0; j < length; ++j)
          work.line[j] = first[j * stride];
        transforms[dim](work);
        for (int64_t j = 0; j < length; ++j)
          first[j * stride] = work.line[j];
      }
    });
  }

  /// Copies rows of one length into rows of another, cut or filled by zeros.
  static Line resizeRows(const Line &data, int64_t fromSize, int64_t toSize) {
    int64_t rows = fromSize ? static_cast<int64_t>(data.size()) / fromSize : 0;
    Line result(rows * toSize);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < std::min(fromSize, toSize); ++i)
        result[row * toSize + i] = data[row * fromSize + i];
    return result;
  }

  Line run(Line data, int64_t threads) const {
    Shape shape = lengths;
    size_t rank = shape.size();
    if (kind == FromReal) {
      alongDim(data, shape, rank - 1, threads);
      data = resizeRows(data, last(), halfLast());
      shape.back() = halfLast();
      for (size_t dim = rank - 1; dim-- > 0;)
        alongDim(data, shape, dim, threads);
      return data;
    }
    if (kind == ToReal)
      shape.back() = halfLast();
    for (size_t dim = 0; dim + 1 < rank; ++dim)
      alongDim(data, shape, dim, threads);
    if (kind == ToReal) {
      data = resizeRows(data, halfLast(), last());
      shape.back() = last();
      // What is missing is the conjugate of what is there; the ends are real.
      for (size_t row = 0; row < data.size(); row += last()) {
        data[row].imag(0);
        if (last() % 2 == 0)
          data[row + last() / 2].imag(0);
        for (int64_t i = halfLast(); i < last(); ++i)
          data[row + i] = std::conj(data[row + last() - i]);
      }
    }
    alongDim(data, shape, rank - 1, threads);
    return data;
  }
};
} // namespace

LibraryFunction prepareFft(const LibraryRequest &request) {
  if (request.inputs.size() != 1 || request.outputs.size() != 1)
    throw Error("fft takes one input and gives one output");
  const auto &input = request.inputs[0], &output = request.outputs[0];
  Fft fft;
  fft.from = input.dtype;
  fft.to = output.dtype;
  const nlohmann::json kind = request.config.value("type", nlohmann::json());
  bool wide = false;
  auto isPair = [&](DType narrowFrom, DType narrowTo, DType wideFrom,
                    DType wideTo) {
    wide = input.dtype == wideFrom && output.dtype == wideTo;
    return wide || (input.dtype == narrowFrom && output.dtype == narrowTo);
  };
  bool good = false;
  if (kind == "FFT" || kind == "IFFT") {
    fft.kind = kind == "FFT" ? Fft::Forward : Fft::Inverse;
    good = isPair(DType::C64, DType::C64, DType::C128, DType::C128);
  } else if (kind == "RFFT") {
    fft.kind = Fft::FromReal;
    good = isPair(DType::F32, DType::C64, DType::F64, DType::C128);
  } else if (kind == "IRFFT") {
    fft.kind = Fft::ToReal;
    good = isPair(DType::C64, DType::F32, DType::C128, DType::F64);
  } else {
    throw Error("config.type must be FFT, IFFT, RFFT or IRFFT");
  }
  if (!good)
    throw Error("fft does not take these element types");

  const nlohmann::json lengths = request.config.value("length", kind);
  if (!lengths.is_array() || lengths.empty() || lengths.size() > 3 ||
      lengths.size() > input.shape.size())
    throw Error("config.length must have one to three extents");
  for (const nlohmann::json &length : lengths) {
    if (!length.is_number_integer() || length.get<int64_t>() < 0 ||
        length.get<int64_t>() > (int64_t(1) << 30))
      throw Error("config.length must hold extents");
    fft.lengths.push_back(length.get<int64_t>());
  }
  size_t outer = input.shape.size() - fft.lengths.size();
  fft.batch = elementCount(std::span(input.shape).first(outer));
  auto expected = [&](bool half) {
    Shape shape(input.shape.begin(), input.shape.begin() + outer);
    shape.insert(shape.end(), fft.lengths.begin(), fft.lengths.end());
    if (half && shape.back() != 0)
      shape.back() = fft.halfLast();
    return shape;
  };
  if (input.shape != expected(fft.kind == Fft::ToReal) ||
      output.shape != expected(fft.kind == Fft::FromReal))
    throw Error("fft: the shapes do not fit config.length");

  int64_t inputSize = elementCount(input.shape);
  int64_t outputSize = elementCount(output.shape);
  bool isInverse = fft.kind == Fft::Inverse || fft.kind == Fft::ToReal;
  for (int64_t length : fft.lengths)
    fft.transforms.emplace_back(length, isInverse);
  return [fft = std::move(fft), inputSize, outputSize](
             std::span<void *const> inputs, std::span<void *const> outputs) {
    if (inputSize == 0 || outputSize == 0) {
      std::memset(outputs[0], 0, outputSize * byteSize(fft.to));
      return;
    }
    int64_t fromSize = inputSize / fft.batch, toSize = outputSize / fft.batch;
    const auto *from = static_cast<const uint8_t *>(inputs[0]);
    auto *to = static_cast<uint8_t *>(outputs[0]);
    // A few lines are transformed sooner than threads are asked.
    constexpr int64_t worthThreads = 1 << 14;
    int64_t threads = inputSize < worthThreads ? 1 : getThreadCount();
    int64_t parts = std::min(threads, fft.batch);
    parallelFor(fft.batch, parts, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        store(fft.to,
              fft.run(load(fft.from, from + i * fromSize * byteSize(fft.from),
                           fromSize),
                      parts > 1 ? 1 : threads),
              to + i * toSize * byteSize(fft.to));
    });
  };
}

} // namespace whale::runtime
