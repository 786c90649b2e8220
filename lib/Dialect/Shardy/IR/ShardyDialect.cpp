//===- ShardyDialect.cpp - Registration of the dialect ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/DialectImplementation.h"
#include "whale/Dialect/Shardy/IR/ShardyOps.h"

using namespace mlir;
using namespace mlir::sdy;

#include "whale/Dialect/Shardy/IR/ShardyDialect.cpp.inc"

void SdyDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/Shardy/IR/ShardyOps.cpp.inc"
      >();
}
