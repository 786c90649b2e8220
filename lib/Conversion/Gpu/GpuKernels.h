//===- GpuKernels.h - Kernels of blocks of threads --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What becomes kernels of its own on a GPU, where a processor has loops.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_GPU_GPUKERNELS_H
#define WHALE_LIB_CONVERSION_GPU_GPUKERNELS_H

#include "Kernel/ScatterDims.h"
#include "Kernel/WideReducer.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

namespace whale {

/// Replaces a running reduction along an axis, from its end on if `reversed`,
/// by kernels whose threads each walk a few steps of it.
mlir::LogicalResult lowerRunningBlocks(mlir::PatternRewriter &rewriter,
                                       mlir::stablehlo::ReduceWindowOp op,
                                       WideReducer &reducer, int64_t axis,
                                       bool reversed);

/// Replaces a reduction by any function by kernels whose blocks of threads
/// combine neighbouring terms.
mlir::LogicalResult lowerReductionBlocks(mlir::PatternRewriter &rewriter,
                                         mlir::stablehlo::ReduceOp op,
                                         WideReducer &reducer);

/// The items (ScatterDims::countItems) that these kernels take.
int64_t getMostItems(mlir::stablehlo::ScatterOp op);

/// Replaces a scatter by kernels in which no thread takes many updates. Nothing
/// if it has too many of them.
std::optional<llvm::LogicalResult>
lowerScatterBlocks(mlir::PatternRewriter &rewriter,
                   mlir::stablehlo::ScatterOp op, const ScatterDims &dims);

/// What a sort gives, by kernels for a GPU before `op`, which stays.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
makeSortBlocks(mlir::PatternRewriter &rewriter, mlir::stablehlo::SortOp op);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_GPU_GPUKERNELS_H
