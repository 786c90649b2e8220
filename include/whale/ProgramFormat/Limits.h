//===- Limits.h - What a program may hold -----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Header-only: the compiler says early what the runtime would refuse.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_LIMITS_H
#define WHALE_PROGRAMFORMAT_LIMITS_H

#include <cstdint>

namespace whale::format {

/// Ranks of a program that runs.
inline constexpr int64_t mostRanks = 4096;
/// Strides, dilations and, of either sign, padding of a convolution; and one
/// less than a bound of its extents after dilation.
inline constexpr int64_t mostWindow = int64_t(1) << 40;
inline constexpr int64_t mostDilated = int64_t(1) << 60;

/// Loops and branches inside one another: far more than JAX can trace, and few
/// enough for functions that follow them by recursion.
inline constexpr int64_t mostNested = 128;

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_LIMITS_H
