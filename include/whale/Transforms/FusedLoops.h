//===- FusedLoops.h - What kernels will compute of StableHLO ----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What FusionRule.h asks of loops, of the StableHLO operations that they are
// made from. Values that take little arithmetic on one stored value of their
// size are not worth a place in memory: each kernel that uses one computes it
// itself. What plans what is kept asks here, so that it counts nothing that
// kernels do not keep (whale-fuse-kernels).
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_FUSEDLOOPS_H
#define WHALE_TRANSFORMS_FUSEDLOOPS_H

#include "mlir/IR/Operation.h"
#include "whale/Step/FusionRule.h"
#include "llvm/ADT/SetVector.h"

namespace whale {

/// Returns the arithmetic of an operation for each element of its result: none
/// where it only moves elements; nothing if some of it takes long.
std::optional<unsigned> countArithmetic(mlir::Operation *op);

/// Returns whether a value has far fewer elements than an operation's result.
bool isFarSmaller(mlir::Value value, mlir::Operation *op);

/// Returns whether the operation becomes a loop that can take in what makes its
/// operands.
bool becomesLoop(mlir::Operation *op);

/// What one loop computes for a value, from others that are stored.
class CheapExpression {
public:
  /// Nothing if it is more than what is cheap.
  static std::optional<CheapExpression> find(mlir::Value value);

  /// Each after those that it needs.
  llvm::SetVector<mlir::Operation *> ops;
  /// What it is computed from.
  llvm::SetVector<mlir::Value> leaves;

private:
  static std::optional<CheapExpression> find(mlir::Value value,
                                             unsigned &steps);
  bool add(mlir::Operation *op, unsigned &steps);
  static bool isTakenIn(mlir::OpOperand &operand, unsigned &steps);
  static bool isTakenInUnseen(mlir::OpOperand &operand, unsigned &steps);

  LoopWork work = {.arithmetic = 0};
};

} // namespace whale

#endif // WHALE_TRANSFORMS_FUSEDLOOPS_H
