//===- ForwardChain.cpp - What a forward makes and who uses it ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a block of placed task graphs, and the devices of some of them. Out: the
// operations of their forwards in order, and the uses of what these make, also
// outside of the task graphs that the values leave. Cost: linear in operations
// and uses.
//
//===----------------------------------------------------------------------===//

#include "ForwardChain.h"

#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleRecomputeOps.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/Placed/Pipeline.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

Attribute groupsOf(TaskGraphOp graph) {
  VirtualDeviceOp devices = devicesOf(graph);
  return devices ? devices.getGroupsAttr() : Attribute();
}

bool isMadeOfNothing(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() || isa<hlo::IotaOp>(op);
}

bool isLight(Operation *op) {
  if (isa<hlo::SortOp, hlo::GatherOp, hlo::ScatterOp, hlo::ReduceWindowOp,
          hlo::SelectAndScatterOp, hlo::RngBitGeneratorOp>(op))
    return false;
  OpClass kind = opClassOf(op);
  return kind == OpClass::Elementwise || kind == OpClass::Reduction ||
         isa<hlo::BroadcastInDimOp, hlo::ConcatenateOp, hlo::ConvertOp,
             hlo::PadOp, hlo::ReshapeOp, hlo::ReverseOp, hlo::SliceOp,
             hlo::TransposeOp>(op);
}

bool isProductLike(Operation *op) {
  return !isLight(op) && !isMadeOfNothing(op) && !isa<ReshardOp>(op);
}

ReshardOp findSameGather(ReshardOp gather, TaskGraphOp backward) {
  for (auto other : backward.getBody().getOps<ReshardOp>())
    if (other.getInput() == gather.getInput() &&
        other.getTo() == gather.getTo() && other.getFrom() == gather.getFrom())
      return other;
  return {};
}

ForwardChain::ForwardChain(Block &block, Attribute groups, int64_t device)
    : block(block), groups(groups), device(device) {
  for (auto graph : block.getOps<TaskGraphOp>()) {
    if (groupsOf(graph) != groups)
      continue;
    if (graph.getPhase() == Phase::Backward)
      backwards.push_back(graph);
    if (graph.getPhase() != Phase::Forward)
      continue;
    for (Operation &op : graph.getBody().front().without_terminator()) {
      numbers[&op] = ops.size();
      ops.push_back(&op);
    }
  }
  for (Operation *op : ops)
    for (Value result : op->getResults())
      for (OpOperand *use : findUses(result))
        addUser(use->getOwner(), uses[result]);
}

void ForwardChain::addUser(Operation *user, Uses &uses) {
  auto graph = user->getParentOfType<TaskGraphOp>();
  if (!graph) {
    // What is moved elsewhere is moved when it is made.
    uses.isPinned |= !isa<ReshardOp>(user);
    return;
  }
  Operation *own = graph.getBody().front().findAncestorOpInBlock(*user);
  if (groupsOf(graph) != groups || graph->getBlock() != &block ||
      graph.getPhase() == Phase::Apply) {
    uses.isPinned = true;
  } else if (graph.getPhase() == Phase::Forward) {
    uses.lastForward =
        std::max(uses.lastForward.value_or(0), numbers.lookup(own));
  } else {
    uses.backward.insert(graph);
    uses.isPinned |= isRematerialized(user);
  }
}

std::optional<unsigned> ForwardChain::find(Value value) const {
  auto it = numbers.find(value.getDefiningOp());
  return it == numbers.end() ? std::nullopt : std::optional(it->second);
}

const ForwardChain::Uses &ForwardChain::usesOf(Value value) const {
  auto it = uses.find(value);
  return it == uses.end() ? none : it->second;
}

int64_t ForwardChain::bytesOf(Value value) const {
  auto [it, isNew] = bytes.try_emplace(value, 0);
  if (isNew)
    it->second = getBytesOn(value, device);
  return it->second;
}

double ForwardChain::partOf(Operation *op) const {
  double least = 1;
  auto look = [&](Value value) {
    PlacementAttr placement = getPlacement(value);
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!placement || !type || type.getNumElements() < 2)
      return;
    std::optional<Box> box = placement.getValue().box(device);
    double own = box ? double(box->volume()) : 0;
    least = std::min(least, own / double(type.getNumElements()));
  };
  llvm::for_each(op->getOperands(), look);
  llvm::for_each(op->getResults(), look);
  return least;
}

bool ForwardChain::isGatheredAgain(Operation *op) const {
  auto gather = dyn_cast<ReshardOp>(op);
  return gather && isa<BlockArgument>(gather.getInput()) &&
         !backwards.empty() &&
         llvm::all_of(backwards, [&](TaskGraphOp backward) {
           return findSameGather(gather, backward) != nullptr;
         });
}

bool ForwardChain::isRecomputable(Operation *op) const {
  if (isMadeOfNothing(op) || isGatheredAgain(op))
    return true;
  if (op->getNumResults() == 0 || hlo::isControlFlow(op) ||
      isa<hlo::CustomCallOp, hlo::RngOp, ReshardOp>(op) ||
      !isMemoryEffectFree(op))
    return false;
  bool isComputation =
      isa<hlo::StablehloDialect>(op->getDialect()) || isa<AttentionOp>(op);
  return isComputation &&
         llvm::all_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
}

} // namespace whale
