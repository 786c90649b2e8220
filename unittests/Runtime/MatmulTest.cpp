//===- MatmulTest.cpp - Matrix products against loops -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The matrix products of the CPU device, by oneDNN or by loops, compared with a
// plain loop in the test. 1,500 random products have any strides, gaps and
// batches, 17 combinations of types, and extents down to 0; 240 of f32 and c64
// are larger, some too large for loops. Their elements are
// small multiples of a quarter, which sum exactly in any order, so results must
// agree in all bits, and gaps in the output must stay untouched.
//
// Products of i8 with extreme elements must be exact, however many terms there
// are. Large f32 sums have a limit in ulp that adding one term after the other
// would exceed. Random products run twice, as the second run uses what the
// first has prepared.
//
//===----------------------------------------------------------------------===//

#include "Numeric.h"
#include "Products.h"
#include "device/cpu/Gemm.h"
#include "device/cpu/Scratch.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <random>

using namespace whale::runtime;
using namespace whale::runtime::test;

namespace {

using Bytes = std::vector<uint8_t>;

/// Small multiples of a quarter: exact in every float type here, so that sums
/// in any order agree exactly.
Bytes randomElements(std::mt19937 &random, DType dtype, int64_t count) {
  Bytes bytes(count * byteSize(dtype));
  dispatch(dtype, [&]<typename T>() {
    if constexpr (!isOpaque<T>)
      for (int64_t i = 0; i < count; ++i) {
        using Compute = typename Element<T>::Compute;
        float value = isInteger(dtype)
                          ? static_cast<float>(random() % 4)
                          : static_cast<float>(int(random() % 9) - 4) / 4;
        T element = Element<T>::store(static_cast<Compute>(value));
        std::memcpy(&bytes[i * sizeof(T)], &element, sizeof(T));
      }
  });
  return bytes;
}

template <typename T>
T loadProduct(DType dtype, const Bytes &bytes, int64_t index) {
  return dispatch(dtype, [&]<typename Storage>() -> T {
    if constexpr (isOpaque<Storage>) {
      return T();
    } else {
      Storage value;
      std::memcpy(&value, &bytes[index * sizeof(Storage)], sizeof(Storage));
      return toProduct<T>(value);
    }
  });
}

template <typename T>
void storeProduct(DType dtype, Bytes &bytes, int64_t index, T value) {
  dispatch(dtype, [&]<typename Storage>() {
    if constexpr (!isOpaque<Storage>) {
      Storage stored = fromProduct<Storage>(value);
      std::memcpy(&bytes[index * sizeof(Storage)], &stored, sizeof(Storage));
    }
  });
}

void oracle(const Matmul &op, const Bytes &lhs, const Bytes &rhs, Bytes &out) {
  int64_t batches = 1;
  for (const auto &dim : op.batch)
    batches *= dim.size;
  dispatchProduct(op.lhsType, op.rhsType, op.outType, [&]<typename T>() {
    for (int64_t b = 0; b < batches; ++b) {
      int64_t lhsOffset = 0, rhsOffset = 0, outOffset = 0, rest = b;
      for (size_t d = op.batch.size(); d-- > 0;) {
        int64_t i = rest % op.batch[d].size;
        rest /= op.batch[d].size;
        lhsOffset += i * op.batch[d].lhs;
        rhsOffset += i * op.batch[d].rhs;
        outOffset += i * op.batch[d].out;
      }
      for (int64_t m = 0; m < op.m; ++m)
        for (int64_t n = 0; n < op.n; ++n) {
          int64_t place = outOffset + m * op.mOut + n * op.nOut;
          T sum = op.accumulate ? loadProduct<T>(op.outType, out, place) : T();
          for (int64_t k = 0; k < op.k; ++k)
            sum += loadProduct<T>(op.lhsType, lhs,
                                  lhsOffset + m * op.mLhs + k * op.kLhs) *
                   loadProduct<T>(op.rhsType, rhs,
                                  rhsOffset + n * op.nRhs + k * op.kRhs);
          storeProduct<T>(op.outType, out, place, sum);
        }
    }
  });
}

/// Gives random dimensions strides in a random order, with random gaps;
/// returns the elements that the tensor needs.
int64_t randomStrides(std::mt19937 &random,
                      std::vector<std::pair<int64_t, int64_t *>> dims,
                      bool broadcast) {
  std::shuffle(dims.begin(), dims.end(), random);
  int64_t stride = random() % 4 ? 1 : 2;
  int64_t last = 0;
  for (auto &[size, out] : dims) {
    *out = broadcast && random() % 6 == 0 ? 0 : stride;
    if (size == 0)
      return 0;
    last += (size - 1) * *out;
    if (*out)
      stride *= size;
    if (random() % 4 == 0)
      stride += static_cast<int64_t>(random() % 3);
  }
  return last + 1;
}

/// Multiplies random matrices of random strides, with and without what is added
/// to, and compares with the oracle; once more, as it is prepared then.
void multiplyTwice(std::mt19937 &random, Device &device, Matmul &op) {
  op.accumulate = random() % 3 == 0;
  std::vector<std::pair<int64_t, int64_t *>> lhs = {{op.m, &op.mLhs},
                                                    {op.k, &op.kLhs}};
  std::vector<std::pair<int64_t, int64_t *>> rhs = {{op.n, &op.nRhs},
                                                    {op.k, &op.kRhs}};
  std::vector<std::pair<int64_t, int64_t *>> out = {{op.m, &op.mOut},
                                                    {op.n, &op.nOut}};
  for (auto &dim : op.batch) {
    lhs.emplace_back(dim.size, &dim.lhs);
    rhs.emplace_back(dim.size, &dim.rhs);
    out.emplace_back(dim.size, &dim.out);
  }
  Bytes a =
      randomElements(random, op.lhsType, randomStrides(random, lhs, true));
  Bytes b =
      randomElements(random, op.rhsType, randomStrides(random, rhs, true));
  int64_t elements = randomStrides(random, out, false);
  Bytes c(elements * byteSize(op.outType), 0x11);
  if (op.accumulate)
    c = randomElements(random, op.outType, elements);
  Bytes before = c, expected = c;
  oracle(op, a, b, expected);
  for (int time = 0; time < 2; ++time) {
    c = before;
    multiply(device, op, a.data(), b.data(), c.data());
    ASSERT_EQ(c, expected) << time << ": " << op.m << " x " << op.n << " x "
                           << op.k << ", " << name(op.lhsType) << " x "
                           << name(op.rhsType) << " -> " << name(op.outType);
  }
}

TEST(MatmulTest, RandomStridesTypesAndBatches) {
  std::mt19937 random(3);
  const std::array<DType, 3> types[] = {
      {DType::F32, DType::F32, DType::F32},
      {DType::BF16, DType::BF16, DType::BF16},
      {DType::BF16, DType::BF16, DType::F32},
      {DType::F16, DType::F16, DType::F16},
      {DType::F16, DType::F16, DType::F32},
      {DType::F32, DType::F32, DType::BF16},
      {DType::F64, DType::F64, DType::F64},
      {DType::F32, DType::F32, DType::F64},
      {DType::I32, DType::I32, DType::I32},
      {DType::I8, DType::I8, DType::I32},
      {DType::UI8, DType::I8, DType::I16},
      {DType::I64, DType::I64, DType::I64},
      {DType::I1, DType::I1, DType::I1},
      {DType::I4, DType::I4, DType::I4},
      {DType::C64, DType::C64, DType::C64},
      {DType::C128, DType::F32, DType::C128},
      {DType::F8E4M3FN, DType::F8E5M2, DType::F32}};
  auto device = createCpuDevice(2);
  device->attachThread();
  // The device finds prepared instructions by address: they all stay.
  std::deque<Matmul> ops;
  auto size = [&](int64_t most) -> int64_t {
    return random() % 12 == 0 ? random() % 2 : 1 + random() % most;
  };
  for (int round = 0; round < 1500; ++round) {
    Matmul &op = ops.emplace_back();
    auto [lhsType, rhsType, outType] = types[random() % std::size(types)];
    op.lhsType = lhsType;
    op.rhsType = rhsType;
    op.outType = outType;
    op.m = size(9);
    op.n = size(9);
    op.k = size(9);
    for (size_t i = random() % 4; i > 0; --i)
      op.batch.push_back({size(4), 0, 0, 0});
    multiplyTwice(random, *device, op);
    if (HasFatalFailure())
      return;
  }
}

/// Of tiles and panels of all sizes, also by the library.
TEST(MatmulTest, RandomStridesOfLargerMatrices) {
  std::mt19937 random(31);
  for (int64_t threads : {1, 3}) {
    auto device = createCpuDevice(threads);
    device->attachThread();
    std::deque<Matmul> ops;
    for (int round = 0; round < 120; ++round) {
      Matmul &op = ops.emplace_back();
      op.lhsType = op.rhsType = op.outType =
          random() % 3 ? DType::F32 : DType::C64;
      for (int64_t *extent : {&op.m, &op.n, &op.k})
        *extent = 1 + random() % (random() % 3 ? 40 : 100);
      // More terms than are summed at a time.
      if (random() % 8 == 0)
        op.k += 300;
      if (random() % 3 == 0)
        op.batch.push_back({3, 0, 0, 0});
      multiplyTwice(random, *device, op);
      if (HasFatalFailure())
        return;
    }
  }
}

/// More rows and columns than a tile that is converted has.
TEST(MatmulTest, HalfPrecisionByColumns) {
  std::mt19937 random(4);
  auto device = createCpuDevice(2);
  device->attachThread();
  std::deque<Matmul> ops;
  for (DType type : {DType::F16, DType::BF16})
    for (bool isByRows : {false, true}) {
      Matmul &op = ops.emplace_back();
      op.lhsType = op.rhsType = op.outType = type;
      op.m = 70;
      op.n = 20;
      op.k = 33;
      op.mLhs = isByRows ? op.k : 1;
      op.kLhs = isByRows ? 1 : op.m;
      op.kRhs = isByRows ? op.n : 1;
      op.nRhs = isByRows ? 1 : op.k;
      op.mOut = isByRows ? op.n : 1;
      op.nOut = isByRows ? 1 : op.m;
      Bytes a = randomElements(random, type, op.m * op.k);
      Bytes b = randomElements(random, type, op.k * op.n);
      Bytes c(op.m * op.n * byteSize(type)), expected = c;
      oracle(op, a, b, expected);
      multiply(*device, op, a.data(), b.data(), c.data());
      EXPECT_EQ(c, expected) << name(type) << " " << isByRows;
    }
}

TEST(MatmulTest, LargeProductIsCloseAndRepeatable) {
  std::mt19937 random(5);
  Matmul op = {};
  op.lhsType = op.rhsType = op.outType = DType::F32;
  op.m = 150;
  op.n = 130;
  op.k = 300;
  op.mLhs = 300;
  op.kLhs = 1;
  op.kRhs = 130;
  op.nRhs = 1;
  op.mOut = 130;
  op.nOut = 1;
  std::vector<float> a(op.m * op.k), b(op.k * op.n), c(op.m * op.n), d = c;
  std::normal_distribution<float> normal;
  for (float &x : a)
    x = normal(random);
  for (float &x : b)
    x = normal(random);
  auto device = createCpuDevice(2);
  device->attachThread();
  multiply(*device, op, a.data(), b.data(), c.data());
  multiply(*device, op, a.data(), b.data(), d.data());
  EXPECT_EQ(std::memcmp(c.data(), d.data(), c.size() * 4), 0);
  for (int64_t m = 0; m < op.m; m += 7)
    for (int64_t n = 0; n < op.n; n += 11) {
      double sum = 0;
      for (int64_t k = 0; k < op.k; ++k)
        sum += double(a[m * op.k + k]) * b[k * op.n + n];
      EXPECT_NEAR(c[m * op.n + n], sum, 1e-3);
    }
}

/// Dense f32 matrices, rhs row by row or column by column.
Matmul makeDense(int64_t m, int64_t n, int64_t k, bool rows) {
  Matmul op = {};
  op.lhsType = op.rhsType = op.outType = DType::F32;
  op.m = m;
  op.n = n;
  op.k = k;
  op.mLhs = k;
  op.kLhs = 1;
  op.kRhs = rows ? n : 1;
  op.nRhs = rows ? 1 : k;
  op.mOut = n;
  op.nOut = 1;
  return op;
}

// oneDNN computes with 32 bits of them, and divides by what is left.
TEST(MatmulTest, ExtentsOfMoreThan32Bits) {
  Matmul op = makeDense(int64_t(1) << 32, 3, 16, /*rows=*/true);
  whale::format::Product product = op;
  // The operands are packed.
  EXPECT_GE(findScratch({&product, 1}, 1)[0].sum(), op.m * op.k * 4);
}

TEST(MatmulTest, SumsInBlocksAreWhole) {
  std::mt19937 random(7);
  auto device = createCpuDevice(2);
  device->attachThread();
  std::deque<Matmul> ops;
  for (int64_t k : {512, 1100, 4099})
    for (bool rows : {false, true})
      for (bool accumulate : {false, true}) {
        Matmul &op = ops.emplace_back(makeDense(16, 20, k, rows));
        op.accumulate = accumulate;
        op.batch.push_back({2, op.m * k, 0, op.m * op.n});
        Bytes a = randomElements(random, DType::F32, 2 * op.m * k);
        Bytes b = randomElements(random, DType::F32, op.n * k);
        Bytes c = randomElements(random, DType::F32, 2 * op.m * op.n);
        Bytes expected = c;
        oracle(op, a, b, expected);
        multiply(*device, op, a.data(), b.data(), c.data());
        ASSERT_EQ(c, expected) << k << " " << rows << " " << accumulate;
      }
}

/// Of all i8, the extremes above all: sums of two products leave 16 bits, those
/// of a row 24, and in the end 32.
TEST(MatmulTest, BytesAreExact) {
  std::mt19937 random(11);
  auto device = createCpuDevice(2);
  device->attachThread();
  std::deque<Matmul> ops;
  auto elements = [&](int64_t count) {
    Bytes bytes(count);
    for (uint8_t &byte : bytes)
      byte = random() % 3 ? 0x80 + random() % 2 * 0xff : random() % 256;
    return bytes;
  };
  // Around as many terms as oneDNN sums exactly.
  for (int64_t k : {1, 7, 64, 511, 512, 514, 515, 2053, 140000})
    for (bool rows : {false, true})
      for (int kind : {0, 1, 2}) {
        // One of several kernels; it is chosen by the shapes.
        bool accumulate = kind == 1, isBatch = kind == 2;
        Matmul &op = ops.emplace_back(k > 10000 ? makeDense(2, 3, k, rows)
                                                : makeDense(33, 65, k, rows));
        op.lhsType = op.rhsType = DType::I8;
        op.outType = DType::I32;
        op.accumulate = accumulate;
        if (isBatch)
          op.batch.push_back({2, op.m * k, 0, op.m * op.n});
        Bytes a = elements(2 * op.m * k), b = elements(k * op.n);
        // All the same sign.
        std::fill_n(a.begin(), k, 0x80);
        std::fill_n(b.begin(), k, 0x80);
        Bytes c = elements(2 * op.m * op.n * 4), expected = c;
        oracle(op, a, b, expected);
        multiply(*device, op, a.data(), b.data(), c.data());
        ASSERT_EQ(c, expected) << k << " " << rows << " " << kind;
      }
}

TEST(MatmulTest, LongSumsAreExact) {
  // Added one after the other these would be off by 20, 7 and 6 ulp.
  struct Case {
    int64_t m, n, k;
    bool rows;
    double most;
  };
  auto device = createCpuDevice(1);
  device->attachThread();
  std::deque<Matmul> ops;
  for (auto [m, n, k, rows, most] :
       {Case{200, 200, 500, true, 14}, Case{64, 64, 5000, false, 5},
        Case{4, 64, 5000, false, 3}}) {
    Matmul &op = ops.emplace_back(makeDense(m, n, k, rows));
    std::mt19937 random(1);
    std::uniform_real_distribution<float> positive;
    std::vector<float> a(m * k), b(k * n), c(m * n);
    for (std::vector<float> *values : {&a, &b})
      for (float &value : *values)
        value = positive(random);
    multiply(*device, op, a.data(), b.data(), c.data());
    double worst = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t at = 0; at < k; ++at)
          sum += double(a[i * k + at]) * b[at * op.kRhs + j * op.nRhs];
        double ulp = std::exp2(std::floor(std::log2(sum)) - 23);
        worst = std::max(worst, std::abs(c[i * n + j] - sum) / ulp);
      }
    EXPECT_LT(worst, most) << m << " x " << k << " by " << n;
  }
}

} // namespace
