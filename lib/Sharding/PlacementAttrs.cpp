//===- PlacementAttrs.cpp - Placements of values in the IR ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Sharding/LocalShapes.h"

using namespace mlir;

namespace whale {

Value lookThroughTaskGraph(Value value) {
  while (auto graph = value.getDefiningOp<TaskGraphOp>())
    value =
        graph.getYield()->getOperand(cast<OpResult>(value).getResultNumber());
  return value;
}

SmallVector<Value> resultsOfYielded(OpOperand &operand) {
  Operation *parent = operand.getOwner()->getParentOp();
  unsigned index = operand.getOperandNumber();
  auto loop = dyn_cast<MicroBatchesOp>(parent);
  if (!loop)
    return {parent->getResult(index)};
  SmallVector<Value> results;
  unsigned body = operand.getOwner()->getParentRegion()->getRegionNumber();
  for (OpResult result : parent->getResults()) {
    auto [yielded, moment] = loop.getYielded(result.getResultNumber());
    if (yielded == index &&
        (!moment || loop.getVariants()[*moment] == int64_t(body)))
      results.push_back(result);
  }
  return results;
}

SmallVector<OpOperand *> findUses(Value value) {
  SmallVector<OpOperand *> uses;
  SmallVector<Value> values{value};
  while (!values.empty())
    for (OpOperand &use : values.pop_back_val().getUses()) {
      auto yield = dyn_cast<YieldOp>(use.getOwner());
      if (yield && isa<TaskGraphOp>(yield->getParentOp()))
        llvm::append_range(values, resultsOfYielded(use));
      else
        uses.push_back(&use);
    }
  return uses;
}

TaskGraphOp withResults(TaskGraphOp graph, ArrayRef<Value> more) {
  OpBuilder builder(graph);
  SmallVector<Type> types(graph->getResultTypes());
  llvm::append_range(types, ValueRange(more).getTypes());
  OperationState state(graph.getLoc(), graph->getName(), {}, types,
                       graph->getAttrs());
  state.addRegion();
  auto result = cast<TaskGraphOp>(builder.create(state));
  result.getBody().takeBody(graph.getBody());
  Operation *yield = result.getYield();
  yield->insertOperands(yield->getNumOperands(), more);
  for (auto [old, own] : llvm::zip(graph->getResults(), result->getResults()))
    old.replaceAllUsesWith(own);
  return result;
}

int64_t getBytesOn(Value value, DeviceId device) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return 0;
  PlacementAttr placement = getPlacement(value);
  auto local = placement ? getLocalType(type, placement.getValue(), device)
                         : std::optional(type);
  return local ? getTensorBytes(*local) : 0;
}

Operation *findProducer(Value value) {
  while (true) {
    value = lookThroughTaskGraph(value);
    auto loop = value.getDefiningOp<MicroBatchesOp>();
    if (!loop)
      return value.getDefiningOp();
    auto [index, moment] =
        loop.getYielded(cast<OpResult>(value).getResultNumber());
    value = loop.getYield(moment.value_or(0))->getOperand(index);
  }
}

Location getProducerLoc(Value value) {
  Operation *producer = findProducer(value);
  return producer ? producer->getLoc() : value.getLoc();
}

static PlacementAttr getElement(Operation *op, StringRef name, unsigned index) {
  auto list = op->getAttrOfType<ArrayAttr>(name);
  if (!list || index >= list.size())
    return {};
  return dyn_cast<PlacementAttr>(list[index]);
}

PlacementAttr getPlacement(Value value) {
  value = lookThroughTaskGraph(value);
  if (auto reshard = value.getDefiningOp<ReshardOp>())
    return reshard.getToAttr();
  if (auto result = dyn_cast<OpResult>(value))
    return getElement(result.getOwner(), placementsAttrName,
                      result.getResultNumber());
  auto argument = cast<BlockArgument>(value);
  Operation *owner = argument.getOwner()->getParentOp();
  if (auto function = dyn_cast<func::FuncOp>(owner))
    return function.getArgAttrOfType<PlacementAttr>(argument.getArgNumber(),
                                                    placementAttrName);
  if (auto loop = dyn_cast<MicroBatchesOp>(owner)) {
    // All pieces are wanted as the argument is placed.
    Region *body = argument.getOwner()->getParent();
    auto first = llvm::find(loop.getVariants(), body->getRegionNumber());
    OpOperand &piece = loop.getSlice(argument.getArgNumber(),
                                     first - loop.getVariants().begin());
    PlacementAttr wanted = getWantedPlacement(piece);
    return wanted ? wanted : getPlacement(piece.get());
  }
  return getElement(owner, placementsAttrName, argument.getArgNumber());
}

PlacementAttr getWantedPlacement(OpOperand &operand) {
  return getElement(operand.getOwner(), operandPlacementsAttrName,
                    operand.getOperandNumber());
}

bool hasPlacedRegions(Operation *op) {
  return isa<func::FuncOp, TaskGraphOp, MicroBatchesOp>(op) ||
         stablehlo::isControlFlow(op);
}

FailureOr<func::FuncOp> getMainFunction(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function || function.isExternal())
    return module.emitError("expects a function @main with a body");
  if (!function.getBody().hasOneBlock())
    return function.emitError("expects a single block");
  return function;
}

} // namespace whale
