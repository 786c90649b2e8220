//===- GeluMatch.h - GELU of a value, and its gradient ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_LIBRARY_GELUMATCH_H
#define WHALE_LIB_CONVERSION_LIBRARY_GELUMATCH_H

#include "mlir/IR/Value.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "llvm/ADT/SetVector.h"

namespace whale {

/// A product times the derivative of GELU.
struct GeluGradient {
  MatmulOp product;
  mlir::Value result;
};

/// GELU of a value, in its form with tanh, and gradients that are products
/// times its derivative.
struct Gelu {
  mlir::Value input, result;
  llvm::SmallVector<GeluGradient> gradients;
  /// All that computes them from the input and the products.
  llvm::SetVector<mlir::Operation *> ops;
};

/// The value that a hyperbolic tangent is taken of an elementwise function of,
/// if it is one value; a product with a bias counts as one.
mlir::Value findInputOfTanh(mlir::Operation *tanh);

/// GELU of this value; nothing if there is none in its block.
std::optional<Gelu> findGelu(mlir::Value input);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_LIBRARY_GELUMATCH_H
