//===- TensorView.h - Elements of a tensor within another one ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_LIBRARY_TENSORVIEW_H
#define WHALE_LIB_CONVERSION_LIBRARY_TENSORVIEW_H

#include "mlir/IR/Value.h"

namespace whale {

/// The strides of a dense tensor, in elements.
llvm::SmallVector<int64_t> getDenseStrides(llvm::ArrayRef<int64_t> shape);

/// Where the elements of a value are in the dense tensor `base`; strides and
/// offset are in elements.
struct TensorView {
  mlir::Value base;
  llvm::SmallVector<int64_t> shape, strides;
  int64_t offset = 0;
};

/// Looks through transpositions, slices and reshapes as far as a stride for
/// each dimension says where elements are.
TensorView findView(mlir::Value value);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_LIBRARY_TENSORVIEW_H
