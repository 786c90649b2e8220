//===- RecomputeCheapValues.cpp - Compute again instead of keep -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: task graphs with their placements, some in loops over micro-batches. Out:
// the same, in which cheap values are computed again where they are used.
//
// A value that a task graph in micro-batches uses and another one has made is
// kept between them, as often as micro-batches are in flight. Where
// whale-fuse-kernels would compute it again if it saw both (a mask, a mean
// taken to the shape of what it is subtracted from), the task graph gets the
// operations that make it, and only what these start from is kept. Cost: for
// each value at most 256 operations are looked at, with all users of each. What
// is found is then rewritten one by one, each time with a copy of the table of
// what leaves task graphs: the square of the values found.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/IRMapping.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/FusedLoops.h"
#include "whale/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
#define GEN_PASS_DEF_RECOMPUTECHEAPVALUES
#include "whale/Transforms/Partition/Passes.h.inc"

namespace {

/// A value that a task graph is to compute itself.
struct Recomputed {
  TaskGraphOp graph;
  Value value;
  CheapExpression expression;
};

/// Whether all that uses the value in the task graph are loops of its own
/// block.
bool isUsedByLoops(Value value, TaskGraphOp graph) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return !graph->isAncestor(user) ||
           (becomesLoop(user) && user->getParentOp() == graph);
  });
}

/// Whether every device that has `value` has `leaf`, too.
bool isThere(Value leaf, Value value) {
  PlacementAttr from = getPlacement(leaf), to = getPlacement(value);
  return from && to &&
         llvm::all_of(to.getValue().devices(), [&](DeviceId device) {
           return from.getValue().contains(device);
         });
}

/// What a task graph of a loop over micro-batches is to compute again.
void findRecomputed(TaskGraphOp graph, SmallVectorImpl<Recomputed> &found) {
  auto loop = graph->getParentOfType<MicroBatchesOp>();
  // Without stages a rank computes the task graphs of a micro-batch one behind
  // the other, and whale-fuse-kernels sees them all.
  bool isPipelined = loop.getOrder().has_value();
  llvm::SetVector<Value> captures;
  graph.getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (operand.getDefiningOp<TaskGraphOp>())
        captures.insert(operand);
  });
  for (Value value : captures) {
    bool isOfMoment = loop->isAncestor(value.getDefiningOp());
    if ((isOfMoment && !isPipelined) || !isUsedByLoops(value, graph))
      continue;
    Value inner = lookThroughTaskGraph(value);
    if (!inner.getDefiningOp<hlo::ConstantOp>() && inner.getDefiningOp() &&
        inner.getDefiningOp()->getName().getDialectNamespace() ==
            hlo::StablehloDialect::getDialectNamespace())
      if (std::optional<CheapExpression> expression =
              CheapExpression::find(inner);
          expression && llvm::all_of(expression->leaves, [&](Value leaf) {
            return isThere(leaf, value);
          }))
        found.push_back({graph, value, std::move(*expression)});
  }
}

struct RecomputeCheapValues
    : impl::RecomputeCheapValuesBase<RecomputeCheapValues> {
  void runOnOperation() override {
    SmallVector<TaskGraphOp> graphs;
    getOperation().walk([&](TaskGraphOp graph) {
      if (graph->getParentOfType<MicroBatchesOp>())
        graphs.push_back(graph);
    });
    // Last to first: what computes values of a task graph again copies its
    // operations as they were before it got copies itself.
    SmallVector<Recomputed> found;
    for (TaskGraphOp graph : llvm::reverse(graphs))
      findRecomputed(graph, found);
    // What is made in a task graph leaves it as a result.
    llvm::MapVector<Operation *, llvm::SetVector<Value>> leaving;
    for (const Recomputed &one : found)
      for (Value leaf : one.expression.leaves)
        if (auto graph =
                dyn_cast<TaskGraphOp>(leaf.getParentBlock()->getParentOp()))
          leaving[graph].insert(leaf);
    IRMapping outside;
    for (auto &[op, leaves] : leaving)
      leaves.remove_if([&, op = op](Value leaf) {
        auto graph = cast<TaskGraphOp>(op);
        auto yielded = graph.getYield()->getOperands();
        auto it = llvm::find(yielded, leaf);
        if (it == yielded.end())
          return false;
        outside.map(leaf, graph.getResult(it.getIndex()));
        return true;
      });
    leaving.remove_if([](const auto &entry) { return entry.second.empty(); });
    llvm::DenseMap<Operation *, TaskGraphOp> replaced;
    for (auto &[op, leaves] : leaving)
      replaced[op] = addResults(cast<TaskGraphOp>(op), leaves.getArrayRef(),
                                outside, found);
    for (const Recomputed &one : found) {
      TaskGraphOp graph = one.graph;
      if (auto it = replaced.find(graph); it != replaced.end())
        graph = it->second;
      recompute(graph, one, outside);
    }
    for (auto &[op, leaves] : leaving)
      op->erase();
  }

private:
  static SmallVector<Value> leavesOf(const IRMapping &outside, Value result) {
    SmallVector<Value> leaves;
    for (auto [leaf, known] : outside.getValueMap())
      if (known == result)
        leaves.push_back(leaf);
    return leaves;
  }

  /// The task graph with more results; `outside` says which one each leaf is.
  static TaskGraphOp addResults(TaskGraphOp graph, ArrayRef<Value> leaves,
                                IRMapping &outside,
                                MutableArrayRef<Recomputed> found) {
    TaskGraphOp more = withResults(graph, leaves);
    unsigned count = graph->getNumResults();
    for (auto [old, result] :
         llvm::zip(graph->getResults(), more->getResults())) {
      for (Value leaf : leavesOf(outside, old))
        outside.map(leaf, result);
      for (Recomputed &one : found)
        if (one.value == old)
          one.value = result;
    }
    for (auto [leaf, result] :
         llvm::zip_equal(leaves, more->getResults().drop_front(count)))
      outside.map(leaf, result);
    return more;
  }

  static void recompute(TaskGraphOp graph, const Recomputed &one,
                        const IRMapping &outside) {
    // Behind what is received before, so that no segment ends between them.
    Block &block = graph.getBody().front();
    Operation *first = block.getTerminator();
    for (Operation *user : one.value.getUsers())
      if (graph->isAncestor(user) && user->isBeforeInBlock(first))
        first = user;
    OpBuilder builder(first);
    IRMapping mapping = outside;
    Value copy;
    for (Operation *op : one.expression.ops)
      copy = builder.clone(*op, mapping)->getResult(0);
    Value value = one.value;
    value.replaceUsesWithIf(copy, [&](OpOperand &use) {
      return graph->isAncestor(use.getOwner());
    });
  }
};

} // namespace
} // namespace whale
