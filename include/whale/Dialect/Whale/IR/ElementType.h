//===- ElementType.h - Element types in program files -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_ELEMENTTYPE_H
#define WHALE_DIALECT_WHALE_IR_ELEMENTTYPE_H

#include "mlir/IR/BuiltinTypes.h"

#include <string>

namespace whale {

/// Returns the name of an element type in a program's manifest ("f32", "ui8",
/// "complex<f32>"), which is also MLIR's.
std::string getDTypeName(mlir::Type element);

/// Returns the bytes of one element in memory, rounded up to whole bytes; 0 for
/// types that a program cannot contain.
int64_t getElementBytes(mlir::Type element);

/// Returns the bytes of a dense tensor of static shape, at most the largest
/// number; 0 for any other type.
int64_t getTensorBytes(mlir::Type type);

} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_ELEMENTTYPE_H
