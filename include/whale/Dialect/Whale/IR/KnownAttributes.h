//===- KnownAttributes.h - Discardable attributes ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_KNOWNATTRIBUTES_H
#define WHALE_DIALECT_WHALE_IR_KNOWNATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace whale {

/// On a task graph in micro-batches: which one of its stage, if not the first.
inline constexpr llvm::StringLiteral kChunkAttr = "whale.chunk";
/// On a backward task graph: no other stage waits for it.
inline constexpr llvm::StringLiteral kWeightGradientAttr =
    "whale.weight_gradient";

/// Whether annotated text, the compiler's input, may have the `whale.`
/// attribute; the others are written by passes. Both are in one table, with
/// where each may stand and what its values are; the verifier refuses whatever
/// the table lacks.
bool isInputAttribute(llvm::StringRef name);

} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_KNOWNATTRIBUTES_H
