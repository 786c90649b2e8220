//===- LoopStacks.cpp - Stacks of what a loop's rounds give ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopStacks.h"
#include "CarryAttributes.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

RankedTensorType getStackType(int64_t rows, Type row) {
  auto type = cast<RankedTensorType>(row);
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin(), rows);
  return type.clone(shape);
}

SmallVector<Value> getRowStarts(OpBuilder &builder, Location loc,
                                Operation *loop, Value round, Value stack) {
  auto type = cast<RankedTensorType>(round.getType());
  Attribute none = builder.getIntegerAttr(type.getElementType(), 0);
  Operation *zero =
      hlo::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, none));
  carryAttributes(loop, zero);
  SmallVector<Value> starts(cast<RankedTensorType>(stack.getType()).getRank(),
                            zero->getResult(0));
  starts.front() = round;
  return starts;
}

Value storeRow(OpBuilder &builder, Location loc, Operation *loop, Value row,
               Value stack, Value round) {
  SmallVector<Value> starts = getRowStarts(builder, loc, loop, round, stack);
  Operation *shaped =
      hlo::ReshapeOp::create(builder, loc, getStackType(1, row.getType()), row);
  Operation *update = hlo::DynamicUpdateSliceOp::create(
      builder, loc, stack.getType(), stack, shaped->getResult(0), starts);
  for (Operation *made : {shaped, update})
    carryAttributes(loop, made);
  return update->getResult(0);
}

} // namespace whale
