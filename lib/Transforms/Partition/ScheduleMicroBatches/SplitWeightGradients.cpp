//===- SplitWeightGradients.cpp - What no other stage waits for -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the block of a micro-batch, with its task graphs. Out: in place of a
// backward task graph two: what other task graphs wait for, and, with
// whale.weight_gradient, what can be computed later.
//
// An operation can wait if all its uses are in operations that can wait, or if
// the task graph yields it and the end of the micro-batch alone uses that. So
// one walk from the last operation to the first finds all of them. What they
// read of the others becomes a result of the first part. Each part gets its
// share of the FLOPs. A task graph stays whole if all of it can wait, or
// nothing.
//
// Cost: linear in operations and their uses, but that each value that goes from
// the first part to the second is searched among the results of the first:
// quadratic in these.
//
//===----------------------------------------------------------------------===//

#include "SplitWeightGradients.h"

#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Transforms/OpCost.h"

using namespace mlir;

namespace whale {

using Operations = llvm::SetVector<Operation *>;

/// Whether all uses of what `op` makes are in `late` operations, or values that
/// the task graph yields and that are used by the end of the micro-batch alone.
static bool canWait(Operation *op, TaskGraphOp graph, const Operations &late) {
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

/// The operations of the TaskGraph that can wait, last first.
static Operations findLate(TaskGraphOp graph) {
  Operations late;
  for (Operation &op :
       llvm::reverse(graph.getBody().front().without_terminator()))
    if (canWait(&op, graph, late))
      late.insert(&op);
  return late;
}

/// What these operations read of the others of their block.
static llvm::SetVector<Value> findCrossing(const Operations &late) {
  llvm::SetVector<Value> crossing;
  for (Operation *op : late)
    forEachRead(op, [&](Value value) {
      Operation *producer = value.getDefiningOp();
      if (producer && producer->getBlock() == op->getBlock() &&
          !late.contains(producer))
        crossing.insert(value);
    });
  return crossing;
}

namespace {
/// One of the two TaskGraphs that replace one.
struct Part {
  SmallVector<Value> yields;
  TaskGraphOp graph;

  void create(OpBuilder &builder, TaskGraphOp like) {
    graph = TaskGraphOp::create(
        builder, like.getLoc(), TypeRange(ValueRange(yields)),
        like.getNameAttr(), like.getPhaseAttr(), like.getStrategyAttr(),
        like.getVirtualDeviceAttr(), like.getFlopsAttr(), like.getBytesAttr());
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&graph.getBody());
    YieldOp::create(builder, like.getLoc(), yields);
  }
  Block &body() { return graph.getBody().front(); }
  Value resultOf(Value yielded) {
    return graph.getResult(llvm::find(yields, yielded) - yields.begin());
  }
};
} // namespace

/// FLOPs are those of all moments; each part has its share of them.
static void shareFlops(int64_t flops, Part &first, Part &second) {
  int64_t late = flopsOf(second.body());
  int64_t all = addCosts(flopsOf(first.body()), late);
  int64_t share =
      all == 0 ? 0 : int64_t(double(flops) * double(late) / double(all));
  second.graph.setFlops(share);
  first.graph.setFlops(flops - share);
}

static void split(TaskGraphOp graph) {
  Block &body = graph.getBody().front();
  Operations late = findLate(graph);
  if (late.empty() || late.size() == body.getOperations().size() - 1)
    return;

  // The first part yields what it yielded of its own, and what the second
  // uses of it.
  Part first, second;
  auto partOf = [&](Operation *op) -> Part & {
    return late.contains(op) ? second : first;
  };
  for (Value yielded : graph.getYield()->getOperands())
    partOf(yielded.getDefiningOp()).yields.push_back(yielded);
  llvm::SetVector<Value> crossing = findCrossing(late);
  for (Value value : crossing)
    if (!llvm::is_contained(first.yields, value))
      first.yields.push_back(value);

  OpBuilder builder(graph);
  first.create(builder, graph);
  second.create(builder, graph);
  second.graph->setAttr(kWeightGradientAttr, builder.getUnitAttr());
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator()))
    op.moveBefore(partOf(&op).body().getTerminator());
  for (auto [result, yielded] :
       llvm::zip(graph.getResults(), graph.getYield()->getOperands()))
    result.replaceAllUsesWith(
        partOf(yielded.getDefiningOp()).resultOf(yielded));
  for (Value value : crossing)
    value.replaceUsesWithIf(first.resultOf(value), [&](OpOperand &use) {
      return second.graph->isAncestor(use.getOwner());
    });
  shareFlops(graph.getFlops().value_or(0), first, second);
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
