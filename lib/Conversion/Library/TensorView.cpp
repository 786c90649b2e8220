//===- TensorView.cpp - Elements of a tensor within another one -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Library/TensorView.h"

#include "Kernel/KernelBuilder.h"
#include "mlir/IR/BuiltinTypes.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

SmallVector<int64_t> whale::getDenseStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

/// The strides of a view in another shape; nothing if it has none.
static std::optional<SmallVector<int64_t>> reshape(const TensorView &view,
                                                   ArrayRef<int64_t> to) {
  SmallVector<int64_t> strides(to.size(), 1);
  size_t next = to.size();
  for (size_t dim = view.shape.size(); dim > 0;) {
    // As few dimensions of both sides as have the same number of elements.
    --dim;
    int64_t had = view.shape[dim], has = 1, stride = view.strides[dim];
    size_t first = next;
    while (had != has) {
      if (has < had) {
        if (first == 0 || to[first - 1] == 0)
          return std::nullopt;
        has *= to[--first];
      } else {
        // Those of the view must be one behind the other.
        if (dim == 0 ||
            view.strides[dim - 1] != view.strides[dim] * view.shape[dim])
          return std::nullopt;
        had *= view.shape[--dim];
      }
    }
    for (size_t i = next; i > first; --i) {
      strides[i - 1] = stride;
      stride *= to[i - 1];
    }
    next = first;
  }
  for (size_t i = 0; i < next; ++i)
    if (to[i] != 1)
      return std::nullopt;
  return strides;
}

TensorView whale::findView(Value value) {
  SmallVector<int64_t> shape(getShape(value));
  if (auto transpose = value.getDefiningOp<stablehlo::TransposeOp>()) {
    TensorView view = findView(transpose.getOperand());
    SmallVector<int64_t> strides;
    for (int64_t dim : transpose.getPermutation())
      strides.push_back(view.strides[dim]);
    view.shape = shape;
    view.strides = strides;
    return view;
  }
  if (auto slice = value.getDefiningOp<stablehlo::SliceOp>()) {
    TensorView view = findView(slice.getOperand());
    for (auto [stride, start, step] : llvm::zip_equal(
             view.strides, slice.getStartIndices(), slice.getStrides())) {
      view.offset += start * stride;
      stride *= step;
    }
    view.shape = shape;
    return view;
  }
  if (auto op = value.getDefiningOp<stablehlo::ReshapeOp>()) {
    TensorView view = findView(op.getOperand());
    if (auto strides = reshape(view, shape)) {
      view.shape = shape;
      view.strides = *strides;
      return view;
    }
  }
  return {value, shape, getDenseStrides(shape), 0};
}
