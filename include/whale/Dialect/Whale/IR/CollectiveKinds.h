//===- CollectiveKinds.h - Steps and their operations -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Relates the kinds of resolver steps to the collective operations.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_COLLECTIVEKINDS_H
#define WHALE_DIALECT_WHALE_IR_COLLECTIVEKINDS_H

#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Placement/Cells.h"

namespace whale {

/// Returns the name of the operation that performs a step: `whale.all_reduce`.
llvm::StringRef collectiveName(StepKind kind);

/// Returns the kind of step that a collective performs.
StepKind stepKindOf(CollectiveOp op);

} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_COLLECTIVEKINDS_H
