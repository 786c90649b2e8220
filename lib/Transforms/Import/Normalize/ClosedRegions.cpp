//===- ClosedRegions.cpp - Regions of one element see nothing else --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a reducer or a comparator computes is a function of its arguments. The
// IR lets it use other values too; then it could not be copied to where only
// its operation's operands are.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/Reads.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace whale::normalize {

static LogicalResult close(Operation *op, Region &region) {
  OpBuilder b(region);
  for (Value value : getCaptures(region)) {
    auto constant = value.getDefiningOp<stablehlo::ConstantOp>();
    if (!constant)
      return op->emitOpError("uses in its region a value from outside of it "
                             "that is no constant; make it an operand");
    Value own = stablehlo::ConstantOp::create(b, constant.getLoc(),
                                              constant.getValue());
    replaceAllUsesInRegionWith(value, own, region);
  }
  return success();
}

LogicalResult closeRegions(Operation *root) {
  WalkResult result = root->walk([](Operation *op) {
    if (!isa_and_nonnull<stablehlo::StablehloDialect>(op->getDialect()) ||
        stablehlo::isControlFlow(op))
      return WalkResult::advance();
    for (Region &region : op->getRegions())
      if (failed(close(op, region)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

} // namespace whale::normalize
