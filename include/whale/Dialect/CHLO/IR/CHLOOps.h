//===- CHLOOps.h - The chlo dialect -----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_CHLO_IR_CHLOOPS_H
#define WHALE_DIALECT_CHLO_IR_CHLOOPS_H

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

// The generated code needs the headers above.
#include "whale/Dialect/CHLO/IR/CHLODialect.h.inc"
#include "whale/Dialect/CHLO/IR/CHLOEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "whale/Dialect/CHLO/IR/CHLOAttrs.h.inc"

#define GET_OP_CLASSES
#include "whale/Dialect/CHLO/IR/CHLOOps.h.inc"

#endif // WHALE_DIALECT_CHLO_IR_CHLOOPS_H
