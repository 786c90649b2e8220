//===- ReduceTest.cpp - Reductions of several buffers -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/Reduce.h"

#include "Numeric.h"

#include <gtest/gtest.h>

using namespace whale::runtime;

namespace {

template <typename T>
std::vector<T> reduced(DType dtype, Reduction reduction, std::vector<T> a,
                       std::vector<T> b) {
  std::vector<T> out(a.size());
  const void *sources[] = {a.data(), b.data()};
  reduce(dtype, reduction, out.data(), sources, static_cast<int64_t>(a.size()));
  return out;
}

TEST(ReduceTest, ReductionsOfSpecialValues) {
  auto max = reduced<float>(DType::F32, Reduction::Max, {NAN, 1, -0.0f, 0.0f},
                            {1, NAN, 0.0f, -0.0f});
  EXPECT_TRUE(std::isnan(max[0]) && std::isnan(max[1]));
  EXPECT_FALSE(std::signbit(max[2]) || std::signbit(max[3]));
  auto min =
      reduced<float>(DType::F32, Reduction::Min, {-0.0f, 0.0f}, {0.0f, -0.0f});
  EXPECT_TRUE(std::signbit(min[0]) && std::signbit(min[1]));
  EXPECT_EQ(
      reduced<uint8_t>(DType::I1, Reduction::Sum, {0, 0, 1, 1}, {0, 1, 0, 1}),
      (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(
      reduced<uint16_t>(DType::UI16, Reduction::Product, {65535}, {65535}),
      (std::vector<uint16_t>{1}));
  EXPECT_EQ(reduced<int32_t>(DType::I32, Reduction::Sum, {INT32_MAX}, {1}),
            (std::vector<int32_t>{INT32_MIN}));
}

TEST(ReduceTest, HalfPrecisionIsRoundedOnce) {
  // 256 + 1 + 1 in bf16 steps stays 256; accumulated in f32 it is 258.
  std::vector<BFloat16> big = {Element<BFloat16>::store(256)};
  std::vector<BFloat16> one = {Element<BFloat16>::store(1)};
  BFloat16 out;
  const void *sources[] = {big.data(), one.data(), one.data()};
  reduce(DType::BF16, Reduction::Sum, &out, sources, 1);
  EXPECT_EQ(Element<BFloat16>::load(out), 258);
}

} // namespace
