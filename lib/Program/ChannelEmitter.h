//===- ChannelEmitter.h - Collectives as JSON -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_CHANNELEMITTER_H
#define WHALE_LIB_PROGRAM_CHANNELEMITTER_H

#include "Json.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace whale {

/// The manifest's `channels`: the name and the printed JSON of each channel
/// that the collectives of the functions name, with all ranks that take part.
mlir::FailureOr<std::vector<std::pair<std::string, std::string>>>
emitChannels(mlir::ModuleOp module, llvm::ArrayRef<mlir::func::FuncOp> classes);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_CHANNELEMITTER_H
