//===- BlockLocalizer.cpp - A block of the step on one device's shards ----===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/BlockLocalizer.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/Localize.h"
#include "whale/Sharding/PlacementAttrs.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

bool BlockLocalizer::holds(Value value) const {
  PlacementAttr placement = getPlacement(value);
  auto [it, isNew] = isHeld.try_emplace(placement);
  if (isNew)
    it->second = placement.getValue().contains(device);
  return it->second;
}

Type BlockLocalizer::getLocalTypeOrAbsent(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  PlacementAttr placement = getPlacement(value);
  Type &local = localTypes[{type, placement}];
  if (!local)
    local = getLocalType(type, placement.getValue(), device)
                .value_or(getAbsentType(type));
  return local;
}

Value BlockLocalizer::adapt(Value value, Type type) {
  if (value.getType() == type)
    return value;
  return hlo::ConvertOp::create(builder, value.getLoc(), type, value);
}

LogicalResult BlockLocalizer::visitBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(visit(&op)))
      return failure();
  return success();
}

LogicalResult BlockLocalizer::visit(Operation *op) {
  if (op->getNumResults() == 0)
    return op->emitError("has no results to place");
  if (!holds(op->getResult(0)))
    return success();
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    operands.push_back(getOperand(operand));
    if (!operands.back())
      return failure();
  }
  if (hlo::isControlFlow(op))
    return visitRegions(op, operands);

  SmallVector<Placement> operandPlacements, resultPlacements;
  for (OpOperand &operand : op->getOpOperands())
    operandPlacements.push_back(getOperandPlacement(operand));
  for (Value result : op->getResults())
    resultPlacements.push_back(getPlacement(result).getValue());
  FailureOr<SmallVector<Value>> results = localize(
      builder, {op, operandPlacements, resultPlacements, operands, device});
  if (failed(results))
    return failure();
  for (auto [result, local] : llvm::zip(op->getResults(), *results))
    map(result, local);
  return success();
}

/// A loop or branch on local shapes, its regions visited in turn.
LogicalResult BlockLocalizer::visitRegions(Operation *op,
                                           SmallVector<Value> operands) {
  OperationState state(op->getLoc(), op->getName());
  for (Value result : op->getResults())
    state.addTypes(getLocalTypeOrAbsent(result));
  for (unsigned i = 0; i < op->getNumRegions(); ++i)
    state.addRegion();
  if (isa<hlo::WhileOp>(op))
    for (auto [operand, result] : llvm::zip(operands, op->getResults()))
      operand = adapt(operand, getLocalTypeOrAbsent(result));
  state.addOperands(operands);
  Operation *local = builder.create(state);
  OpBuilder::InsertionGuard guard(builder);
  for (auto [region, localRegion] :
       llvm::zip(op->getRegions(), local->getRegions())) {
    Block &block = localRegion.emplaceBlock();
    for (BlockArgument argument : region.getArguments())
      map(argument,
          block.addArgument(getLocalTypeOrAbsent(argument), argument.getLoc()));
    builder.setInsertionPointToStart(&block);
    if (failed(visitBlock(region.front())))
      return failure();
    Operation *terminator = region.front().getTerminator();
    SmallVector<Value> yielded;
    bool isCondition = isa<hlo::WhileOp>(op) && region.getRegionNumber() == 0;
    for (OpOperand &operand : terminator->getOpOperands()) {
      Value value = getOperand(operand);
      if (!value)
        return failure();
      if (!isCondition)
        value = adapt(value, getLocalTypeOrAbsent(
                                 op->getResult(operand.getOperandNumber())));
      yielded.push_back(value);
    }
    hlo::ReturnOp::create(builder, terminator->getLoc(), yielded);
  }
  for (auto [result, localResult] :
       llvm::zip(op->getResults(), local->getResults()))
    map(result, localResult);
  return success();
}

} // namespace whale
