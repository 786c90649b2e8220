//===- Slices.h - The slices of an all-reduce -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_SLICES_H
#define WHALE_RUNTIME_TRANSPORT_SLICES_H

#include <algorithm>
#include <cstdint>

namespace whale::runtime {

/// Elements [begin, end) of a buffer.
struct Slice {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// What member `position` of a group reduces of `count` elements. Slices begin
/// at cache lines, so that no two ranks write to one.
inline Slice sliceOf(int64_t count, int64_t members, int64_t position) {
  constexpr int64_t grain = 64;
  int64_t grains = (count + grain - 1) / grain;
  auto bound = [&](int64_t i) {
    int64_t before = grains / members * i + std::min(grains % members, i);
    return std::min(std::min(before, grains) * grain, count);
  };
  return {bound(position), bound(position + 1)};
}

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_SLICES_H
