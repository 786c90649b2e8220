//===- Numeric.h - Arithmetic on every element type -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines one C++ type for each DType, the type in which it computes, and the
// conversions between them. Half precision and f8 compute in float and round to
// nearest even when stored; integers below one byte wrap when stored.
// Header-only, so that loops over elements are inlined and vectorized.
//
// Cost: a conversion of bf16, i1 or a small integer is a few operations without
// branches; one of f16 is the compiler's. One of f8 branches and calls
// functions of the mathematics library (ldexp; ilogb and nearbyint to store).
// `dispatch` is one switch at run time, and compiles its function for each of
// the 30 types.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_NUMERIC_H
#define WHALE_PROGRAMFORMAT_NUMERIC_H

#include "whale/ProgramFormat/DType.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdlib>

namespace whale::format {

struct Bool {
  uint8_t bits;
};

/// Integers of fewer than 8 bits; each takes one byte.
template <int Bits, bool Signed>
struct SmallInt {
  uint8_t bits;
};

struct BFloat16 {
  uint16_t bits;
};

using Float16 = _Float16;

enum class Specials : uint8_t {
  /// Infinities and NaNs, as in IEEE 754.
  IEEE,
  /// No infinity; all ones is NaN.
  FN,
  /// No infinity and no negative zero; the bits of negative zero are NaN.
  FNUZ,
};

/// An f8 with the given numbers of exponent and mantissa bits.
template <int Exponent, int Mantissa, int Bias, Specials Kind>
struct Float8 {
  uint8_t bits;

  static float decode(uint8_t bits);
  static uint8_t encode(float value);
};

/// A type without arithmetic, which can only be moved.
template <int Id>
struct Opaque {
  uint8_t bits;
};

template <int E, int M, int B, Specials K>
float Float8<E, M, B, K>::decode(uint8_t bits) {
  float sign = bits & 0x80 ? -1.0f : 1.0f;
  int exponent = (bits & 0x7f) >> M;
  int mantissa = bits & ((1 << M) - 1);
  if constexpr (K == Specials::FNUZ) {
    if (bits == 0x80)
      return NAN;
  } else if constexpr (K == Specials::FN) {
    if ((bits & 0x7f) == 0x7f)
      return NAN;
  } else if (exponent == (1 << E) - 1) {
    return mantissa ? NAN : sign * INFINITY;
  }
  if (exponent == 0)
    return sign * std::ldexp(static_cast<float>(mantissa), 1 - B - M);
  return sign *
         std::ldexp(static_cast<float>(mantissa + (1 << M)), exponent - B - M);
}

template <int E, int M, int B, Specials K>
uint8_t Float8<E, M, B, K>::encode(float value) {
  constexpr uint8_t nan = K == Specials::FNUZ ? 0x80 : 0x7f;
  constexpr int infinity = ((1 << E) - 1) << M;
  constexpr int largest = K == Specials::IEEE ? infinity - 1
                          : K == Specials::FN ? 0x7e
                                              : 0x7f;
  if (std::isnan(value))
    return nan;
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  double magnitude = std::fabs(value);
  int bits = largest + 1;
  if (!std::isinf(value)) {
    int exponent = magnitude == 0 ? 1 - B : std::ilogb(magnitude);
    exponent = std::max(exponent, 1 - B);
    // The mantissa with its leading one. Rounding up to the next power of two
    // carries into the exponent.
    int mantissa =
        static_cast<int>(std::nearbyint(std::ldexp(magnitude, M - exponent)));
    bits = ((exponent - (1 - B)) << M) + mantissa;
  }
  if (bits > largest)
    return K == Specials::IEEE ? sign | infinity
                               : nan | (K == Specials::FNUZ ? 0 : sign);
  if (K == Specials::FNUZ && bits == 0)
    return 0;
  return sign | static_cast<uint8_t>(bits);
}

/// Loads, stores and the compute type `Compute` of a storage type.
template <typename T>
struct Element {
  using Compute = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};

template <>
struct Element<Bool> {
  using Compute = bool;
  static bool load(Bool value) { return value.bits != 0; }
  static Bool store(bool value) { return {value}; }
};

template <int Bits>
struct Element<SmallInt<Bits, true>> {
  using Compute = int32_t;
  static int32_t load(SmallInt<Bits, true> value) {
    return static_cast<int8_t>(value.bits << (8 - Bits)) >> (8 - Bits);
  }
  static SmallInt<Bits, true> store(int32_t value) {
    return {static_cast<uint8_t>(
        load({static_cast<uint8_t>(value & ((1 << Bits) - 1))}))};
  }
};

template <int Bits>
struct Element<SmallInt<Bits, false>> {
  using Compute = uint32_t;
  static constexpr uint32_t mask = (1 << Bits) - 1;
  static uint32_t load(SmallInt<Bits, false> value) {
    return value.bits & mask;
  }
  static SmallInt<Bits, false> store(uint32_t value) {
    return {static_cast<uint8_t>(value & mask)};
  }
};

template <>
struct Element<BFloat16> {
  using Compute = float;
  static float load(BFloat16 value) {
    return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
  }
  static BFloat16 store(float value) {
    uint32_t bits = std::bit_cast<uint32_t>(value);
    // Branch-free, so that loops over it vectorize.
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    uint32_t nan = (bits >> 16) | 0x40;
    return {static_cast<uint16_t>(value != value ? nan : rounded)};
  }
};

template <>
struct Element<Float16> {
  using Compute = float;
  static float load(Float16 value) { return static_cast<float>(value); }
  static Float16 store(float value) { return static_cast<Float16>(value); }
};

template <int E, int M, int B, Specials K>
struct Element<Float8<E, M, B, K>> {
  using Compute = float;
  using Storage = Float8<E, M, B, K>;
  static float load(Storage value) { return Storage::decode(value.bits); }
  static Storage store(float value) { return {Storage::encode(value)}; }
};

/// Calls `function.template operator()<T>()` with the storage type of `dtype`.
template <typename Function>
decltype(auto) dispatch(DType dtype, Function &&function) {
  switch (dtype) {
#define CASE(NAME, ...)                                                        \
  case DType::NAME:                                                            \
    return function.template operator()<__VA_ARGS__>()
    CASE(I1, Bool);
    CASE(I2, SmallInt<2, true>);
    CASE(I4, SmallInt<4, true>);
    CASE(I8, int8_t);
    CASE(I16, int16_t);
    CASE(I32, int32_t);
    CASE(I64, int64_t);
    CASE(UI2, SmallInt<2, false>);
    CASE(UI4, SmallInt<4, false>);
    CASE(UI8, uint8_t);
    CASE(UI16, uint16_t);
    CASE(UI32, uint32_t);
    CASE(UI64, uint64_t);
    CASE(F4E2M1FN, Opaque<0>);
    CASE(F6E2M3FN, Opaque<1>);
    CASE(F6E3M2FN, Opaque<2>);
    CASE(F8E3M4, Float8<3, 4, 3, Specials::IEEE>);
    CASE(F8E4M3, Float8<4, 3, 7, Specials::IEEE>);
    CASE(F8E4M3FN, Float8<4, 3, 7, Specials::FN>);
    CASE(F8E4M3FNUZ, Float8<4, 3, 8, Specials::FNUZ>);
    CASE(F8E4M3B11FNUZ, Float8<4, 3, 11, Specials::FNUZ>);
    CASE(F8E5M2, Float8<5, 2, 15, Specials::IEEE>);
    CASE(F8E5M2FNUZ, Float8<5, 2, 16, Specials::FNUZ>);
    CASE(F8E8M0FNU, Opaque<3>);
    CASE(BF16, BFloat16);
    CASE(F16, Float16);
    CASE(F32, float);
    CASE(F64, double);
    CASE(C64, std::complex<float>);
    CASE(C128, std::complex<double>);
#undef CASE
  }
  std::abort();
}

template <typename T>
inline constexpr bool isOpaque = false;
template <int Id>
inline constexpr bool isOpaque<Opaque<Id>> = true;

/// False for f4, f6 and f8E8M0FNU, which are only moved.
inline bool hasArithmetic(DType dtype) {
  return dispatch(dtype, []<typename T>() { return !isOpaque<T>; });
}

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_NUMERIC_H
