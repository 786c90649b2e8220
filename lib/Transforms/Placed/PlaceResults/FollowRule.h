//===- FollowRule.h - An operation in parts of a result ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PLACED_PLACERESULTS_FOLLOWRULE_H
#define WHALE_LIB_TRANSFORMS_PLACED_PLACERESULTS_FOLLOWRULE_H

#include "mlir/IR/Operation.h"
#include "whale/Placement/Placement.h"

namespace whale {

/// Placements of an operation's operands and results that agree.
struct OperationPlacements {
  llvm::SmallVector<Placement> operands, results;
};

/// Returns the placements with which devices compute the parts of a result that
/// they are wanted to hold, and nothing else; nullopt where the operation's
/// rule doesn't allow that, or it has none. Operands are whole along what the
/// result does not have.
std::optional<OperationPlacements>
followRule(mlir::Operation *op, unsigned result, const Placement &wanted);

/// The same elements on the same devices, written as other operations have
/// them: in dimensions of the tensor where that can be, and all replicas of a
/// whole value in one list.
Placement simplify(const Placement &placement, llvm::ArrayRef<int64_t> shape);

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PLACED_PLACERESULTS_FOLLOWRULE_H
