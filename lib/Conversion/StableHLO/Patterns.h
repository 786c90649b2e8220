//===- Patterns.h - StableHLO to loops and kernels --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the patterns of whale-stablehlo-to-linalg share, and what makes them.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_STABLEHLO_PATTERNS_H
#define WHALE_LIB_CONVERSION_STABLEHLO_PATTERNS_H

#include "Kernel/KernelBuilder.h"
#include "Kernel/WideReducer.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "whale/Conversion/Target.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

namespace whale {

/// Replaces `op` by loops that add up the products of the elements of lhs and
/// rhs, of any StableHLO types; the maps are those of lhs, rhs and the result,
/// which the loops see as a tensor of `shape`.
mlir::LogicalResult
contractInLoops(mlir::PatternRewriter &rewriter, mlir::Operation *op,
                mlir::Value lhs, mlir::Value rhs,
                llvm::ArrayRef<mlir::AffineMap> maps,
                llvm::ArrayRef<mlir::utils::IteratorType> iterators,
                llvm::ArrayRef<int64_t> shape);

/// What the operation computes, as it is stored.
mlir::FailureOr<mlir::Value> lowerPad(mlir::PatternRewriter &rewriter,
                                      mlir::stablehlo::PadOp op);

/// Replaces a reduction of nothing by its initial values, its last operands.
mlir::LogicalResult replaceByInits(mlir::PatternRewriter &rewriter,
                                   mlir::Operation *op);

/// Replaces a reduction or reduction of windows, whose operands are its inputs
/// and as many initial values, by loops that read the inputs through `from` and
/// write through `to`. Where these maps don't give the size of every loop,
/// `sizes` does, a tensor without contents.
mlir::LogicalResult
reduceInLoops(mlir::PatternRewriter &rewriter, mlir::Operation *op,
              WideReducer &reducer, mlir::AffineMap from, mlir::AffineMap to,
              llvm::ArrayRef<mlir::utils::IteratorType> iterators,
              Input sizes = {});

/// Whether a thread reduces a window term by term, as it is neither a running
/// reduction nor one that is a nest of loops.
bool isReducedInTurn(mlir::stablehlo::ReduceWindowOp op);

/// Element by element along the axis: each result reduces what is up to it,
/// or from it on if `reversed`.
mlir::LogicalResult buildRunning(KernelBuilder &k,
                                 mlir::stablehlo::ReduceWindowOp op,
                                 WideReducer &reducer, int64_t axis,
                                 bool reversed,
                                 llvm::ArrayRef<mlir::Type> elements);

/// Replaces the operation by a kernel or by loops for the target.
mlir::LogicalResult lowerReduceWindow(mlir::PatternRewriter &rewriter,
                                      mlir::stablehlo::ReduceWindowOp op,
                                      const Target &target);

/// Puts a kernel before each loop of scalars, which runs as many of its turns
/// as a kernel may, on a processor.
void lowerScalarLoops(mlir::PatternRewriter &rewriter, mlir::Operation *root);

/// Gives memory without contents to carried tensors whose initial value the
/// loop overwrites before anything reads it.
void dropUnreadInits(mlir::PatternRewriter &rewriter,
                     mlir::stablehlo::WhileOp loop);

/// Replaces the sorts of a function by kernels for a processor, together with
/// the slices that read the first elements of their lines.
void lowerSorts(mlir::FunctionOpInterface function);

void populateElementwisePatterns(mlir::RewritePatternSet &patterns);
void populateConvolutionPatterns(mlir::RewritePatternSet &patterns,
                                 const Target &target);
void populateShapePatterns(mlir::RewritePatternSet &patterns,
                           const Target &target);
void populateIndexingPatterns(mlir::RewritePatternSet &patterns);
void populateReductionPatterns(mlir::RewritePatternSet &patterns,
                               const Target &target);
void populateSelectAndScatterPatterns(mlir::RewritePatternSet &patterns,
                                      const Target &target);
void populateWindowPatterns(mlir::RewritePatternSet &patterns,
                            const Target &target);
void populateScatterPatterns(mlir::RewritePatternSet &patterns,
                             const Target &target);
void populateSortPatterns(mlir::RewritePatternSet &patterns,
                          const Target &target);
void populateRandomPatterns(mlir::RewritePatternSet &patterns);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_STABLEHLO_PATTERNS_H
