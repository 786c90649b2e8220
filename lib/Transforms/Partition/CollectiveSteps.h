//===- CollectiveSteps.h - Several collectives for one ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PARTITION_COLLECTIVESTEPS_H
#define WHALE_LIB_TRANSFORMS_PARTITION_COLLECTIVESTEPS_H

#include "whale/Dialect/Whale/IR/CollectiveKinds.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace whale {

/// Creates a collective that does one step of what `op` does, with a channel of
/// its own.
mlir::Operation *createStep(mlir::OpBuilder &builder, CollectiveOp op,
                            const Step &step, int64_t channel,
                            mlir::Value input, mlir::Type type);

/// Calls `divide` for each collective of the classes that `wants` is true of,
/// with the first of `more` new channels: the same ones for the parts that all
/// classes have in a collective.
void divideCollectives(
    llvm::ArrayRef<ScheduleOp> classes, int64_t more,
    llvm::function_ref<bool(CollectiveOp)> wants,
    llvm::function_ref<void(CollectiveOp, int64_t channel)> divide);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PARTITION_COLLECTIVESTEPS_H
