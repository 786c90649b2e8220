//===- WhaleDialect.cpp - The whale dialect -------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Dialect/Whale/IR/WhaleRecomputeOps.h"

using namespace mlir;
using namespace whale;

#include "whale/Dialect/Whale/IR/WhaleDialect.cpp.inc"

void WhaleDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/Whale/IR/WhaleOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/Whale/IR/WhaleProgramOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/Whale/IR/WhaleRecomputeOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.cpp.inc"
      >();
}

LogicalResult WhaleDialect::checkOnce(Checked key,
                                      function_ref<LogicalResult()> check) {
  {
    std::lock_guard lock(checkedMutex);
    if (checked.contains(key))
      return success();
  }
  if (failed(check()))
    return failure();
  std::lock_guard lock(checkedMutex);
  checked.insert(key);
  return success();
}
