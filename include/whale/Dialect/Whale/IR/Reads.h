//===- Reads.h - The values that an operation reads -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_READS_H
#define WHALE_DIALECT_WHALE_IR_READS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"

namespace whale {

/// Calls `visit` with each value that an operation reads: its operands, then
/// the outside values that its regions use. Code that moves, copies or orders
/// operations must use this instead of the operands alone.
void forEachRead(mlir::Operation *op,
                 llvm::function_ref<void(mlir::Value)> visit);

/// Returns the values that an operation reads, without duplicates.
llvm::SetVector<mlir::Value> getReads(mlir::Operation *op);

/// Returns the values defined outside a region that it uses.
llvm::SetVector<mlir::Value> getCaptures(mlir::Region &region);

} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_READS_H
