//===- CopyBox.cpp - Copy a part of a tensor --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyBox.h"

#include <array>
#include <cstring>

namespace whale::runtime {

void copyStrided(void *dst, std::span<const int64_t> dstStrides,
                 const void *src, std::span<const int64_t> srcStrides,
                 std::span<const int64_t> size, int64_t elementBytes) {
  // Small copies are many, and allocate nothing.
  constexpr size_t mostDims = 16;
  if (size.size() > mostDims) {
    for (int64_t i = 0; i < size[0]; ++i)
      copyStrided(static_cast<char *>(dst) + i * dstStrides[0] * elementBytes,
                  dstStrides.subspan(1),
                  static_cast<const char *>(src) +
                      i * srcStrides[0] * elementBytes,
                  srcStrides.subspan(1), size.subspan(1), elementBytes);
    return;
  }
  // Trailing dimensions without gaps on both sides make one run of bytes.
  int64_t run = elementBytes;
  bool contiguous = true;
  struct Loop {
    int64_t count, dstStride, srcStride, index;
  };
  std::array<Loop, mostDims> loops;
  size_t loopCount = 0;
  for (size_t i = size.size(); i-- > 0;) {
    if (size[i] == 0)
      return;
    if (size[i] == 1)
      continue;
    int64_t dstStride = dstStrides[i] * elementBytes,
            srcStride = srcStrides[i] * elementBytes;
    contiguous &= dstStride == run && srcStride == run;
    if (contiguous)
      run *= size[i];
    else
      loops[loopCount++] = {size[i], dstStride, srcStride, 0};
  }
  auto *to = static_cast<char *>(dst);
  auto *from = static_cast<const char *>(src);
  if (loopCount == 0) {
    std::memcpy(to, from, run);
    return;
  }
  // loops[0] is the innermost; an odometer runs over the others.
  while (true) {
    const Loop &inner = loops[0];
    for (int64_t i = 0; i < inner.count; ++i)
      std::memcpy(to + i * inner.dstStride, from + i * inner.srcStride, run);
    size_t d = 1;
    for (; d < loopCount; ++d) {
      to += loops[d].dstStride;
      from += loops[d].srcStride;
      if (++loops[d].index < loops[d].count)
        break;
      to -= loops[d].count * loops[d].dstStride;
      from -= loops[d].count * loops[d].srcStride;
      loops[d].index = 0;
    }
    if (d >= loopCount)
      return;
  }
}

void copyBox(void *dst, std::span<const int64_t> dstShape,
             std::span<const int64_t> dstStart, const void *src,
             std::span<const int64_t> srcShape,
             std::span<const int64_t> srcStart, std::span<const int64_t> size,
             int64_t elementBytes) {
  size_t rank = size.size();
  std::vector<int64_t> dstStrides(rank), srcStrides(rank);
  int64_t dstOffset = 0, srcOffset = 0, dstStride = 1, srcStride = 1;
  for (size_t i = rank; i-- > 0;) {
    dstStrides[i] = dstStride;
    srcStrides[i] = srcStride;
    dstOffset += dstStart[i] * dstStride;
    srcOffset += srcStart[i] * srcStride;
    dstStride *= dstShape[i];
    srcStride *= srcShape[i];
  }
  copyStrided(static_cast<char *>(dst) + dstOffset * elementBytes, dstStrides,
              static_cast<const char *>(src) + srcOffset * elementBytes,
              srcStrides, size, elementBytes);
}

} // namespace whale::runtime
