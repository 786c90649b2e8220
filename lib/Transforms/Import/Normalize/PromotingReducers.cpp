//===- PromotingReducers.cpp - Reducers in wider types --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The region of a reduction may work in a wider type than that of its operands.
// Converting the operands first says the same, and leaves one element type to
// all that follows.
//
//===----------------------------------------------------------------------===//

#include "../CarryAttributes.h"
#include "Patterns.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace whale::normalize {

namespace {

/// The region that combines values of what each operand holds; null if `op` is
/// no reduction.
Region *getReducer(Operation *op) {
  if (isa<stablehlo::AllReduceOp, stablehlo::ReduceOp,
          stablehlo::ReduceScatterOp, stablehlo::ReduceWindowOp,
          stablehlo::ScatterOp>(op))
    return &op->getRegion(0);
  if (auto select = dyn_cast<stablehlo::SelectAndScatterOp>(op))
    return &select.getScatter();
  return nullptr;
}

/// Lets the comparison of a select_and_scatter take elements of `wide`, which
/// keeps their order.
void widenComparison(Region &region, Type wide) {
  OpBuilder b = OpBuilder::atBlockBegin(&region.front());
  for (BlockArgument argument : region.getArguments()) {
    Type narrow = argument.getType();
    argument.setType(RankedTensorType::get({}, wide));
    auto convert =
        stablehlo::ConvertOp::create(b, argument.getLoc(), narrow, argument);
    argument.replaceAllUsesExcept(convert, convert);
  }
}

} // namespace

LogicalResult promoteReducers(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    Region *reducer = getReducer(op);
    if (!reducer)
      return WalkResult::advance();
    auto scatter = dyn_cast<stablehlo::ScatterOp>(op);
    auto select = dyn_cast<stablehlo::SelectAndScatterOp>(op);
    bool isCollective =
        isa<stablehlo::AllReduceOp, stablehlo::ReduceScatterOp>(op);
    OpBuilder b(op);
    for (OpOperand &operand : op->getOpOperands()) {
      // Groups of operands (inputs, initial values) are in the results' order;
      // the indices of a scatter are between them.
      unsigned number = operand.getOperandNumber();
      if (scatter && number == op->getNumResults())
        continue;
      if (scatter && number > op->getNumResults())
        --number;
      number = select || isCollective ? 0 : number % op->getNumResults();
      auto type = cast<RankedTensorType>(operand.get().getType());
      Type wide = cast<RankedTensorType>(reducer->getArgument(number).getType())
                      .getElementType();
      if (type.getElementType() == wide)
        continue;
      // f16 and bf16 may stand for each other, at a loss.
      if (select && operand.getOperandNumber() == 0 &&
          type.getElementTypeBitWidth() == wide.getIntOrFloatBitWidth()) {
        op->emitOpError("adds in ")
            << wide << " what it compares in " << type.getElementType()
            << ", which is not supported; convert the operands";
        return WalkResult::interrupt();
      }
      auto convert = stablehlo::ConvertOp::create(
          b, op->getLoc(), type.clone(wide), operand.get());
      carryAttributes(op, convert);
      operand.set(convert);
      if (select && operand.getOperandNumber() == 0)
        widenComparison(select.getSelect(), wide);
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

} // namespace whale::normalize
