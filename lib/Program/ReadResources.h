//===- ReadResources.h - Constants from a text's resources ------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_READRESOURCES_H
#define WHALE_LIB_PROGRAM_READRESOURCES_H

#include "mlir/IR/BuiltinOps.h"

namespace whale {

/// Replaces constants that are at the end of the text (`dense_resource`) by
/// ones that passes read (`dense`). Must come before the module is verified.
llvm::LogicalResult readResources(mlir::ModuleOp module);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_READRESOURCES_H
