//===- NarrowReductions.cpp - whale-narrow-reductions ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main with every change of placement. Out: the same, where those that sum
// gradients say in which type elements are sent. What a backward has made is a
// gradient of a parameter if no other backward reads its sum.
//
// Cost: linear in the changes of placement and their users.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_NARROWREDUCTIONS
#include "whale/Transforms/Placed/Passes.h.inc"

namespace {

/// Whether a backward has made it, in one moment or in several.
bool isMadeByBackward(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto graph = dyn_cast_or_null<TaskGraphOp>(op))
    return graph.getPhase() == Phase::Backward;
  if (auto moments = dyn_cast_or_null<MicroBatchesOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    return isMadeByBackward(
        moments.getBody(0).getTerminator()->getOperand(number));
  }
  auto graph = op ? op->getParentOfType<TaskGraphOp>() : TaskGraphOp();
  return graph && graph.getPhase() == Phase::Backward;
}

/// Whether updates read it, or who called the step, and nothing else: by
/// itself, put into a stack, or added up by micro-batches.
bool isForUpdates(Value root) {
  llvm::SetVector<Value> values;
  values.insert(root);
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses()) {
      Operation *user = use.getOwner();
      auto graph = user->getParentOfType<TaskGraphOp>();
      if (isa<func::ReturnOp>(user) ||
          (graph && graph.getPhase() == Phase::Apply))
        continue;
      auto loop = dyn_cast<stablehlo::WhileOp>(user->getParentOp());
      if (isa<YieldOp>(user)) {
        values.insert_range(resultsOfYielded(use));
      } else if (isa<stablehlo::ReturnOp>(user) && loop) {
        values.insert(loop->getResult(use.getOperandNumber()));
        values.insert(loop.getBody().getArgument(use.getOperandNumber()));
      } else if (isa<stablehlo::DynamicUpdateSliceOp, stablehlo::ReshapeOp,
                     stablehlo::TransposeOp>(user)) {
        values.insert(user->getResult(0));
      } else {
        return false;
      }
    }
  return true;
}

class NarrowReductions
    : public whale::impl::NarrowReductionsBase<NarrowReductions> {
  using NarrowReductionsBase::NarrowReductionsBase;

  void runOnOperation() override {
    Config config(getOperation());
    Type wire = config.getWireType();
    if (!wire)
      return;
    int64_t count = 0, bytes = 0, before = 0;
    Builder builder(&getContext());
    getOperation()->walk([&](ReshardOp op) {
      Type element = op.getInput().getType().getElementType();
      if (op.getFrom().getValue().reduction() != Reduction::Sum ||
          !(element.isF32() || element.isBF16() || element.isF16()) ||
          !isMadeByBackward(op.getInput()) || !isForUpdates(op.getResult()))
        return;
      op.setWire(wire);
      if (wire.isF16())
        op.setScaleAttr(builder.getF64FloatAttr(double(config.getWireScale())));
      ++count;
      // Partial sums of halves are of f32.
      before += op.getInput().getType().getNumElements() * 4;
      bytes += op.getInput().getType().getNumElements() * 2;
    });
    emitRemark(getOperation().getLoc())
        << (wire.isF16() ? Config::kF16Wire : Config::kBF16Wire) << ": "
        << count << " sums of gradients are sent as "
        << (wire.isF16() ? "f16" : "bf16") << ", " << bytes
        << " bytes in place of " << before;
  }
};

} // namespace
} // namespace whale
