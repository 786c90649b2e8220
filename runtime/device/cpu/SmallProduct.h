//===- SmallProduct.h - Products of small matrices --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CPU_SMALLPRODUCT_H
#define WHALE_RUNTIME_DEVICE_CPU_SMALLPRODUCT_H

#include <cstdint>

namespace whale::runtime {

/// out[i, j] (= or +=) the sum over p of lhs[i, p] * rhs[p, j], of matrices of
/// f32 or, with `isComplex`, c64. Strides in elements; columns of `out` are
/// adjacent.
struct SmallProduct {
  int64_t m, n, k;
  int64_t mLhs, kLhs, kRhs, nRhs, mOut;
  bool adds = false, isComplex = false;

  /// On the calling thread.
  void run(const void *lhs, const void *rhs, void *out) const;
};

/// Whether a product of so many rows, columns and terms is at least as fast so
/// as by a library, whose call takes as long as some thousands of
/// multiplications.
bool isSmallProduct(int64_t m, int64_t n, int64_t k);

} // namespace whale::runtime

#endif // WHALE_RUNTIME_DEVICE_CPU_SMALLPRODUCT_H
