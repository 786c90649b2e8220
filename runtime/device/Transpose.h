//===- Transpose.h - A product as that of transposes ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_TRANSPOSE_H
#define WHALE_RUNTIME_DEVICE_TRANSPOSE_H

#include "program/BoundProgram.h"

#include <utility>

namespace whale::runtime {

/// Makes a product that of the transposed operands, which gives the transposed
/// result: types, sizes and strides change sides. Its buffers do not: what was
/// the right one is given as the left one.
inline void transpose(Matmul &op) {
  std::swap(op.lhsType, op.rhsType);
  std::swap(op.m, op.n);
  std::swap(op.mOut, op.nOut);
  std::swap(op.mLhs, op.nRhs);
  std::swap(op.kLhs, op.kRhs);
  for (Matmul::Batch &dim : op.batch)
    std::swap(dim.lhs, dim.rhs);
}

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_TRANSPOSE_H
