//===- StoredValues.cpp - Which values are written to memory --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StoredValues.h"

#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/FusedLoops.h"
#include "whale/Transforms/OpCost.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

bool isLoop(Operation *op) {
  return isa<MicroBatchesOp>(op) || hlo::isControlFlow(op);
}

/// Another view of its operand, or something that kernels make of nothing.
static bool isView(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() ||
         isa<hlo::BroadcastInDimOp, hlo::IotaOp, hlo::ReshapeOp,
             hlo::OptimizationBarrierOp>(op);
}

/// Whether to keep what the operation reads takes more than to keep its result.
static bool keepsMore(Operation *op) {
  int64_t bytes = 0;
  for (Value operand : op->getOperands()) {
    Operation *source = operand.getDefiningOp();
    if (!source || !isView(source) || isa<hlo::ReshapeOp>(source))
      bytes += getTensorBytes(operand.getType());
  }
  for (Value result : op->getResults())
    bytes -= getTensorBytes(result.getType());
  return bytes > 0;
}

bool isStored(Operation *op, const StepMeshes &meshes, const Computed &computed,
              bool isUsedElsewhere) {
  if (isView(op))
    return false;
  if (isUsedElsewhere)
    return true;
  SmallVector<OpOperand *> users;
  for (Value result : op->getResults())
    llvm::append_range(users, findUses(result));
  // Taken where the micro-batch needs it.
  if (isa<hlo::SliceOp>(op) && llvm::all_of(users, [](OpOperand *use) {
        return isa<MicroBatchesOp>(use->getOwner());
      }))
    return false;
  if (opClassOf(op) != OpClass::Elementwise || isLoop(op))
    return true;
  auto bodyOf = [](Operation *op) {
    while (auto graph = dyn_cast<TaskGraphOp>(op->getParentOp()))
      op = graph;
    return op->getBlock();
  };
  bool isOneBlock = true;
  for (OpOperand *use : users) {
    Operation *user = use->getOwner();
    bool fuses =
        (opClassOf(user) == OpClass::Elementwise || isa<hlo::ReduceOp>(user)) &&
        !isLoop(user) && !user->hasTrait<OpTrait::IsTerminator>() &&
        bodyOf(user) == bodyOf(op) && meshes.meshOf(user) == meshes.meshOf(op);
    if (!fuses)
      return true;
    isOneBlock &= user->getBlock() == op->getBlock();
  }
  LoopWork work{.arithmetic = computed.arithmetic};
  work.largeInputs = llvm::count_if(
      computed.reads, [&](Value value) { return !isFarSmaller(value, op); });
  LoopRead read;
  read.readers = users.size();
  read.buffers = computed.reads.size() + 1;
  switch (willFuse(work, read)) {
  case Fusion::None:
    return true;
  case Fusion::Again:
    return false;
  case Fusion::Alone:
    return !isOneBlock && !isCheap(work) && keepsMore(op);
  case Fusion::Kept:
    // Users of one block mostly become a kernel of rows.
    return !isOneBlock;
  }
  llvm_unreachable("unknown fusion");
}

bool isStoredSlice(BlockArgument argument) {
  auto loop = dyn_cast<MicroBatchesOp>(argument.getOwner()->getParentOp());
  if (!loop)
    return false;
  int64_t moment = llvm::find(loop.getVariants(),
                              argument.getParentRegion()->getRegionNumber()) -
                   loop.getVariants().begin();
  Value slice = lookThroughTaskGraph(
      loop.getSlice(argument.getArgNumber(), moment).get());
  return slice.getDefiningOp<hlo::SliceOp>() &&
         !llvm::all_of(argument.getUsers(), [](Operation *user) {
           return opClassOf(user) == OpClass::Elementwise ||
                  isa<hlo::ReduceOp>(user);
         });
}

} // namespace whale
