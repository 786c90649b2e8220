//===- StableHLOOps.h - The stablehlo dialect -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_STABLEHLO_IR_STABLEHLOOPS_H
#define WHALE_DIALECT_STABLEHLO_IR_STABLEHLOOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "whale/Dialect/StableHLO/IR/StableHLODialect.h.inc"
#include "whale/Dialect/StableHLO/IR/StableHLOEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOAttrs.h.inc"

namespace mlir::stablehlo {

/// Whether types are equal except for dimensions that are dynamic in one of
/// them, and for the encoding of tensor types.
bool areCompatibleTypes(TypeRange lhs, TypeRange rhs);

/// Returns the accuracy of an operation without `result_accuracy`.
ResultAccuracyAttr defaultResultAccuracy(MLIRContext *context);

/// Padding as windows have it: in front of and behind each dimension.
DenseIntElementsAttr makePadding(MLIRContext *context,
                                 ArrayRef<int64_t> padding);

} // namespace mlir::stablehlo

#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOUnaryOps.h.inc"
#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOBinaryOps.h.inc"
#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOShapeOps.h.inc"
#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOIndexingOps.h.inc"
#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOReductionOps.h.inc"
#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOLinearAlgebraOps.h.inc"
#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOControlFlowOps.h.inc"
#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOCollectiveOps.h.inc"
#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLORandomOps.h.inc"

#endif // WHALE_DIALECT_STABLEHLO_IR_STABLEHLOOPS_H
