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
#include "whale/Step/CostModel.h"
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

unsigned countArithmetic(Operation *op) {
  if (isView(op) || isa<hlo::ConvertOp>(op))
    return 0;
  bool isLight = isa<hlo::AbsOp, hlo::AddOp, hlo::AndOp, hlo::CompareOp,
                     hlo::MaxOp, hlo::MinOp, hlo::MulOp, hlo::NegOp, hlo::NotOp,
                     hlo::OrOp, hlo::SelectOp, hlo::SubtractOp, hlo::XorOp>(op);
  return isLight ? 1 : kMostCheapArithmetic + 1;
}

bool isFarSmaller(Value value, Operation *op) {
  constexpr int64_t kFarSmaller = 16;
  auto type = dyn_cast<ShapedType>(value.getType());
  auto result = op->getNumResults() == 0
                    ? nullptr
                    : dyn_cast<ShapedType>(op->getResult(0).getType());
  return type && result &&
         type.getNumElements() * kFarSmaller <= result.getNumElements();
}

bool isCheap(Operation *op, unsigned arithmetic,
             const llvm::SmallDenseSet<Value, 8> &reads) {
  return op->getNumResults() > 0 && arithmetic <= kMostCheapArithmetic &&
         llvm::count_if(
             reads, [&](Value value) { return !isFarSmaller(value, op); }) <= 1;
}

bool isStored(Operation *op, const StepMeshes &meshes, bool isCheap,
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
  return !isOneBlock && !isCheap && (keepsMore(op) || users.size() > 1);
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
