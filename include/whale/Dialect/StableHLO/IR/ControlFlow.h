//===- ControlFlow.h - Loops and branches of a program ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_CONTROLFLOW_H
#define WHALE_DIALECT_STABLEHLO_IR_CONTROLFLOW_H

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

namespace mlir::stablehlo {

/// Whether an operand selects one of the operation's regions to be executed.
inline bool isBranch(Operation *op) { return isa<CaseOp, IfOp>(op); }

/// Whether the operation's regions are steps of the program, in contrast to the
/// computation of one element, as the region of a reduction is.
inline bool isControlFlow(Operation *op) {
  return isa<WhileOp>(op) || isBranch(op);
}

} // namespace mlir::stablehlo

#endif // WHALE_DIALECT_STABLEHLO_IR_CONTROLFLOW_H
