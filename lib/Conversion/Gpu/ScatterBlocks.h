//===- ScatterBlocks.h - Scatter for threads --------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the kernels of a scatter have in common, as ScatterToBlocks.cpp says.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_GPU_SCATTERBLOCKS_H
#define WHALE_LIB_CONVERSION_GPU_SCATTERBLOCKS_H

#include "Kernel/ScatterDims.h"
#include "llvm/Support/MathExtras.h"

namespace whale {

/// The kernels of one scatter.
class ScatterBlocks {
public:
  ScatterBlocks(mlir::PatternRewriter &rewriter, mlir::stablehlo::ScatterOp op,
                const ScatterDims &dims);
  llvm::LogicalResult runUnique();
  llvm::LogicalResult runSorted();
  llvm::LogicalResult runLinked();

  /// Items of a run, and runs that a thread may have to combine, after some
  /// steps to find the last one.
  static constexpr int64_t kItems = 64, kMostItems = 4096, kMostRuns = 4000;
  /// Items of an element that one kernel takes where they cannot be combined
  /// first, and such kernels.
  static constexpr int64_t kLinkItems = 4000, kMostLinks = 64;

private:
  using Values = llvm::SmallVector<mlir::Value>;

  /// Dimensions that a number counts through, the last one the fastest.
  void decode(KernelBuilder &k, mlir::Value number,
              llvm::ArrayRef<int64_t> over,
              llvm::MutableArrayRef<mlir::Value> at) const;
  mlir::Value findPrevious(KernelBuilder &k, mlir::Value item) const;
  mlir::Value findKey(KernelBuilder &k, unsigned indices,
                      llvm::ArrayRef<mlir::Value> at) const;
  mlir::Value addFree(KernelBuilder &k, mlir::Value key,
                      llvm::ArrayRef<mlir::Value> at) const;
  Values load(KernelBuilder &k, unsigned first, mlir::ValueRange indices);
  void store(KernelBuilder &k, unsigned first, mlir::ValueRange indices,
             llvm::ArrayRef<mlir::Value> values);
  Values combine(KernelBuilder &k, llvm::ArrayRef<mlir::Value> old,
                 llvm::ArrayRef<mlir::Value> update);
  void flatten(KernelBuilder &k, unsigned first);
  mlir::Value loadKey(KernelBuilder &k, unsigned keys, mlir::Value item) const;
  llvm::FailureOr<Values>
  updateResults(llvm::ArrayRef<mlir::Value> operands, int64_t flops,
                llvm::function_ref<mlir::LogicalResult(KernelBuilder &)> body);
  llvm::FailureOr<Values> sortItems();
  struct Run;
  Values walkItem(KernelBuilder &k, const Run &run, mlir::Value item,
                  llvm::ArrayRef<mlir::Value> now);
  llvm::FailureOr<Values> walkRuns(mlir::Value keys, mlir::Value order);
  llvm::FailureOr<Values> joinRuns(llvm::ArrayRef<mlir::Value> results,
                                   llvm::ArrayRef<mlir::Value> rests,
                                   mlir::Value keys);
  mlir::Value findEnd(KernelBuilder &k, mlir::Value start, mlir::Value end,
                      int64_t most,
                      llvm::function_ref<mlir::Value(mlir::Value)> keyAt) const;
  llvm::FailureOr<Values> takeLink(int64_t link,
                                   llvm::ArrayRef<mlir::Value> results,
                                   mlir::Value keys, mlir::Value order);

  mlir::PatternRewriter &rewriter;
  mlir::stablehlo::ScatterOp op;
  mlir::Location loc;
  const ScatterDims &dims;
  unsigned count;
  /// Dimensions of the updates.
  llvm::SmallVector<int64_t> itemDims, freeDims;
  llvm::SmallVector<int64_t> strides; // Of the operand.
  int64_t items = 1, width = 1, runItems, runs;
  Values inputs, updates;
  mlir::Value indices;
  llvm::SmallVector<mlir::Type> types;
  bool good = true;
};

} // namespace whale

#endif // WHALE_LIB_CONVERSION_GPU_SCATTERBLOCKS_H
