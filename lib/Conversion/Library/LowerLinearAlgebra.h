//===- LowerLinearAlgebra.h - Calls of numerical routines -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_LIBRARY_LOWERLINEARALGEBRA_H
#define WHALE_LIB_CONVERSION_LIBRARY_LOWERLINEARALGEBRA_H

#include "mlir/IR/PatternMatch.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"

namespace whale {

/// fft, cholesky, triangular_solve and the custom calls `lapack_*_ffi` become
/// whale.library_call.
void populateLinearAlgebraPatterns(mlir::RewritePatternSet &patterns);

/// Adds patterns that make library calls of attention and its gradient.
void populateAttentionPatterns(mlir::RewritePatternSet &patterns);

/// Adds patterns that make calls of cuDNN of what it computes on GPUs of this
/// compute capability (90 for sm_90) and later, each with at most so many bytes
/// besides its tensors.
void populateFusedAttentionPatterns(mlir::RewritePatternSet &patterns,
                                    int capability, int64_t mostWorkspace);

/// Adds patterns that divide complex numbers by real ones part by part.
void populateComplexPatterns(mlir::RewritePatternSet &patterns);

/// Whether loops are as quick as a call: they form sums in blocks, which is
/// more exact. That is so for vectors, which are read once, and for so few
/// pairs of elements in all products of a batch that the call takes longer than
/// these, or in each. Extents are at least one.
bool isForLoops(int64_t batch, int64_t rows, int64_t columns,
                int64_t contracted, int64_t fewProducts);

bool isComplexOfF32(mlir::Value value);

/// Replaces a product of complex numbers of f32 by four of their parts; failure
/// for others, where loops are as quick, and where the library multiplies so
/// few pairs of elements whole.
mlir::LogicalResult splitComplexProduct(mlir::RewriterBase &rewriter,
                                        mlir::stablehlo::DotGeneralOp op,
                                        int64_t fewProducts,
                                        int64_t wholeProducts);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_LIBRARY_LOWERLINEARALGEBRA_H
