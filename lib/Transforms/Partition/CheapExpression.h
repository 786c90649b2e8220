//===- CheapExpression.h - What kernels compute instead of reading -*- C++
//-*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values that take little arithmetic on one stored value of their size are not
// worth a place in memory: each kernel that uses one computes it itself. What
// plans what is kept asks here, so that it counts nothing that kernels do not
// keep (whale-fuse-kernels).
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PARTITION_CHEAPEXPRESSION_H
#define WHALE_LIB_TRANSFORMS_PARTITION_CHEAPEXPRESSION_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"

namespace whale {

/// Whether the operation becomes a loop that can take in what makes its
/// operands.
bool becomesLoop(mlir::Operation *op);

/// What one loop computes for a value, from others that are stored.
class CheapExpression {
public:
  /// Nothing if it is more than what is cheap: little arithmetic on one value
  /// of the size of the result, and others that are far smaller.
  static std::optional<CheapExpression> find(mlir::Value value);

  /// Each after those that it needs.
  llvm::SetVector<mlir::Operation *> ops;
  /// What it is computed from.
  llvm::SetVector<mlir::Value> leaves;

private:
  static std::optional<CheapExpression> find(mlir::Value value,
                                             unsigned &steps);
  bool add(mlir::Operation *op, unsigned &steps);
  static bool isTakenIn(mlir::Operation *producer, unsigned &steps);

  unsigned arithmetic = 0;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PARTITION_CHEAPEXPRESSION_H
