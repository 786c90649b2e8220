//===- TriangularSolveTest.cpp - The library function triangular_solve ----===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Solutions, multiplied by the matrix, beside the right-hand sides; by several
// threads, which must not change a bit.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Parallel.h"
#include "library/Library.h"
#include "library/Matrices.h"
#include "whale/Runtime/Types.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <complex>
#include <random>

using namespace whale::runtime;

namespace {
struct Case {
  int64_t batch, size, others;
  bool isLeft, isLower, hasUnitDiagonal;
  const char *operation;
};

template <typename T>
class TriangularSolve : public testing::Test {};
using Types =
    testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(TriangularSolve, Types);

template <typename T>
std::vector<T> randomNumbers(std::mt19937 &random, int64_t count) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> result(count);
  for (T &x : result)
    if constexpr (isComplexType<T>)
      x = T(uniform(random), uniform(random));
    else
      x = T(uniform(random));
  return result;
}

template <typename T>
void check(const Case &c, std::mt19937 &random) {
  std::vector<T> a = randomNumbers<T>(random, c.batch * c.size * c.size);
  std::vector<T> b = randomNumbers<T>(random, c.batch * c.size * c.others);
  // Well conditioned; the diagonal is not read where it is one.
  for (int64_t i = 0; i < c.batch * c.size; ++i)
    for (int64_t j = 0; j < c.size; ++j)
      a[i * c.size + j] *= j == i % c.size ? 0 : T(0.5) / T(c.size);
  for (int64_t i = 0; i < c.batch * c.size; ++i)
    a[i * c.size + i % c.size] = c.hasUnitDiagonal ? T(NAN) : T(1.5);

  LibraryTensor matrix{dtypeOf<T>(), {c.batch, c.size, c.size}};
  LibraryTensor sides{dtypeOf<T>(), {c.batch, c.others, c.size}};
  if (c.isLeft)
    sides.shape = {c.batch, c.size, c.others};
  nlohmann::json config;
  config["left_side"] = c.isLeft;
  config["lower"] = c.isLower;
  config["unit_diagonal"] = c.hasUnitDiagonal;
  config["transpose_a"] = c.operation;
  LibraryFunction function =
      prepareTriangularSolve({{matrix, sides}, {sides}, config, {}});
  std::vector<T> x(b.size()), alone(b.size());
  void *inputs[] = {a.data(), b.data()}, *outputs[] = {x.data()};
  setThreadCount(2);
  function(inputs, outputs);
  setThreadCount(1);
  outputs[0] = alone.data();
  function(inputs, outputs);
  EXPECT_EQ(x, alone);

  auto at = [&](int64_t n, int64_t row, int64_t column) {
    if (*c.operation != 'N')
      std::swap(row, column);
    if (row == column && c.hasUnitDiagonal)
      return std::complex<double>(1);
    if (c.isLower ? row < column : row > column)
      return std::complex<double>(0);
    std::complex<double> value = a[(n * c.size + row) * c.size + column];
    return *c.operation == 'A' ? std::conj(value) : value;
  };
  double worst = 0;
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t i = 0; i < c.size; ++i)
      for (int64_t j = 0; j < c.others; ++j) {
        auto place = [&](int64_t row) {
          return n * c.size * c.others +
                 (c.isLeft ? row * c.others + j : j * c.size + row);
        };
        std::complex<double> sum = 0;
        for (int64_t k = 0; k < c.size; ++k)
          sum += (c.isLeft ? at(n, i, k) : at(n, k, i)) *
                 std::complex<double>(x[place(k)]);
        double error = std::abs(sum - std::complex<double>(b[place(i)]));
        // NaN, too, is a large error.
        worst = error <= worst ? worst : error;
      }
  EXPECT_LE(worst, 16 * std::numeric_limits<Real<T>>::epsilon())
      << c.batch << " " << c.size << " " << c.others << " " << c.isLeft << " "
      << c.isLower << " " << c.hasUnitDiagonal << " " << c.operation;
}

TYPED_TEST(TriangularSolve, SolvesItsSystem) {
  std::mt19937 random(1);
  for (const char *operation : {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"})
    for (int flags = 0; flags < 8; ++flags)
      for (auto [batch, size, others] :
           {std::tuple{1, 1, 1}, std::tuple{3, 5, 1}, std::tuple{1, 7, 45},
            std::tuple{2, 4, 0}, std::tuple{5, 33, 32}, std::tuple{3, 50, 11}})
        check<TypeParam>({batch, size, others, (flags & 1) != 0,
                          (flags & 2) != 0, (flags & 4) != 0, operation},
                         random);
}
} // namespace
