//===- ViewMoves.h - Tensors in the order of views --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Views (ViewConvolution.h) read and write rows of channels. Where a tensor has
// its channels elsewhere, or rows that end in the middle of a vector, a copy of
// it in f32 has such rows: what oneDNN would copy as well.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CPU_VIEWMOVES_H
#define WHALE_RUNTIME_DEVICE_CPU_VIEWMOVES_H

#include "program/Format.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <optional>
#include <vector>

namespace whale::runtime {

struct ViewMoves {
  /// Of a tensor whose dimensions oneDNN can count.
  struct Move {
    dnnl::memory::desc given, wanted;
  };

  /// Costs nothing but for those tensors that are to be copied.
  explicit ViewMoves(const Convolution &op);

  /// The convolution of the copies.
  Convolution op;
  /// Elements from one to the next in each dimension of its rhs.
  std::vector<int64_t> rhsStrides;
  std::optional<Move> lhs, rhs, out;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CPU_VIEWMOVES_H
