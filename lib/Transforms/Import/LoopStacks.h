//===- LoopStacks.h - Stacks of what a loop's rounds give -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_LOOPSTACKS_H
#define WHALE_LIB_TRANSFORMS_IMPORT_LOOPSTACKS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace whale {

/// So many rows of a type along a new first dimension.
mlir::RankedTensorType getStackType(int64_t rows, mlir::Type row);

/// Where the row of a round starts in a stack. What this and the next function
/// make has the strategy and the phase of `loop`.
llvm::SmallVector<mlir::Value>
getRowStarts(mlir::OpBuilder &builder, mlir::Location loc,
             mlir::Operation *loop, mlir::Value round, mlir::Value stack);

/// The stack with the row of a round.
mlir::Value storeRow(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Operation *loop, mlir::Value row, mlir::Value stack,
                     mlir::Value round);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_LOOPSTACKS_H
