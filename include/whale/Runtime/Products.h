//===- Products.h - Matrix products and convolutions ------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The instructions of a program that devices compute with libraries
// (docs/program-format.md).
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_PRODUCTS_H
#define WHALE_RUNTIME_PRODUCTS_H

#include "whale/Runtime/DType.h"
#include "whale/Runtime/Layout.h"

#include <cstdint>
#include <vector>

namespace whale::runtime {

/// A buffer of a class of ranks; instructions name it by its index.
using BufferIndex = int64_t;

/// Strides are in elements.
struct Matmul {
  struct Batch {
    int64_t size, lhs, rhs, out;
  };
  BufferIndex lhs, rhs, out;
  DType lhsType, rhsType, outType;
  std::vector<Batch> batch;
  int64_t m, mLhs, mOut;
  int64_t n, nRhs, nOut;
  int64_t k, kLhs, kRhs;
  /// The product is added to what `out` holds.
  bool accumulate = false;
};

struct Convolution {
  /// Where the logical dimensions stand in a tensor: batch and feature of the
  /// operand or result, input and output feature of the kernel.
  struct Dimensions {
    int64_t first, second;
    std::vector<int64_t> spatial;
  };
  struct Window {
    int64_t stride = 1, low = 0, high = 0, lhsDilation = 1, rhsDilation = 1;
    bool reversed = false;
  };
  BufferIndex lhs, rhs, out;
  DType lhsType, rhsType, outType;
  Shape lhsShape, rhsShape, outShape;
  Dimensions lhsDims, rhsDims, outDims;
  std::vector<Window> windows;
  int64_t featureGroups = 1, batchGroups = 1;
};

} // namespace whale::runtime

#endif // WHALE_RUNTIME_PRODUCTS_H
