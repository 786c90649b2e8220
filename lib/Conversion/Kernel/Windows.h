//===- Windows.h - Windows over tensors -------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the lowerings of windows and reductions to loops share. A window has a
// size, stride, dilations and padding in each dimension; findPlace computes
// where one of its elements is in the input, and whether that is inside.
//
// Cost: what concerns one element is linear in the rank. A window that is
// reduced reads each of its elements: the result's size times the window's; a
// running reduction reads each element of its axis once on a processor, and a
// few times on a GPU.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_KERNEL_WINDOWS_H
#define WHALE_LIB_CONVERSION_KERNEL_WINDOWS_H

#include "Kernel/KernelBuilder.h"
#include "Kernel/WideReducer.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

namespace whale {

/// One dimension of a window.
struct WindowDim {
  int64_t size = 1, stride = 1, baseDilation = 1, dilation = 1;
  int64_t low = 0, high = 0;

  bool isTrivial() const {
    return size == 1 && stride == 1 && baseDilation == 1 && low == 0 &&
           high == 0;
  }
};

/// Whether a filter is read from its end along any dimension.
bool isReversed(mlir::stablehlo::ConvolutionOp op);

template <typename Op>
llvm::SmallVector<WindowDim> getWindow(Op op, llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<WindowDim> window(sizes.size());
  for (auto [dim, size] : llvm::enumerate(sizes))
    window[dim].size = size;
  if (auto strides = op.getWindowStrides())
    for (auto [dim, stride] : llvm::enumerate(*strides))
      window[dim].stride = stride;
  if (auto padding = op.getPadding())
    for (auto [place, value] :
         llvm::enumerate(padding->template getValues<int64_t>()))
      (place % 2 ? window[place / 2].high : window[place / 2].low) = value;
  return window;
}

/// All dimensions of the window of a reduction.
llvm::SmallVector<WindowDim>
getReducedWindow(mlir::stablehlo::ReduceWindowOp op);

/// Where an element of a window is in the input, and whether that is inside:
/// null if it always is.
struct Place {
  llvm::SmallVector<mlir::Value> indices;
  mlir::Value inside;

  /// Adds a dimension of `size` elements of the input, of the window that
  /// starts at `output` the element `offset`.
  void add(KernelBuilder &k, const WindowDim &w, int64_t size,
           mlir::Value output, mlir::Value offset);
};

/// All dimensions; `inside` is not null.
Place findPlace(KernelBuilder &k, llvm::ArrayRef<WindowDim> window,
                llvm::ArrayRef<int64_t> shape, mlir::ValueRange output,
                mlir::ValueRange offset);

/// Runs `body(carried)` for each element of a nest of loops and returns what
/// is carried in the end.
llvm::SmallVector<mlir::Value>
carryNest(KernelBuilder &k, llvm::ArrayRef<int64_t> sizes,
          mlir::ValueRange initial,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange,
                                                            mlir::ValueRange)>
              body,
          llvm::SmallVector<mlir::Value> counters = {});

/// A loop along a dimension of a window, in steps of `unit`, over the `covered`
/// elements of a step of the loop outside of it that goes along the same one.
struct BlockLoop {
  size_t dim;
  int64_t unit, covered;
};

/// The loops, the outermost first, that walk a window of these sizes in blocks
/// of at most kSumBlock elements along a dimension, blocks of as many blocks,
/// and so on. If each loop sums what it covers apart, an error grows with the
/// logarithm of the sizes.
llvm::SmallVector<BlockLoop> getBlockLoops(llvm::ArrayRef<int64_t> sizes);

/// The loop of `level` from `from` on, without a body.
mlir::scf::ForOp makeBlockLoop(KernelBuilder &k, const BlockLoop &level,
                               int64_t size, mlir::Value from,
                               mlir::ValueRange carried);

//===----------------------------------------------------------------------===//
// The kernels of reduce_window
//===----------------------------------------------------------------------===//

// Their buffers are the operands, as many initial values and as many results.

/// What is carried, reduced with the terms at `indices`.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
combineTerms(KernelBuilder &k, WideReducer &reducer, mlir::ValueRange carried,
             mlir::ValueRange indices, llvm::ArrayRef<mlir::Type> elements);

llvm::SmallVector<mlir::Value> loadTerms(KernelBuilder &k, WideReducer &reducer,
                                         mlir::ValueRange indices,
                                         llvm::ArrayRef<mlir::Type> elements);

llvm::SmallVector<mlir::Value> loadInits(KernelBuilder &k, WideReducer &reducer,
                                         llvm::ArrayRef<mlir::Type> elements);

void storeResults(KernelBuilder &k, WideReducer &reducer,
                  mlir::ValueRange results, mlir::ValueRange indices);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_KERNEL_WINDOWS_H
