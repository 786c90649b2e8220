//===- CollectiveKinds.h - Steps and their operations -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which operation carries out which step of the resolver.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_DIALECT_WHALE_IR_COLLECTIVEKINDS_H
#define WHALE_DIALECT_WHALE_IR_COLLECTIVEKINDS_H

#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Placement/Cells.h"

namespace whale {

/// The name of the operation that carries out a step: `whale.all_reduce`.
llvm::StringRef collectiveName(StepKind kind);

/// The kind of step that a collective carries out.
StepKind stepKindOf(CollectiveOp op);

} // namespace whale

#endif // WHALE_DIALECT_WHALE_IR_COLLECTIVEKINDS_H
