//===- Attention.h - Memory of attention ------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What compiler and runtime agree on about the library functions "attention"
// and "attention_gradient".
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_ATTENTION_H
#define WHALE_PROGRAMFORMAT_ATTENTION_H

#include <algorithm>
#include <cstdint>

namespace whale::format {

/// Extents of attention; `heads` also counts samples.
struct AttentionSizes {
  int64_t heads = 1, rows = 1, keys = 1, depth = 1, features = 1;

  /// Rows whose scores are computed at a time: as many as leave those in a
  /// core's cache, which is taken to be 512 KiB, but not fewer than a product
  /// is quick with.
  int64_t blockRows() const {
    constexpr int64_t scores = 64 * 1024, least = 16, most = 128;
    int64_t wanted = scores / std::max<int64_t>(keys, 1) / least * least;
    return std::clamp<int64_t>(rows, 1, std::clamp(wanted, least, most));
  }
  int64_t blocks() const { return (rows + blockRows() - 1) / blockRows(); }

  /// Floats that a thread needs: scores of a block of rows, copies of these
  /// rows and of their results, of the head's keys and values.
  int64_t scratch() const {
    return blockRows() * (keys + depth + features) + keys * (depth + features);
  }
  /// The same of the gradient, which has two of all but the queries.
  int64_t gradientScratch() const { return 2 * scratch(); }
};

/// Threads that there is memory for, whatever processor a program is compiled
/// on; a rank with more threads uses this many.
inline constexpr int64_t mostAttentionThreads = 16;

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_ATTENTION_H
