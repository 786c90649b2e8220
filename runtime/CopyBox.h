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

namespace whale::runtime {

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
