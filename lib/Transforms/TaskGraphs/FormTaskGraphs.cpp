//===- FormTaskGraphs.cpp - Regions of one strategy and phase -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main, with a strategy and a phase for each operation. Out: the same as a
// sequence of whale.task_graph.
//
// The operations of a block are ordered so that those of one strategy and phase
// are in few runs (FormTaskGraphs/Schedule.h), and each run is moved into a
// task graph, which yields what others use. Loops over micro-batches are formed
// inside, and nothing moves across them. Before, constants and iotas are copied
// for each strategy and phase that uses them. Cost: linear in operations and
// uses, but for the order: sorted sets take n log n, and to begin a run, all
// operations of each strategy and phase that could come next are looked at,
// runs times operations.
//
//===----------------------------------------------------------------------===//

#include "FormTaskGraphs/Schedule.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/ScopePath.h"
#include "whale/Transforms/TaskGraphNames.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace whale {
#define GEN_PASS_DEF_FORMTASKGRAPHS
#include "whale/Transforms/TaskGraphs/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

namespace {

/// Costs nothing to compute again: goes into every region that uses it.
bool isCopied(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() || isa<stablehlo::IotaOp>(op);
}

class FormTaskGraphs : public whale::impl::FormTaskGraphsBase<FormTaskGraphs> {
  using FormTaskGraphsBase::FormTaskGraphsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> found = getMainFunction(module);
    if (failed(found))
      return signalPassFailure();
    func::FuncOp main = *found;
    defaultStrategy = module->getAttrOfType<StrategyAttr>(kDefaultStrategyAttr);
    WalkResult formed = main.walk([](TaskGraphOp graph) {
      graph.emitError("is in '@main', whose task graphs are to be formed");
      return WalkResult::interrupt();
    });
    if (formed.wasInterrupted())
      return signalPassFailure();
    names = TaskGraphNames(main, defaultStrategy);
    formIn(main.front());
  }

  /// Forms the task graphs of a block, those of micro-batches in it apart:
  /// nothing moves across them.
  void formIn(Block &block) {
    for (auto loop : block.getOps<MicroBatchesOp>())
      for (Region &region : loop.getBodies())
        formIn(region.front());
    body = &block;
    copyConstants();
    SmallVector<Operation *> ops;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isa<MicroBatchesOp>(op) && !op.hasTrait<OpTrait::IsTerminator>()) {
        ops.push_back(&op);
        continue;
      }
      formBetween(ops, &op);
      ops.clear();
    }
  }

  void formBetween(ArrayRef<Operation *> ops, Operation *end) {
    SmallVector<TaskGraphKey> keys =
        llvm::map_to_vector(ops, [this](Operation *op) { return keyOf(op); });
    SmallVector<size_t> order = scheduleByKey(ops, keys);
    for (size_t first = 0, last; first < order.size(); first = last) {
      SmallVector<Operation *> piece;
      for (last = first;
           last < order.size() && keys[order[last]] == keys[order[first]];
           ++last)
        piece.push_back(ops[order[last]]);
      form(keys[order[first]], piece, end);
    }
  }

  TaskGraphKey keyOf(Operation *op) {
    auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttr);
    return {strategy ? strategy : defaultStrategy, phaseOf(op)};
  }

  /// Gives the users of each strategy and phase a copy of their own; the
  /// terminator and loops over micro-batches use the original.
  void copyConstants() {
    for (Operation &op :
         llvm::make_early_inc_range(body->without_terminator())) {
      if (!isCopied(&op))
        continue;
      DenseMap<std::pair<Attribute, unsigned>, Operation *> copies;
      for (OpOperand &use : llvm::make_early_inc_range(op.getUses())) {
        Operation *user = body->findAncestorOpInBlock(*use.getOwner());
        if (user == body->getTerminator() || isa<MicroBatchesOp>(user))
          continue;
        auto [strategy, phase] = keyOf(user);
        Operation *&copy = copies[{strategy, static_cast<unsigned>(phase)}];
        if (!copy) {
          copy = OpBuilder(&op).clone(op);
          setKey(copy, {strategy, phase});
        }
        use.set(copy->getResult(0));
      }
      if (op.use_empty())
        op.erase();
    }
  }

  void setKey(Operation *op, TaskGraphKey key) {
    if (key.strategy)
      op->setAttr(kStrategyAttr, key.strategy);
    else
      op->removeAttr(kStrategyAttr);
    op->setAttr(kPhaseAttr, PhaseAttr::get(op->getContext(), key.phase));
  }

  /// The location of a piece in the user's program: where its scope begins, if
  /// operations outside of it have joined it.
  static Location placeOf(ArrayRef<Operation *> piece) {
    for (Operation *op : piece) {
      llvm::Expected<ScopePath> path = parseScopePath(namePath(op->getLoc()));
      if (!path)
        llvm::consumeError(path.takeError());
      else if (path->scope)
        return op->getLoc();
    }
    // JAX gives constants the line of the call.
    auto *first = llvm::find_if(piece, [](Operation *op) {
      return !op->hasTrait<OpTrait::ConstantLike>();
    });
    return (first == piece.end() ? piece.front() : *first)->getLoc();
  }

  /// Moves the operations of `piece` into a task graph before `end`.
  void form(TaskGraphKey key, ArrayRef<Operation *> piece, Operation *end) {
    DenseSet<Operation *> inside(piece.begin(), piece.end());
    SmallVector<Value> outputs;
    int64_t flops = 0, bytes = 0;
    for (Operation *op : piece) {
      flops = addCosts(flops, opFlops(op));
      bytes = addCosts(bytes, opBytes(op));
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) {
              return !inside.contains(body->findAncestorOpInBlock(*user));
            }))
          outputs.push_back(result);
    }

    if (auto loop = dyn_cast<MicroBatchesOp>(body->getParentOp())) {
      int64_t moments = loop.getNumMoments(body->getParent());
      flops = multiplyCosts(flops, moments);
      bytes = multiplyCosts(bytes, moments);
    }
    OpBuilder builder(end);
    MLIRContext *context = builder.getContext();
    std::string name = names.nameOf(key.strategy);
    auto graph = TaskGraphOp::create(
        builder, inTaskGraph(placeOf(piece), name),
        ValueRange(outputs).getTypes(), builder.getStringAttr(name),
        PhaseAttr::get(context, key.phase), key.strategy,
        /*virtual_device=*/FlatSymbolRefAttr(),
        builder.getI64IntegerAttr(flops), builder.getI64IntegerAttr(bytes));
    Block *block = builder.createBlock(&graph.getBody());
    for (Operation *op : piece) {
      op->moveBefore(block, block->end());
      op->walk([&](Operation *nested) {
        dropKey(nested, key);
        sayTaskGraph(nested, name);
      });
    }
    builder.setInsertionPointToEnd(block);
    YieldOp::create(builder, graph.getLoc(), outputs);
    for (auto [value, result] : llvm::zip_equal(outputs, graph.getResults()))
      value.replaceUsesWithIf(result, [&](OpOperand &use) {
        return !graph->isAncestor(use.getOwner());
      });
  }

  /// Lets what becomes of an operation in a schedule say whose it was.
  static void sayTaskGraph(Operation *op, StringRef name) {
    op->setLoc(inTaskGraph(op->getLoc(), name));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setLoc(inTaskGraph(argument.getLoc(), name));
  }

  /// What the task graph says, its operations needn't repeat.
  void dropKey(Operation *op, TaskGraphKey key) {
    if (op->getAttr(kStrategyAttr) == key.strategy)
      op->removeAttr(kStrategyAttr);
    if (op->getAttr(kPhaseAttr) == PhaseAttr::get(op->getContext(), key.phase))
      op->removeAttr(kPhaseAttr);
  }

  Block *body = nullptr;
  StrategyAttr defaultStrategy;
  TaskGraphNames names;
};

} // namespace
