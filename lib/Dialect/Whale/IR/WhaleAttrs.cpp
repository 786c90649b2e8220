//===- WhaleAttrs.cpp - Attributes ----------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/WhaleAttrs.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace whale;

#include "whale/Dialect/Whale/IR/WhaleAttrInterfaces.cpp.inc"
#include "whale/Dialect/Whale/IR/WhaleEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "whale/Dialect/Whale/IR/WhaleAttrs.cpp.inc"

void WhaleDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "whale/Dialect/Whale/IR/WhaleAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Strategies
//===----------------------------------------------------------------------===//

static LogicalResult
verifyStrategy(function_ref<InFlightDiagnostic()> emitError,
               std::optional<int64_t> devices, std::optional<int64_t> scope) {
  if (devices && *devices < 1)
    return emitError() << "devices is " << *devices
                       << ", a strategy needs at least 1";
  if (scope && *scope < 0)
    return emitError() << "scope is " << *scope << ", it can't be negative";
  return success();
}

LogicalResult
ReplicateAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      std::optional<int64_t> devices, StringRef,
                      std::optional<int64_t> scope) {
  return verifyStrategy(emitError, devices, scope);
}

LogicalResult SplitAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                std::optional<int64_t> devices, StringRef,
                                std::optional<int64_t> scope) {
  return verifyStrategy(emitError, devices, scope);
}
