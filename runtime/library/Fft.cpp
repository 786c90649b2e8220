//===- Fft.cpp - Discrete Fourier transforms --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an array of real or complex numbers. Out: its discrete Fourier transforms
// of the last one to three dimensions, in the numbers' own precision; inverse
// transforms are not scaled. Dimension by dimension, lines are transformed
// (FftLines.h); between dimensions, complex numbers are in the output, or apart
// where that is real. Arrays of a batch are shared out to threads; the blocks
// of lines of a single one are.
//
// Cost: n log n operations for each line of n numbers along each dimension,
// with one pass over the data for each. For an array with several dimensions
// that becomes real, its complex numbers are allocated by each thread.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Parallel.h"
#include "library/FftLines.h"
#include "library/Library.h"
#include "whale/Runtime/Types.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

namespace whale::runtime {

namespace {
/// What a transform's description says.
struct FftShape {
  FftKind kind;
  Shape lengths; // Of the last dimensions of the whole transform.
  int64_t batch;
  int64_t inputSize, outputSize; // Elements of an array.

  int64_t last() const { return lengths.back(); }
  int64_t halfLast() const { return last() / 2 + 1; }
};

template <typename T>
class Fft {
public:
  explicit Fft(FftShape description) : shape(std::move(description)) {
    // Along the other dimensions, numbers are complex.
    bool isForward =
        shape.kind == FftKind::Forward || shape.kind == FftKind::FromReal;
    for (size_t dim = 0; dim < shape.lengths.size(); ++dim)
      transforms.push_back(std::make_shared<FftLines<T>>(
          shape.lengths[dim], dim + 1 == shape.lengths.size() ? shape.kind
                              : isForward                     ? FftKind::Forward
                                          : FftKind::Inverse));
  }

  /// Transforms the batch.
  void run(const T *input, T *output) const {
    // Memory is read and written for some powers of two of the size at a time.
    constexpr double powersAtOnce = 4;
    double elements = static_cast<double>(shape.inputSize);
    double bytes = static_cast<double>(shape.batch) * elements * 2 * sizeof(T);
    int64_t threads = threadsFor(
        bytes * (1 + std::log2(elements + 1) / powersAtOnce), getThreadCount());
    if (shape.lengths.size() == 1)
      return runArrays(input, output, shape.batch, threads);
    int64_t fromSize =
        shape.inputSize * (shape.kind == FftKind::FromReal ? 1 : 2);
    int64_t toSize = shape.outputSize * (shape.kind == FftKind::ToReal ? 1 : 2);
    int64_t parts = std::min(threads, shape.batch);
    parallelFor(shape.batch, parts, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        runArrays(input + i * fromSize, output + i * toSize, 1,
                  parts > 1 ? 1 : threads);
    });
  }

private:
  /// Transforms `count` arrays by so many threads.
  void runArrays(const T *input, T *output, int64_t count,
                 int64_t threads) const {
    // The last dimension is halved where it is real on one side, and is then
    // transformed while the others are whole lines of complex numbers.
    Shape dims = shape.lengths;
    if (shape.kind == FftKind::FromReal || shape.kind == FftKind::ToReal)
      dims.back() = shape.halfLast();
    std::vector<size_t> order;
    for (size_t dim = 0; dim < dims.size(); ++dim)
      order.push_back(shape.kind == FftKind::FromReal ? dims.size() - 1 - dim
                                                      : dim);
    std::unique_ptr<T[]> apart;
    T *between = output;
    if (shape.kind == FftKind::ToReal && order.size() > 1) {
      apart =
          std::make_unique_for_overwrite<T[]>(2 * count * elementCount(dims));
      between = apart.get();
    }
    for (size_t i = 0; i < order.size(); ++i) {
      auto extents = std::span(dims);
      transforms[order[i]]->run(
          i == 0 ? input : between, i + 1 == order.size() ? output : between,
          count * elementCount(extents.first(order[i])),
          elementCount(extents.subspan(order[i] + 1)), threads);
    }
  }

  FftShape shape;
  /// Of each of the lengths.
  std::vector<std::shared_ptr<const FftLines<T>>> transforms;
};

template <typename T>
LibraryFunction makeFft(FftShape shape) {
  return [fft = Fft<T>(std::move(shape))](std::span<void *const> inputs,
                                          std::span<void *const> outputs) {
    fft.run(static_cast<const T *>(inputs[0]), static_cast<T *>(outputs[0]));
  };
}
} // namespace

LibraryFunction prepareFft(const LibraryRequest &request) {
  if (request.inputs.size() != 1 || request.outputs.size() != 1)
    throw Error("fft takes one input and gives one output");
  const auto &input = request.inputs[0], &output = request.outputs[0];
  FftShape fft;
  const nlohmann::json kind = request.config.value("type", nlohmann::json());
  bool wide = false;
  auto isPair = [&](DType narrowFrom, DType narrowTo, DType wideFrom,
                    DType wideTo) {
    wide = input.dtype == wideFrom && output.dtype == wideTo;
    return wide || (input.dtype == narrowFrom && output.dtype == narrowTo);
  };
  bool good = false;
  if (kind == "FFT" || kind == "IFFT") {
    fft.kind = kind == "FFT" ? FftKind::Forward : FftKind::Inverse;
    good = isPair(DType::C64, DType::C64, DType::C128, DType::C128);
  } else if (kind == "RFFT") {
    fft.kind = FftKind::FromReal;
    good = isPair(DType::F32, DType::C64, DType::F64, DType::C128);
  } else if (kind == "IRFFT") {
    fft.kind = FftKind::ToReal;
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
  if (input.shape != expected(fft.kind == FftKind::ToReal) ||
      output.shape != expected(fft.kind == FftKind::FromReal))
    throw Error("fft: the shapes do not fit config.length");

  int64_t outputBytes = elementCount(output.shape) * byteSize(output.dtype);
  if (elementCount(input.shape) == 0 || outputBytes == 0)
    return
        [outputBytes](std::span<void *const>, std::span<void *const> outputs) {
          std::memset(outputs[0], 0, outputBytes);
        };
  fft.inputSize = elementCount(input.shape) / fft.batch;
  fft.outputSize = elementCount(output.shape) / fft.batch;
  return wide ? makeFft<double>(std::move(fft))
              : makeFft<float>(std::move(fft));
}

} // namespace whale::runtime
