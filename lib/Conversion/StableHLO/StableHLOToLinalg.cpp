//===- StableHLOToLinalg.cpp - whale-stablehlo-to-linalg ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a function of StableHLO. Out: linalg operations and kernels; values,
// views and control flow stay. The pass walks over the operations of the
// function and the bodies of its loops and branches, in order, and lowers each
// by the patterns of its family. Bodies of reductions are consumed by the
// pattern of the reduction; what has no elements is a constant. Cost: linear in
// the operations: each is looked at once, by the patterns of its kind, besides
// what a lowering takes.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "Kernel/SortLines.h"
#include "StableHLO/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Rewrite/PatternApplicator.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/Transforms/OpCost.h"

namespace whale {
#define GEN_PASS_DEF_STABLEHLOTOLINALG
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

/// Operations that stay: values, views and control flow.
static bool stays(Operation *op) {
  return isa<stablehlo::ConstantOp, stablehlo::ReshapeOp, stablehlo::ReturnOp>(
             op) ||
         stablehlo::isControlFlow(op);
}

static bool hasElements(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return !type || type.getNumElements() != 0;
}

static void collect(Block &block, SmallVectorImpl<Operation *> &operations) {
  for (Operation &op : block) {
    operations.push_back(&op);
    if (stablehlo::isControlFlow(&op))
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          collect(inner, operations);
  }
}

/// Replaces each result without elements by a constant; true if the operation
/// has no others.
static bool replaceEmptyResults(Operation *op, PatternRewriter &rewriter) {
  if (op->getNumResults() == 0 || stays(op))
    return false;
  if (llvm::any_of(op->getResults(), hasElements))
    return false;
  SmallVector<Value> results;
  for (Type type : op->getResultTypes())
    results.push_back(stablehlo::ConstantOp::create(
        rewriter, op->getLoc(),
        DenseElementsAttr::get(cast<RankedTensorType>(type),
                               ArrayRef<Attribute>())));
  rewriter.replaceOp(op, results);
  return true;
}

namespace {

struct DropBarrier : OpRewritePattern<stablehlo::OptimizationBarrierOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::OptimizationBarrierOp op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, op->getOperands());
    return success();
  }
};

struct StableHLOToLinalg
    : whale::impl::StableHLOToLinalgBase<StableHLOToLinalg> {
  using StableHLOToLinalgBase::StableHLOToLinalgBase;

  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    populateElementwisePatterns(set);
    populateConvolutionPatterns(set, target);
    populateShapePatterns(set, target);
    populateIndexingPatterns(set);
    populateReductionPatterns(set, target);
    populateWindowPatterns(set, target);
    populateSelectAndScatterPatterns(set, target);
    populateScatterPatterns(set, target);
    populateSortPatterns(set, target);
    populateRandomPatterns(set);
    set.add<DropBarrier>(context);
    patterns = std::move(set);
    return success();
  }

  void runOnOperation() override {
    PatternApplicator applicator(patterns);
    applicator.applyDefaultCostModel();
    PatternRewriter rewriter(&getContext());
    if (!target.getValue().isGpu()) {
      lowerSorts(getOperation());
      lowerScalarLoops(rewriter, getOperation());
    }
    SmallVector<Operation *> operations;
    for (Block &block : getOperation().getFunctionBody())
      collect(block, operations);
    for (Operation *op : operations)
      if (auto loop = dyn_cast<stablehlo::WhileOp>(op)) {
        dropUnreadInits(rewriter, loop);
        if (std::optional<int64_t> trips = whale::tripCount(loop))
          loop->setAttr(whale::kTripsAttrName,
                        rewriter.getI64IntegerAttr(*trips));
      }
    auto *dialect =
        getContext().getLoadedDialect<stablehlo::StablehloDialect>();
    for (Operation *op : operations) {
      if (!dialect || op->getDialect() != dialect)
        continue;
      rewriter.setInsertionPoint(op);
      if (replaceEmptyResults(op, rewriter))
        continue;
      if (succeeded(applicator.matchAndRewrite(op, rewriter)) || stays(op))
        continue;
      op->emitOpError("from (")
          << op->getOperandTypes() << ") to (" << op->getResultTypes()
          << ") is not supported by the kernel lowering";
      return signalPassFailure();
    }
    eraseDead();
  }

  /// Casts and constants that the patterns left without a use.
  void eraseDead() {
    SmallVector<Operation *> dead;
    getOperation()->walk<WalkOrder::PostOrder, mlir::ReverseIterator>(
        [&](Operation *op) {
          if (isOpTriviallyDead(op))
            op->erase();
        });
  }

  FrozenRewritePatternSet patterns;
};

} // namespace
