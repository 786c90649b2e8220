//===- NumericTest.cpp - Arithmetic on every element type -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Numeric.h"

#include <gtest/gtest.h>

using namespace whale::format;

namespace {

TEST(NumericTest, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::C128); ++i) {
    auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parseDType(name(dtype)), dtype);
  }
  EXPECT_FALSE(parseDType("float32"));
  EXPECT_EQ(byteSize(DType::I4), 1);
  EXPECT_EQ(byteSize(DType::C64), 8);
}

/// Every value of an 8-bit type survives decoding and encoding, and a float
/// between two neighbours goes to the nearer one.
template <typename T>
void checkFloat8() {
  std::vector<float> values;
  for (int bits = 0; bits < 256; ++bits) {
    float value = T::decode(static_cast<uint8_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(T::decode(T::encode(value))));
      continue;
    }
    EXPECT_EQ(T::encode(value), bits) << value;
    if (std::isfinite(value))
      values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  for (size_t i = 1; i < values.size(); ++i) {
    float a = values[i - 1], b = values[i];
    if (a == b)
      continue;
    EXPECT_EQ(T::decode(T::encode(a + 0.49f * (b - a))), a);
    EXPECT_EQ(T::decode(T::encode(a + 0.51f * (b - a))), b);
    EXPECT_EQ(T::encode((a + b) / 2) & 1, 0) << a << " " << b;
  }
}

TEST(NumericTest, Float8RoundsToNearestEven) {
  checkFloat8<Float8<3, 4, 3, Specials::IEEE>>();
  checkFloat8<Float8<4, 3, 7, Specials::IEEE>>();
  checkFloat8<Float8<4, 3, 7, Specials::FN>>();
  checkFloat8<Float8<4, 3, 8, Specials::FNUZ>>();
  checkFloat8<Float8<4, 3, 11, Specials::FNUZ>>();
  checkFloat8<Float8<5, 2, 15, Specials::IEEE>>();
  checkFloat8<Float8<5, 2, 16, Specials::FNUZ>>();
}

TEST(NumericTest, KnownLimits) {
  using E4M3FN = Float8<4, 3, 7, Specials::FN>;
  EXPECT_EQ(E4M3FN::decode(0x7e), 448.0f);
  EXPECT_EQ(E4M3FN::encode(448.0f), 0x7e);
  EXPECT_TRUE(std::isnan(E4M3FN::decode(E4M3FN::encode(1e6f))));
  using E5M2 = Float8<5, 2, 15, Specials::IEEE>;
  EXPECT_EQ(E5M2::decode(0x7b), 57344.0f);
  EXPECT_EQ(E5M2::encode(1e9f), 0x7c);
  using FNUZ = Float8<4, 3, 8, Specials::FNUZ>;
  EXPECT_EQ(FNUZ::decode(0x7f), 240.0f);
  EXPECT_EQ(FNUZ::encode(-0.0f), 0);
}

TEST(NumericTest, BFloat16Rounds) {
  auto round = [](float value) {
    return Element<BFloat16>::load(Element<BFloat16>::store(value));
  };
  EXPECT_EQ(round(1.0f), 1.0f);
  EXPECT_EQ(round(1.00390625f), 1.0f);      // halfway, to even
  EXPECT_EQ(round(1.01171875f), 1.015625f); // halfway, to even
  EXPECT_TRUE(std::isnan(round(NAN)));
  EXPECT_TRUE(std::isinf(round(INFINITY)));
}

TEST(NumericTest, SmallIntegersWrap) {
  using I4 = SmallInt<4, true>;
  EXPECT_EQ(Element<I4>::load(Element<I4>::store(7)), 7);
  EXPECT_EQ(Element<I4>::load(Element<I4>::store(8)), -8);
  EXPECT_EQ(Element<I4>::store(-1).bits, 0xff);
  using UI2 = SmallInt<2, false>;
  EXPECT_EQ(Element<UI2>::load(Element<UI2>::store(5)), 1u);
}

} // namespace
