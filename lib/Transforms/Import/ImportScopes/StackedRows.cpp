//===- StackedRows.cpp - Whose the stacks of a scan are
//--------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StackedRows.h"
#include "StepAnalysis.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

namespace {

using Strategies = llvm::DenseMap<Operation *, StrategyAttr>;

/// The scope of all that use a value, beyond loops and moves of its data; none
/// if they differ. The moves are added to `moves`.
std::optional<StrategyAttr> scopeOfUsers(Value root,
                                         const Strategies &strategies,
                                         SmallVectorImpl<Operation *> &moves) {
  std::optional<StrategyAttr> scope;
  SmallVector<Value> values{root};
  while (!values.empty())
    for (OpOperand &use : values.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      StrategyAttr own = strategies.lookup(user);
      if (auto loop = dyn_cast<hlo::WhileOp>(user)) {
        values.push_back(loop.getBody().getArgument(use.getOperandNumber()));
      } else if (isa<hlo::ReturnOp>(user)) {
        // Carried on by the loop that reads it.
      } else if (!own && movesData(user)) {
        moves.push_back(user);
        llvm::append_range(values, user->getResults());
      } else if (scope && *scope != own) {
        return std::nullopt;
      } else {
        scope = own;
      }
    }
  return scope;
}

/// The stack whose row an update is; null if it isn't one.
Value stackOf(hlo::DynamicUpdateSliceOp update) {
  auto loop = dyn_cast<hlo::WhileOp>(update->getParentOp());
  auto argument = dyn_cast<BlockArgument>(update.getOperand());
  if (!loop || !argument || argument.getOwner() != update->getBlock())
    return nullptr;
  unsigned index = argument.getArgNumber();
  Operation *terminator = update->getBlock()->getTerminator();
  return terminator->getOperand(index) == update.getResult()
             ? loop.getResult(index)
             : Value();
}

} // namespace

void joinStackedRows(Block &body, Strategies &strategies) {
  // A scope that is nowhere else in the loop may be on other devices.
  llvm::SmallDenseSet<StrategyAttr> scopes;
  for (Operation &op : body)
    scopes.insert(strategies.lookup(&op));
  for (Operation &op : body) {
    if (strategies.lookup(&op))
      continue;
    SmallVector<Operation *> moves{&op}, reads;
    auto update = dyn_cast<hlo::DynamicUpdateSliceOp>(op);
    std::optional<StrategyAttr> scope;
    if (isa<hlo::DynamicSliceOp>(op)) {
      scope = scopeOfUsers(op.getResult(0), strategies, moves);
    } else if (Value stack = update ? stackOf(update) : Value()) {
      scope = scopeOfUsers(stack, strategies, reads);
      for (Operation *from = update.getUpdate().getDefiningOp();
           from && from->getBlock() == &body && from->hasOneUse() &&
           movesData(from) && !strategies.lookup(from);
           from = from->getOperand(0).getDefiningOp())
        moves.push_back(from);
    }
    for (Operation *move : moves)
      if (scope && *scope && scopes.contains(*scope))
        strategies.try_emplace(move, *scope);
  }
}

} // namespace whale
