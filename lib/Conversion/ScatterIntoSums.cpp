//===- ScatterIntoSums.cpp - whale-scatter-into-sums ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Sharding/Reducers.h"

namespace whale {
#define GEN_PASS_DEF_SCATTERINTOSUMS
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

/// Pattern: add(x, scatter-add(zeros, i, u)) -> scatter-add(x, i, u)
static void scatterInto(RewriterBase &rewriter, stablehlo::AddOp op) {
  for (auto [x, updates] :
       {std::pair<Value, Value>{op.getLhs(), op.getRhs()},
        std::pair<Value, Value>{op.getRhs(), op.getLhs()}}) {
    if (!isSumOfUpdates(updates) || !updates.hasOneUse() ||
        updates.getParentBlock() != op->getBlock())
      continue;
    auto scatter = updates.getDefiningOp<stablehlo::ScatterOp>();
    // Updates need no longer be kept where the sum is there before.
    Operation *sum = x.getDefiningOp();
    if (sum && sum->getBlock() == op->getBlock() &&
        !sum->isBeforeInBlock(scatter))
      rewriter.moveOpBefore(scatter, op);
    rewriter.modifyOpInPlace(scatter,
                             [&] { scatter.getInputsMutable().assign(x); });
    rewriter.replaceOp(op, updates);
    return;
  }
}

namespace {

struct ScatterIntoSums : whale::impl::ScatterIntoSumsBase<ScatterIntoSums> {
  void runOnOperation() override {
    SmallVector<stablehlo::AddOp> sums;
    getOperation().walk([&](stablehlo::AddOp op) { sums.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (stablehlo::AddOp op : sums)
      scatterInto(rewriter, op);
  }
};

} // namespace
