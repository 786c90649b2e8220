//===- CholeskyTest.cpp - The library function lapack.potrf ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Factors of small matrices, which are our own, and of one that LAPACK takes:
// their products are the matrices, the other triangle stays, and the first
// minor that is not positive is named.
//
//===----------------------------------------------------------------------===//

#include "device/cpu/Parallel.h"
#include "library/Library.h"
#include "library/Matrices.h"
#include "whale/Runtime/Types.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <mutex>
#include <random>
#include <set>
#include <thread>

using namespace whale::runtime;

namespace {
/// Factors a batch of n by n matrices in column-major order, in place.
template <typename T>
std::vector<int32_t> factorize(char uplo, int64_t batch, int64_t n,
                               std::vector<T> &matrices) {
  DType dtype = sizeof(T) == 4 ? DType::F32 : DType::F64;
  nlohmann::json config;
  config["uplo"] = static_cast<int>(uplo);
  LibraryTensor matrix{dtype, {batch, n, n}};
  std::vector<T> input = matrices;
  std::vector<int32_t> info(batch, -1);
  void *inputs[] = {input.data()};
  void *outputs[] = {matrices.data(), info.data()};
  (*findLibraryFunction("lapack.potrf"))(
      {{matrix}, {matrix, {DType::I32, {batch}}}, config, {}})(inputs, outputs);
  return info;
}

template <typename T>
void check(char uplo, int64_t n) {
  SCOPED_TRACE(testing::Message() << uplo << " " << n);
  constexpr int64_t batch = 3;
  std::mt19937 random(static_cast<unsigned>(n));
  std::uniform_real_distribution<T> draw(-1, 1);
  std::vector<T> matrices(batch * n * n);
  for (int64_t at = 0; at < batch * n * n; ++at)
    matrices[at] = draw(random) + T(at / n % n == at % n ? n + 1 : 0);
  std::vector<T> factors = matrices;
  EXPECT_EQ(factorize(uplo, batch, n, factors), std::vector<int32_t>(batch));
  T limit = 32 * std::numeric_limits<T>::epsilon() * T(n + 1);
  for (int64_t one = 0; one < batch; ++one) {
    // Element (row, column) of the upper factor, or of the lower transposed.
    auto at = [&](const std::vector<T> &all, int64_t row, int64_t column) {
      return all[(one * n + (uplo == 'U' ? column : row)) * n +
                 (uplo == 'U' ? row : column)];
    };
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        if (i > j) {
          EXPECT_EQ(at(factors, i, j), at(matrices, i, j));
          continue;
        }
        T sum = 0;
        for (int64_t k = 0; k <= i; ++k)
          sum += at(factors, k, i) * at(factors, k, j);
        ASSERT_NEAR(sum, at(matrices, i, j), limit) << i << " " << j;
      }
  }
}

TEST(CholeskyTest, FactorsMultiplyToTheMatrix) {
  for (int64_t n : {1, 2, 7, 16, 17, 33, 128, 130})
    for (char uplo : {'U', 'L'}) {
      check<float>(uplo, n);
      check<double>(uplo, n);
    }
}

TEST(CholeskyTest, NamesTheMinorThatIsNotPositive) {
  constexpr int64_t n = 5;
  for (char uplo : {'U', 'L'}) {
    std::vector<float> matrices(4 * n * n);
    for (int64_t one = 0; one < 4; ++one)
      for (int64_t i = 0; i < n; ++i)
        matrices[(one * n + i) * n + i] = 2;
    matrices[n * n + 3 * n + 3] = -1;
    matrices[2 * n * n] = 0;
    matrices[3 * n * n + 4 * n + 4] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(factorize(uplo, 4, n, matrices),
              (std::vector<int32_t>{0, 4, 1, 5}));
  }
}

/// By how many threads of two a batch of n by n matrices is gone through.
size_t threadsOfBatch(int64_t batch, int64_t n) {
  ThreadCount two(2);
  LibraryTensor matrices{DType::F32, {batch, n, n}};
  LibraryRequest request{{matrices}, {matrices}, {}, {}};
  MatrixBatch shape(request, "test");
  shape.input<float>({n, n});
  shape.output<float>({n, n});
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::vector<float> data(batch * n * n);
  void *places[] = {data.data()};
  shape.finish([&](const MatrixCall &) {
    std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  })(places, places);
  return ids.size();
}

TEST(CholeskyTest, OnlyBatchesThatTakeLongAreDividedAmongThreads) {
  EXPECT_EQ(threadsOfBatch(16, 32), 1u);
  EXPECT_EQ(threadsOfBatch(1000, 4), 1u);
  EXPECT_EQ(threadsOfBatch(64, 64), 2u);
  EXPECT_EQ(threadsOfBatch(10000, 4), 2u);
}
} // namespace
