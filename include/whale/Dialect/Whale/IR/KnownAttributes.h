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

#include <cstdint>

namespace whale {

/// On a task graph in micro-batches: its index among those of its stage; 0 if
/// absent.
inline constexpr llvm::StringLiteral kChunkAttr = "whale.chunk";
/// On a backward task graph: no other stage waits for its results.
inline constexpr llvm::StringLiteral kWeightGradientAttr =
    "whale.weight_gradient";

/// On a `stablehlo.optimization_barrier`: the name that the step's
/// `checkpoint_name` gives its operand, which `gradient_checkpoint.type:
/// collection` keeps.
inline constexpr llvm::StringLiteral kCheckpointNameAttr =
    "whale.checkpoint_name";

/// On a result of @main that Python gets after the step: which of its functions
/// it is for, see whale-lift-callbacks. A dictionary of the integers `index`
/// and `order`, `operand` (left out where it says whether the call is made),
/// `loops` and, where a token is the function's first operand, `has_token`.
inline constexpr llvm::StringLiteral kCallbackAttr = "whale.callback";

/// The target of custom calls of Python functions.
inline constexpr llvm::StringLiteral kPythonCallback =
    "xla_ffi_python_cpu_callback";
/// In the place of a function's number, of calls that whale-check-nans makes:
/// whether an operation has made a NaN, and whether a result of @main has one.
inline constexpr int64_t kNanMade = -1, kNanReturned = -2;

/// The TaskGraph of calls into Python whose results the step uses: it is on the
/// first device, and takes none from the others.
inline constexpr llvm::StringLiteral kPythonTaskGraph = "python callbacks";

/// Whether annotated text, the compiler's input, may have the `whale.`
/// attribute; other attributes are written by passes. One table lists both,
/// with the operations that may have them and their values; the verifier
/// rejects attributes that are not in the table.
bool isInputAttribute(llvm::StringRef name);

} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_KNOWNATTRIBUTES_H
