//===- StableHLOIndexingOps.cpp - x -----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "whale/Dialect/StableHLO/IR/AssemblyFormat.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace mlir::stablehlo;

#define GET_OP_CLASSES
#include "whale/Dialect/StableHLO/IR/StableHLOIndexingOps.cpp.inc"

OpFoldResult SliceOp::fold(FoldAdaptor) {
  // With the operand's static shape the slice can only be the whole of it.
  bool isIdentity =
      getOperand().getType() == getType() && getType().hasStaticShape() &&
      llvm::all_of(getStrides(), [](int64_t stride) { return stride == 1; });
  return isIdentity ? getOperand() : OpFoldResult();
}

void SortOp::build(OpBuilder &builder, OperationState &state, ValueRange inputs,
                   int64_t dimension, bool isStable) {
  state.addOperands(inputs);
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.dimension = builder.getI64IntegerAttr(dimension);
  properties.is_stable = builder.getBoolAttr(isStable);
  state.addRegion();
  state.addTypes(inputs.getTypes());
}
