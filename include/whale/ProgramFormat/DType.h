//===- DType.h - Element types of programs ----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The element types of StableHLO, under StableHLO's names. In memory every
// element has whole bytes: i1 is a byte of 0 or 1; the types below one byte
// (i2, i4, f4, f6) take one byte each, in its low bits, with integers sign- or
// zero-extended.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_DTYPE_H
#define WHALE_PROGRAMFORMAT_DTYPE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace whale::format {

enum class DType : uint8_t {
  I1,
  I2,
  I4,
  I8,
  I16,
  I32,
  I64,
  UI2,
  UI4,
  UI8,
  UI16,
  UI32,
  UI64,
  F4E2M1FN,
  F6E2M3FN,
  F6E3M2FN,
  F8E3M4,
  F8E4M3,
  F8E4M3FN,
  F8E4M3FNUZ,
  F8E4M3B11FNUZ,
  F8E5M2,
  F8E5M2FNUZ,
  F8E8M0FNU,
  BF16,
  F16,
  F32,
  F64,
  C64,
  C128,
};

/// Returns the name in programs, as StableHLO spells it: "f32", "ui8",
/// "complex<f32>".
std::string_view name(DType dtype);

/// Returns the type with that name, or nullopt.
std::optional<DType> parseDType(std::string_view name);

/// Returns the bytes of one element in memory.
int64_t byteSize(DType dtype);

/// True for i1 and the signed and unsigned integers.
bool isInteger(DType dtype);
/// True for real floating-point types of any width.
bool isFloat(DType dtype);
bool isComplex(DType dtype);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_DTYPE_H
