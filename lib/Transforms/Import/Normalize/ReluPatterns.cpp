//===- ReluPatterns.cpp - What a gradient keeps of a ReLU -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace whale;

namespace {

bool isProduct(Operation *op) {
  return isa<stablehlo::ConvolutionOp, stablehlo::DotGeneralOp>(op);
}

// Pattern: x = a + b; y = maximum(x, 0); x > 0 -> y > 0
//
// Where a product reads y it is kept for the gradient of that, and x need not
// be, which is no cheaper to make again. Of a sum with a bias, or of a norm, x
// may well be.
LogicalResult compareResult(stablehlo::CompareOp op,
                            PatternRewriter &rewriter) {
  auto sum = op.getLhs().getDefiningOp<stablehlo::AddOp>();
  if (op.getComparisonDirection() != stablehlo::ComparisonDirection::GT ||
      !matchPattern(op.getRhs(), m_AnyZeroFloat()) || !sum ||
      llvm::any_of(sum->getOperands(), [](Value operand) {
        return isa_and_nonnull<stablehlo::BroadcastInDimOp,
                               stablehlo::ConstantOp>(operand.getDefiningOp());
      }))
    return failure();
  for (Operation *user : sum->getUsers()) {
    auto maximum = dyn_cast<stablehlo::MaxOp>(user);
    if (!maximum || maximum.getLhs() != sum.getResult() ||
        !matchPattern(maximum.getRhs(), m_AnyZeroFloat()) ||
        maximum->getBlock() != op->getBlock() ||
        !maximum->isBeforeInBlock(op) ||
        llvm::none_of(maximum->getUsers(), isProduct))
      continue;
    rewriter.modifyOpInPlace(
        op, [&] { op.getLhsMutable().assign(maximum.getResult()); });
    return success();
  }
  return failure();
}

} // namespace

void whale::normalize::populateReluPatterns(RewritePatternSet &patterns) {
  addAll(patterns, compareResult);
}
