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

/// On a task graph in micro-batches: its index among those of its stage; 0 if
/// absent.
inline constexpr llvm::StringLiteral kChunkAttr = "whale.chunk";
/// On a backward task graph: no other stage waits for its results.
inline constexpr llvm::StringLiteral kWeightGradientAttr =
    "whale.weight_gradient";

/// On a result of @main that Python gets after the step: which of its functions
/// it is for, see whale-lift-callbacks. A dictionary of the integers `index`
/// and `order`, `operand` (left out where it says whether the call is made),
/// `loops` and, where a token is the function's first operand, `has_token`.
inline constexpr llvm::StringLiteral kCallbackAttr = "whale.callback";

/// Whether annotated text, the compiler's input, may have the `whale.`
/// attribute; other attributes are written by passes. One table lists both,
/// with the operations that may have them and their values; the verifier
/// rejects attributes that are not in the table.
bool isInputAttribute(llvm::StringRef name);

} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_KNOWNATTRIBUTES_H
