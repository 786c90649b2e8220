//===- InputAttributes.h - What annotated text may say ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_INPUTATTRIBUTES_H
#define WHALE_LIB_PROGRAM_INPUTATTRIBUTES_H

#include "mlir/IR/BuiltinOps.h"

namespace whale {

/// Emits an error where annotated text has an attribute that only passes write,
/// one of @main's on another function, a device that the cluster of `devices`
/// devices lacks, or a result that feeds an argument of another type; also
/// where the attribute would not be read. The verifier has checked what no
/// cluster is needed for.
mlir::LogicalResult checkInputAttributes(mlir::ModuleOp module,
                                         int64_t devices);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_INPUTATTRIBUTES_H
