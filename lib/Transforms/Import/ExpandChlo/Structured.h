//===- Structured.h - Operations of chlo that are no formulas ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_EXPANDCHLO_STRUCTURED_H
#define WHALE_LIB_TRANSFORMS_IMPORT_EXPANDCHLO_STRUCTURED_H

#include "mlir/IR/PatternMatch.h"

namespace whale::elementwise {

/// Functions of complex numbers.
void populateComplexPatterns(mlir::RewritePatternSet &patterns);
/// Custom calls that stand for operations.
void populateCustomCallPatterns(mlir::RewritePatternSet &patterns);
/// top_k, ragged_dot, mulhi.
void populateStructuredPatterns(mlir::RewritePatternSet &patterns);

} // namespace whale::elementwise

#endif // WHALE_LIB_TRANSFORMS_IMPORT_EXPANDCHLO_STRUCTURED_H
