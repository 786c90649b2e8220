//===- InsertReshards.cpp - Make changes of placement explicit -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Puts a whale.reshard wherever an operation needs another placement of an
// operand than the one that it is produced in. A reshard is right after
// the value is made, so that all users of the same placement share it and
// loops don't repeat it.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Shardy/IR/ShardyOps.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Passes.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_INSERTRESHARDS
#include "whale/Transforms/Placed/Passes.h.inc"

namespace {

struct InsertReshardsPass : impl::InsertReshardsBase<InsertReshardsPass> {
  using InsertReshardsBase::InsertReshardsBase;

  void runOnOperation() final {
    FailureOr<func::FuncOp> function = getMainFunction(getOperation());
    if (failed(function))
      return signalPassFailure();
    SmallVector<OpOperand *> operands;
    function->walk([&](Operation *op) {
      if (op->hasAttr(operandPlacementsAttrName))
        for (OpOperand &operand : op->getOpOperands())
          operands.push_back(&operand);
    });
    for (OpOperand *operand : operands)
      if (failed(reshardOperand(*operand)))
        return signalPassFailure();
    function->walk(
        [&](Operation *op) { op->removeAttr(operandPlacementsAttrName); });
    // What sharding constraints asked for has been done.
    function->walk([&](sdy::ShardingConstraintOp op) {
      op.replaceAllUsesWith(op.getInput());
      op.erase();
    });
    for (sdy::MeshOp mesh :
         llvm::make_early_inc_range(getOperation().getOps<sdy::MeshOp>()))
      mesh.erase();
  }

private:
  LogicalResult reshardOperand(OpOperand &operand) {
    PlacementAttr wanted = getWantedPlacement(operand);
    PlacementAttr given = getPlacement(operand.get());
    if (!wanted || wanted == given)
      return success();
    if (!given)
      return operand.getOwner()->emitError("operand #")
             << operand.getOperandNumber() << " has no placement";
    Value &reshard = reshards[{operand.get(), wanted}];
    if (!reshard) {
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfterValue(operand.get());
      reshard = ReshardOp::create(builder, operand.get().getLoc(),
                                  operand.get().getType(), operand.get(), given,
                                  wanted);
    }
    operand.set(reshard);
    return success();
  }

  llvm::DenseMap<std::pair<Value, Attribute>, Value> reshards;
};

} // namespace
} // namespace whale
