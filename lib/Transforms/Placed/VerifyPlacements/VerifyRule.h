//===- VerifyRule.h - Placements around one operation -----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_VERIFYPLACEMENTS_VERIFYRULE_H
#define WHALE_LIB_TRANSFORMS_PLACED_VERIFYPLACEMENTS_VERIFYRULE_H

#include "whale/Sharding/OpRule.h"

namespace whale {

/// Whether an operation can be computed where its operands and results are
/// placed: on every device each factor of its rule has the same interval in all
/// tensors that have it, and what the rule doesn't mention is whole. Emits an
/// error where not.
llvm::LogicalResult verifyRule(mlir::Operation *op, const OpRule &rule);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_VERIFYPLACEMENTS_VERIFYRULE_H
