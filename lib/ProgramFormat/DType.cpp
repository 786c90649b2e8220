//===- DType.cpp - Names and sizes of element types -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/DType.h"

#include "whale/ProgramFormat/Numeric.h"

#include <array>

namespace whale::format {

static constexpr std::array<std::string_view, 30> names = {
    "i1",       "i2",           "i4",
    "i8",       "i16",          "i32",
    "i64",      "ui2",          "ui4",
    "ui8",      "ui16",         "ui32",
    "ui64",     "f4E2M1FN",     "f6E2M3FN",
    "f6E3M2FN", "f8E3M4",       "f8E4M3",
    "f8E4M3FN", "f8E4M3FNUZ",   "f8E4M3B11FNUZ",
    "f8E5M2",   "f8E5M2FNUZ",   "f8E8M0FNU",
    "bf16",     "f16",          "f32",
    "f64",      "complex<f32>", "complex<f64>"};
static_assert(names.size() == static_cast<size_t>(DType::C128) + 1);

std::string_view name(DType dtype) { return names[static_cast<size_t>(dtype)]; }

std::optional<DType> parseDType(std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name)
      return static_cast<DType>(i);
  return std::nullopt;
}

int64_t byteSize(DType dtype) {
  return dispatch(dtype, []<typename T>() -> int64_t { return sizeof(T); });
}

bool isInteger(DType dtype) { return dtype <= DType::UI64; }

bool isFloat(DType dtype) {
  return dtype >= DType::F4E2M1FN && dtype <= DType::F64;
}

bool isComplex(DType dtype) {
  return dtype == DType::C64 || dtype == DType::C128;
}

} // namespace whale::format
