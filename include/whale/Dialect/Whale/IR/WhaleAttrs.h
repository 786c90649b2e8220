//===- WhaleAttrs.h - Attributes --------------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_WHALEATTRS_H
#define WHALE_DIALECT_WHALE_IR_WHALEATTRS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpAsmSupport.h"
#include "mlir/IR/OpImplementation.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Placement/Placement.h"
#include "whale/Planner/Schedule.h"
#include <optional>

#include "whale/Dialect/Whale/IR/WhaleAttrInterfaces.h.inc"
#include "whale/Dialect/Whale/IR/WhaleEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "whale/Dialect/Whale/IR/WhaleAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "whale/Dialect/Whale/IR/WhaleTypes.h.inc"

#endif // WHALE_DIALECT_WHALE_IR_WHALEATTRS_H
