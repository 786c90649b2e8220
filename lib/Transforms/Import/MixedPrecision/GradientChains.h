//===- GradientChains.h - What gradients are linear in ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_MIXEDPRECISION_GRADIENTCHAINS_H
#define WHALE_LIB_TRANSFORMS_IMPORT_MIXEDPRECISION_GRADIENTCHAINS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace whale {

/// The way from a loss back to its gradients, operations that are linear in it.
/// Multiplying what `begins` reads multiplies all of `values`.
struct GradientChains {
  /// Values of the backward that are proportional to what `begins` reads.
  llvm::SetVector<mlir::Value> values;
  /// Operands by which what is no part of a chain enters one.
  llvm::SetVector<mlir::OpOperand *> begins;
  /// Operands by which the optimizer, or a result of the step, reads a
  /// gradient.
  llvm::SetVector<mlir::OpOperand *> ends;
};

/// Finds them by the operations' rules (OpRule.h: linear). Emits an error where
/// the backward computes something of a gradient that is not proportional to
/// it.
mlir::FailureOr<GradientChains> findGradientChains(mlir::func::FuncOp main);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_MIXEDPRECISION_GRADIENTCHAINS_H
