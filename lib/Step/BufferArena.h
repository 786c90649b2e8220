//===- BufferArena.h - Offsets in one block of memory -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_STEP_BUFFERARENA_H
#define WHALE_LIB_STEP_BUFFERARENA_H

#include <cstdint>
#include <utility>
#include <vector>

namespace whale {

/// A buffer that needs `bytes` while any of its intervals (ascending,
/// half-open) lasts.
struct ArenaRequest {
  int64_t bytes;
  std::vector<std::pair<int64_t, int64_t>> intervals;
};

/// Returns an aligned offset for each request such that those alive at once
/// don't overlap; `size` is set to the bytes that the arena needs.
std::vector<int64_t> packArena(const std::vector<ArenaRequest> &requests,
                               int64_t &size);

} // namespace whale

#endif // WHALE_LIB_STEP_BUFFERARENA_H
