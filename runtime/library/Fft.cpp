//===- Fft.cpp - Discrete Fourier transforms --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an array of real or complex numbers. Out: its discrete Fourier transforms
// of the last one to three dimensions, in double precision; inverse transforms
// are not scaled. Dimension by dimension, lines are transformed (FftLines.h). A
// transform of one dimension goes from the input straight to the output;
// between dimensions, an array of the batch is in double precision. Arrays of a
// batch are shared out to threads; the blocks of lines of a single one are.
//
// Cost: n log n operations for each line of n numbers along each dimension,
// with one pass over the data for each. With several dimensions 16 bytes are
// allocated for each number of the arrays that are transformed at once.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Parallel.h"
#include "library/FftLines.h"
#include "library/Library.h"
#include "whale/Runtime/Types.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <complex>
#include <cstring>

namespace whale::runtime {

namespace {
struct Fft {
  FftKind kind;
  DType from, to;
  Shape lengths; // Of the last dimensions of the whole transform.
  int64_t batch;

  int64_t last() const { return lengths.back(); }
  int64_t halfLast() const { return last() / 2 + 1; }

  /// Of each of the lengths.
  std::vector<FftLines> transforms;

  /// Transforms `count` arrays by so many threads.
  void run(const void *input, void *output, int64_t count,
           int64_t threads) const {
    // The last dimension is halved where it is real on one side, and is then
    // transformed while the others are whole lines of complex numbers.
    Shape shape = lengths;
    if (kind == FftKind::FromReal || kind == FftKind::ToReal)
      shape.back() = halfLast();
    std::vector<size_t> order;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      order.push_back(kind == FftKind::FromReal ? shape.size() - 1 - dim : dim);
    std::vector<std::complex<double>> between(
        order.size() > 1 ? count * elementCount(shape) : 0);
    for (size_t i = 0; i < order.size(); ++i) {
      auto dims = std::span(shape);
      bool isFirst = i == 0, isLast = i + 1 == order.size();
      transforms[order[i]].run(
          isFirst ? from : DType::C128, isFirst ? input : between.data(),
          isLast ? to : DType::C128, isLast ? output : between.data(),
          count * elementCount(dims.first(order[i])),
          elementCount(dims.subspan(order[i] + 1)), threads);
    }
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

  int64_t inputSize = elementCount(input.shape);
  int64_t outputSize = elementCount(output.shape);
  // Along the other dimensions, numbers are complex.
  bool isForward =
      fft.kind == FftKind::Forward || fft.kind == FftKind::FromReal;
  for (size_t dim = 0; dim < fft.lengths.size(); ++dim)
    fft.transforms.emplace_back(fft.lengths[dim],
                                dim + 1 == fft.lengths.size() ? fft.kind
                                : isForward ? FftKind::Forward
                                            : FftKind::Inverse);
  return [fft = std::move(fft), inputSize, outputSize](
             std::span<void *const> inputs, std::span<void *const> outputs) {
    if (inputSize == 0 || outputSize == 0) {
      std::memset(outputs[0], 0, outputSize * byteSize(fft.to));
      return;
    }
    // A few lines are transformed sooner than threads are asked.
    constexpr int64_t worthThreads = 1 << 14;
    int64_t threads = inputSize < worthThreads ? 1 : getThreadCount();
    if (fft.lengths.size() == 1) {
      fft.run(inputs[0], outputs[0], fft.batch, threads);
      return;
    }
    int64_t fromBytes = inputSize / fft.batch * byteSize(fft.from);
    int64_t toBytes = outputSize / fft.batch * byteSize(fft.to);
    const auto *from = static_cast<const uint8_t *>(inputs[0]);
    auto *to = static_cast<uint8_t *>(outputs[0]);
    int64_t parts = std::min(threads, fft.batch);
    parallelFor(fft.batch, parts, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        fft.run(from + i * fromBytes, to + i * toBytes, 1,
                parts > 1 ? 1 : threads);
    });
  };
}

} // namespace whale::runtime
