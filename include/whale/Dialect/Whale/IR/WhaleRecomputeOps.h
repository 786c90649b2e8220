//===- WhaleRecomputeOps.h - Values computed again --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_WHALERECOMPUTEOPS_H
#define WHALE_DIALECT_WHALE_IR_WHALERECOMPUTEOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"

#define GET_OP_CLASSES
#include "whale/Dialect/Whale/IR/WhaleRecomputeOps.h.inc"

namespace whale {

/// Whether a backward task graph computes the value, which may have been moved
/// since: from more than constants, and not as a part of what the user's
/// `jax.checkpoint` computes again.
bool isOfBackward(mlir::Value value);

/// Whether the operation is a part of what the user's `jax.checkpoint` computes
/// again in a backward.
bool isRematerialized(mlir::Operation *op);

} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_WHALERECOMPUTEOPS_H
