//===- CopyBox.h - Copy a part of a tensor ----------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_COPYBOX_H
#define WHALE_RUNTIME_COPYBOX_H

#include <cstdint>
#include <span>
#include <vector>

namespace whale::runtime {

/// So many of what is inside, which lie so many bytes apart.
struct CopyLoop {
  int64_t count, toStride, fromStride;
};

/// Appends what makes a copy of `size` elements as `copyStrided` makes it, of
/// runs of bytes: the loops around them, innermost first. Returns the length of
/// a run, 0 if there is nothing to be copied.
int64_t addCopyLoops(std::span<const int64_t> dstStrides,
                     std::span<const int64_t> srcStrides,
                     std::span<const int64_t> size, int64_t elementBytes,
                     std::vector<CopyLoop> &loops);
/// Makes such a copy.
void copyLoops(void *dst, const void *src, int64_t runBytes,
               std::span<const CopyLoop> loops);

/// Makes such a copy to where nobody reads soon: past the caches, if it is
/// large and its runs are long, which is what it returns. For other threads it
/// is as copyLoops.
bool streamLoops(void *dst, const void *src, int64_t runBytes,
                 std::span<const CopyLoop> loops);

/// Copies `size` elements between two buffers, whose elements lie so many
/// elements apart along each dimension.
void copyStrided(void *dst, std::span<const int64_t> dstStrides,
                 const void *src, std::span<const int64_t> srcStrides,
                 std::span<const int64_t> size, int64_t elementBytes);

/// Copies a box of `size` between two dense row-major buffers of the shapes
/// `dstShape` and `srcShape`, each from its own start.
void copyBox(void *dst, std::span<const int64_t> dstShape,
             std::span<const int64_t> dstStart, const void *src,
             std::span<const int64_t> srcShape,
             std::span<const int64_t> srcStart, std::span<const int64_t> size,
             int64_t elementBytes);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_COPYBOX_H
