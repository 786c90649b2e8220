//===- InlineBody.h - Put a function in the place of its call ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_IMPORT_INLINEBODY_H
#define WHALE_LIB_TRANSFORMS_IMPORT_INLINEBODY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace whale {

/// Replaces a call by a copy of the callee's only block; `visit` gets each
/// operation of it.
void inlineBody(
    mlir::Operation *call, mlir::func::FuncOp callee,
    llvm::function_ref<void(mlir::Operation *)> visit = [](mlir::Operation *) {
    });

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_IMPORT_INLINEBODY_H
