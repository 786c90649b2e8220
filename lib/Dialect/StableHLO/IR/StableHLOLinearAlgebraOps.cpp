//===- StableHLOLinearAlgebraOps.cpp - x ------------------------*- C++ -*-===//
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
#include "whale/Dialect/StableHLO/IR/StableHLOLinearAlgebraOps.cpp.inc"

int64_t ConvolutionOp::getNumSpatialDimensions() {
  return getDimensionNumbers().getInputSpatialDimensions().size();
}
