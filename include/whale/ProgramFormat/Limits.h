//===- Limits.h - Limits of a program ---------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Header-only: the compiler reports early what the runtime would reject.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_LIMITS_H
#define WHALE_PROGRAMFORMAT_LIMITS_H

#include <cstdint>

namespace whale::format {

/// The maximum number of ranks of a program that runs.
inline constexpr int64_t mostRanks = 4096;
/// The maximum number of dimensions of a tensor.
inline constexpr int64_t mostDimensions = 32;
/// The maximum of strides, dilations and the absolute padding of a convolution;
/// and a bound, exclusive, of its extents after dilation.
inline constexpr int64_t mostWindow = int64_t(1) << 40;
inline constexpr int64_t mostDilated = int64_t(1) << 60;

/// The maximum workspace of what cuDNN computes, in bytes: no plans of more are
/// taken.
inline constexpr int64_t mostWorkspace = int64_t(1) << 30;

/// The maximum nesting of loops and branches: far more than JAX can trace, and
/// few enough for recursive functions.
inline constexpr int64_t mostNested = 128;

/// The maximum number of JSON values that a program's short lists stand for.
/// They need some gigabytes of memory.
inline constexpr int64_t mostShortened = int64_t(1) << 25;

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_LIMITS_H
