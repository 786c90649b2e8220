//===- PrepareInput.h - The input with its options --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_PREPAREINPUT_H
#define WHALE_LIB_PROGRAM_PREPAREINPUT_H

#include "mlir/IR/BuiltinOps.h"
#include "whale/Program/Compile.h"

namespace whale {

/// Whether the module holds schedules of rank classes already (level 4).
bool isPartitioned(mlir::ModuleOp module);

/// Adds to a module what the options say and the text lacks: the cluster, the
/// default strategy, batch arguments, feedback. Checks that it is one that can
/// be compiled.
llvm::LogicalResult prepareInput(mlir::ModuleOp module,
                                 const CompileOptions &options);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_PREPAREINPUT_H
