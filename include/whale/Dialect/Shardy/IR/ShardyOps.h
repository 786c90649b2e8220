//===- ShardyOps.h - The sdy dialect ----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_SHARDY_IR_SHARDYOPS_H
#define WHALE_DIALECT_SHARDY_IR_SHARDYOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "whale/Dialect/Shardy/IR/ShardyDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "whale/Dialect/Shardy/IR/ShardyAttrs.h.inc"

#define GET_OP_CLASSES
#include "whale/Dialect/Shardy/IR/ShardyOps.h.inc"

#endif // WHALE_DIALECT_SHARDY_IR_SHARDYOPS_H
