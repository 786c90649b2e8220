//===- FftTest.cpp - The library function fft -----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Transforms beside sums in long double; of one dimension by several threads,
// which must not change a bit, and of three.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Parallel.h"
#include "library/Library.h"
#include "whale/Runtime/Types.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <random>

using namespace whale::runtime;

namespace {
using Exact = std::complex<long double>;

/// The transform along a dimension, whose neighbours are `stride` apart.
std::vector<Exact> along(const std::vector<Exact> &data, int64_t length,
                         int64_t stride, bool inverse) {
  std::vector<Exact> roots, result(data.size());
  for (int64_t i = 0; i < length; ++i)
    roots.push_back(std::polar(1.0L, (inverse ? 2 : -2) * i *
                                         std::numbers::pi_v<long double> /
                                         length));
  for (int64_t at = 0; at < static_cast<int64_t>(data.size()); ++at) {
    int64_t i = at / stride % length;
    for (int64_t j = 0; j < length; ++j)
      result[at] += data[at + (j - i) * stride] * roots[i * j % length];
  }
  return result;
}

/// The first length / 2 + 1 numbers of each row.
template <typename T>
std::vector<T> halves(const std::vector<T> &data, int64_t length) {
  std::vector<T> result;
  for (size_t at = 0; at < data.size(); ++at)
    if (static_cast<int64_t>(at) % length <= length / 2)
      result.push_back(data[at]);
  return result;
}

template <typename From, typename To>
std::vector<To> call(const char *type, DType fromType, DType toType,
                     const Shape &shape, size_t rank, std::vector<From> input) {
  Shape half = shape;
  half.back() = half.back() / 2 + 1;
  nlohmann::json config;
  config["type"] = type;
  config["length"] =
      Shape(shape.end() - static_cast<int64_t>(rank), shape.end());
  LibraryTensor from{fromType, std::is_floating_point_v<To> ? half : shape};
  LibraryTensor to{toType, std::is_floating_point_v<From> ? half : shape};
  std::vector<To> output(elementCount(to.shape));
  void *inputs[] = {input.data()}, *outputs[] = {output.data()};
  prepareFft({{from}, {to}, config, {}})(inputs, outputs);
  return output;
}

template <typename To>
void compare(const std::vector<To> &result, const std::vector<Exact> &exact) {
  ASSERT_EQ(result.size(), exact.size());
  // Errors relative to the whole.
  long double norm = 0, error = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    Exact value = exact[i];
    if constexpr (std::is_floating_point_v<To>)
      value = value.real();
    norm += std::norm(value);
    error += std::norm(Exact(result[i]) - value);
  }
  using Part = decltype(std::abs(To()));
  EXPECT_LE(std::sqrt(error),
            8 * std::numeric_limits<Part>::epsilon() * std::sqrt(norm));
}

/// All kinds on an array of `shape`, of its last `rank` dimensions.
template <typename Part>
void check(const Shape &shape, size_t rank) {
  SCOPED_TRACE(testing::PrintToString(shape));
  using Complex = std::complex<Part>;
  DType real = sizeof(Part) == 4 ? DType::F32 : DType::F64;
  DType complex = sizeof(Part) == 4 ? DType::C64 : DType::C128;
  std::mt19937 random(static_cast<unsigned>(shape.back()));
  std::uniform_real_distribution<Part> draw(-1, 1);
  std::vector<Part> reals(elementCount(shape));
  std::vector<Complex> numbers(reals.size());
  for (size_t i = 0; i < reals.size(); ++i) {
    reals[i] = draw(random);
    numbers[i] = {draw(random), draw(random)};
  }
  auto exact = [&](auto input, bool inverse) {
    std::vector<Exact> result(input.begin(), input.end());
    int64_t stride = 1;
    for (size_t dim = shape.size(); dim-- > shape.size() - rank;) {
      result = along(result, shape[dim], stride, inverse);
      stride *= shape[dim];
    }
    return result;
  };
  auto ofReals = exact(reals, false);
  compare(call<Complex, Complex>("FFT", complex, complex, shape, rank, numbers),
          exact(numbers, false));
  compare(
      call<Complex, Complex>("IFFT", complex, complex, shape, rank, numbers),
      exact(numbers, true));
  compare(call<Part, Complex>("RFFT", real, complex, shape, rank, reals),
          halves(ofReals, shape.back()));
  std::vector<Complex> spectrum(ofReals.begin(), ofReals.end());
  std::vector<Exact> scaled(reals.begin(), reals.end());
  int64_t factor = elementCount(std::span(shape).last(rank));
  for (Exact &number : scaled)
    number *= factor;
  compare(call<Complex, Part>("IRFFT", complex, real, shape, rank,
                              halves(spectrum, shape.back())),
          scaled);
}

TEST(FftTest, Lengths) {
  std::vector<int64_t> lengths = {97,  121, 128, 143, 169, 210,  243, 343,
                                  625, 640, 674, 718, 997, 1000, 1021};
  for (int64_t length = 1; length <= 70; ++length)
    lengths.push_back(length);
  for (int64_t length : lengths) {
    int64_t batch = length < 100 ? 11 : 2;
    if (length <= 20)
      check<float>({batch, length}, 1);
    check<double>({batch, length}, 1);
  }
}

/// Blocks that are full and not, lines as matrices, Bluestein's convolution of
/// both, in vectors of twice as many lines as those of doubles.
TEST(FftTest, Floats) {
  for (Shape shape : {Shape{35, 36},
                      {17, 48},
                      {16, 49},
                      {2, 640},
                      {33, 250},
                      {3, 1000},
                      {2, 509},
                      {18, 74}})
    check<float>(shape, 1);
  for (Shape shape : {Shape{2, 20, 16}, {3, 17, 34}, {1, 48, 66}})
    check<float>(shape, 2);
}

TEST(FftTest, Dimensions) {
  for (Shape shape : {Shape{2, 3, 5, 6}, {1, 4, 1, 7}, {3, 17, 3, 34}})
    for (size_t rank : {1, 2, 3})
      check<double>(shape, rank);
}

/// Neither other lines nor the imaginary parts of ends come into a result.
TEST(FftTest, LinesAreIndependent) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  for (int64_t length : {12, 15, 34}) {
    std::vector<double> reals(9 * length, 1.0);
    reals[4 * length + 1] = nan;
    auto spectrum = call<double, std::complex<double>>(
        "RFFT", DType::F64, DType::C128, {9, length}, 1, reals);
    int64_t half = length / 2 + 1;
    for (int64_t i = 0; i < 9 * half; ++i)
      EXPECT_EQ(std::isnan(spectrum[i].real()), i / half == 4);
    std::vector<std::complex<double>> ends(9 * half);
    for (int64_t row = 0; row < 9; ++row) {
      ends[row * half] = {1.0, nan};
      if (length % 2 == 0)
        ends[row * half + half - 1] = {0.0, nan};
    }
    for (double value : call<std::complex<double>, double>(
             "IRFFT", DType::C128, DType::F64, {9, length}, 1, ends))
      EXPECT_NEAR(value, 1.0, 1e-14);
  }
}

TEST(FftTest, ThreadsChangeNoBit) {
  int64_t before = getThreadCount();
  for (Shape shape : {Shape{61, 337}, {3, 77, 80}, {1, 128, 150}}) {
    size_t rank = shape.size() - 1;
    std::vector<float> input(elementCount(shape));
    for (size_t i = 0; i < input.size(); ++i)
      input[i] = std::sin(static_cast<float>(i * i % 1009));
    std::vector<std::vector<std::complex<float>>> results;
    for (int64_t threads : {1, 2, 3, 5}) {
      setThreadCount(threads);
      results.push_back(call<float, std::complex<float>>(
          "RFFT", DType::F32, DType::C64, shape, rank, input));
    }
    setThreadCount(before);
    for (const auto &result : results)
      EXPECT_EQ(result, results[0]);
  }
}
} // namespace
