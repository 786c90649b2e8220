//===- ChannelEmitter.h - Collectives of a program --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_PROGRAM_CHANNELEMITTER_H
#define WHALE_LIB_PROGRAM_CHANNELEMITTER_H

#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/ProgramFormat/Program.h"

namespace whale {

/// Fails at the first collective with which a program lists more pieces than it
/// may, as far as that is known from their number alone; emitChannels refuses
/// the rest.
mlir::LogicalResult checkPieces(mlir::ModuleOp module);

/// The channels that the collectives of the schedules name, with all ranks that
/// take part; those that do the same share it.
mlir::FailureOr<std::map<int64_t, format::Shared<format::Collective>>>
emitChannels(mlir::ModuleOp module, llvm::ArrayRef<ScheduleOp> classes);

} // namespace whale

#endif // WHALE_LIB_PROGRAM_CHANNELEMITTER_H
