//===- SplitWeightGradients.cpp - What no other stage waits for -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitWeightGradients.h"

#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Transforms/OpCost.h"

using namespace mlir;

namespace whale {

/// Whether all uses of what `op` makes are in `late` operations, or values that
/// the task graph yields and that are used by the end of the micro-batch alone.
static bool canWait(Operation *op, TaskGraphOp graph,
                    const llvm::DenseSet<Operation *> &late) {
  auto leaves = [](Value value) {
    return llvm::all_of(value.getUsers(), [](Operation *user) {
      auto yield = dyn_cast<YieldOp>(user);
      return yield && isa<MicroBatchesOp>(yield->getParentOp());
    });
  };
  Block &body = graph.getBody().front();
  for (OpOperand &use : op->getUses()) {
    Operation *user = body.findAncestorOpInBlock(*use.getOwner());
    if (user == body.getTerminator()
            ? !leaves(graph.getResult(use.getOperandNumber()))
            : !late.contains(user))
      return false;
  }
  return true;
}

static int64_t flopsOf(Block &block) {
  int64_t flops = 0;
  for (Operation &op : block.without_terminator())
    flops = addCosts(flops, opFlops(&op));
  return flops;
}

static void split(TaskGraphOp graph) {
  Block &body = graph.getBody().front();
  llvm::DenseSet<Operation *> late;
  SmallVector<Operation *> moved;
  for (Operation &op : llvm::reverse(body.without_terminator()))
    if (canWait(&op, graph, late)) {
      late.insert(&op);
      moved.push_back(&op);
    }
  if (moved.empty() || moved.size() == body.getOperations().size() - 1)
    return;

  // The first part yields what it yielded of its own, and what the second
  // uses of it.
  OpBuilder builder(graph);
  SmallVector<Value> early, lateYields;
  SmallVector<std::pair<Value, Value>> replaced;
  for (auto [result, yielded] :
       llvm::zip(graph.getResults(), graph.getYield()->getOperands()))
    (late.contains(yielded.getDefiningOp()) ? lateYields : early)
        .push_back(yielded);
  llvm::SetVector<Value> crossing;
  for (Operation *op : moved)
    forEachRead(op, [&](Value value) {
      Operation *producer = value.getDefiningOp();
      if (producer && producer->getBlock() == &body && !late.contains(producer))
        crossing.insert(value);
    });
  for (Value value : crossing)
    if (!llvm::is_contained(early, value))
      early.push_back(value);

  auto create = [&](ValueRange yields) {
    auto part = TaskGraphOp::create(builder, graph.getLoc(), yields.getTypes(),
                                    graph.getNameAttr(), graph.getPhaseAttr(),
                                    graph.getStrategyAttr(),
                                    graph.getVirtualDeviceAttr(),
                                    graph.getFlopsAttr(), graph.getBytesAttr());
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&part.getBody());
    return part;
  };
  TaskGraphOp first = create(early), second = create(lateYields);
  second->setAttr(kWeightGradientAttr, builder.getUnitAttr());
  int64_t all = flopsOf(body);
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator()))
    op.moveBefore(
        &(late.contains(&op) ? second : first).getBody().front(),
        (late.contains(&op) ? second : first).getBody().front().end());
  for (auto [result, yielded] :
       llvm::zip(graph.getResults(), graph.getYield()->getOperands())) {
    bool isLate = late.contains(yielded.getDefiningOp());
    ArrayRef<Value> list = isLate ? lateYields : early;
    size_t index = llvm::find(list, yielded) - list.begin();
    result.replaceAllUsesWith((isLate ? second : first).getResult(index));
  }
  for (auto [part, yields] : {std::pair(first, ArrayRef<Value>(early)),
                              std::pair(second, ArrayRef<Value>(lateYields))}) {
    builder.setInsertionPointToEnd(&part.getBody().front());
    YieldOp::create(builder, graph.getLoc(), yields);
  }
  for (Value value : crossing) {
    size_t index = llvm::find(early, value) - early.begin();
    value.replaceUsesWithIf(first.getResult(index), [&](OpOperand &use) {
      return second->isAncestor(use.getOwner());
    });
  }
  // FLOPs are those of all moments; each part has its share of them.
  int64_t flops = graph.getFlops().value_or(0);
  int64_t share = all == 0 ? 0
                           : int64_t(double(flops) *
                                     double(flopsOf(second.getBody().front())) /
                                     double(all));
  second.setFlops(share);
  first.setFlops(flops - share);
  graph.erase();
}

void splitWeightGradients(Block &microBatch) {
  SmallVector<TaskGraphOp> graphs;
  for (auto graph : microBatch.getOps<TaskGraphOp>())
    if (graph.getPhase() == Phase::Backward)
      graphs.push_back(graph);
  for (TaskGraphOp graph : graphs)
    split(graph);
}

} // namespace whale
