//===- Reduce.h - Reductions of several buffers -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_TRANSPORT_REDUCE_H
#define WHALE_RUNTIME_TRANSPORT_REDUCE_H

#include "program/Format.h"

namespace whale::runtime {

/// dst[i] = sources[0][i] op sources[1][i] op ..., in this order; half
/// precision and f8 in f32, rounded once. `dst` may be one of the sources;
/// without any it becomes the reduction's identity.
void reduce(DType dtype, Reduction reduction, void *dst,
            std::span<const void *const> sources, int64_t count);

/// The same for a box: one source buffer with its shape and start for each.
struct BoxSource {
  const void *data;
  const Shape *shape;
  const Shape *start;
};
void reduceBox(DType dtype, Reduction reduction, void *dst,
               const Shape &dstShape, const Shape &dstStart, const Shape &size,
               std::span<const BoxSource> sources);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_TRANSPORT_REDUCE_H
