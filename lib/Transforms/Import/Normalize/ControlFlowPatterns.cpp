//===- ControlFlowPatterns.cpp - Loops, branches, barriers ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: loops, branches and barriers. Out: loops whose carried values change, and
// `case` with an index that is not constant.
//
// `if` becomes `case`, a constant index or predicate its branch; carried values
// that no iteration changes become values from outside, all those of a loop in
// one rewrite, and those that nobody reads go; barriers are dropped. Cost:
// linear in the carried values and their uses, and for a loop that may have
// unread ones in its body; regions are moved, not copied.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Dialect/Whale/IR/Reads.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace whale::normalize {

namespace {

// Pattern: optimization_barrier(x) -> x
//
// It keeps XLA from merging what remat computes again with its first copy;
// nothing here merges equal operations. One that names a value stays, where
// names matter, up to whale-recompute-forward.
struct RemoveBarrier : OpRewritePattern<stablehlo::OptimizationBarrierOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::OptimizationBarrierOp op,
                                PatternRewriter &rewriter) const override {
    if (op->hasAttr(kCheckpointNameAttr) &&
        Config(op->getParentOfType<ModuleOp>()).getGradientCheckpoint() ==
            GradientCheckpoint::Collection)
      return failure();
    rewriter.replaceOp(op, op.getOperands());
    return success();
  }
};

// Pattern: while(c, x) { body(c, x) -> c, y } -> while(x) { body(c, x) -> y }
//
// A carried value that the body returns as it came is a value from outside.
struct DropInvariants : OpRewritePattern<stablehlo::WhileOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::WhileOp op,
                                PatternRewriter &rewriter) const override {
    Block &cond = op.getCond().front(), &body = op.getBody().front();
    Operation *next = body.getTerminator();
    llvm::BitVector invariant(op->getNumOperands());
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (next->getOperand(i) == body.getArgument(i) ||
          next->getOperand(i) == op->getOperand(i))
        invariant.set(i);
    if (invariant.none())
      return failure();

    SmallVector<Value> carried;
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      Value value = op->getOperand(i);
      if (!invariant.test(i)) {
        carried.push_back(value);
        continue;
      }
      rewriter.replaceAllUsesWith(cond.getArgument(i), value);
      rewriter.replaceAllUsesWith(body.getArgument(i), value);
    }
    rewriter.modifyOpInPlace(next, [&] { next->eraseOperands(invariant); });
    rewriter.modifyOpInPlace(op, [&] {
      cond.eraseArguments(invariant);
      body.eraseArguments(invariant);
    });
    auto loop = stablehlo::WhileOp::create(
        rewriter, op.getLoc(), ValueRange(carried).getTypes(), carried,
        op->getDiscardableAttrDictionary().getValue());
    rewriter.inlineRegionBefore(op.getCond(), loop.getCond(),
                                loop.getCond().end());
    rewriter.inlineRegionBefore(op.getBody(), loop.getBody(),
                                loop.getBody().end());
    SmallVector<Value> results;
    for (unsigned i = 0, kept = 0; i < op->getNumResults(); ++i)
      results.push_back(invariant.test(i) ? op->getOperand(i)
                                          : loop->getResult(kept++));
    rewriter.replaceOp(op, results);
    return success();
  }
};

// Pattern: _, y = while(c, x) { body(c, x) -> c', y } -> { ... -> c, y }
//
// A carried value that neither a result, nor the condition, nor an effect
// depends on: stacks for a backward pass that does not read them, as JAX leaves
// them for XLA to remove. It does not change any more then, and is dropped.
struct DropUnreadCarries : OpRewritePattern<stablehlo::WhileOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::WhileOp op,
                                PatternRewriter &rewriter) const override {
    Block &cond = op.getCond().front(), &body = op.getBody().front();
    Operation *next = body.getTerminator();
    llvm::BitVector isRead(op->getNumOperands());
    llvm::SetVector<Value> read;
    auto addCarry = [&](unsigned i) {
      isRead.set(i);
      read.insert(next->getOperand(i));
    };
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (!op->getResult(i).use_empty() || !cond.getArgument(i).use_empty())
        addCarry(i);
    if (isRead.all())
      return failure();

    for (Operation &inner : body.without_terminator())
      if (!isMemoryEffectFree(&inner))
        read.insert_range(getReads(&inner));
    for (unsigned i = 0; i < read.size(); ++i) {
      auto argument = dyn_cast<BlockArgument>(read[i]);
      if (!argument) {
        if (Operation *inner =
                body.findAncestorOpInBlock(*read[i].getDefiningOp()))
          read.insert_range(getReads(inner));
      } else if (argument.getOwner() == &body &&
                 !isRead.test(argument.getArgNumber())) {
        addCarry(argument.getArgNumber());
      }
    }
    SmallVector<unsigned> unread;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (!isRead.test(i) && next->getOperand(i) != body.getArgument(i))
        unread.push_back(i);
    if (unread.empty())
      return failure();
    rewriter.modifyOpInPlace(next, [&] {
      for (unsigned i : unread)
        next->setOperand(i, body.getArgument(i));
    });
    return success();
  }
};

/// Replaces `op` by the operations of `region`, which has no arguments.
void inlineBranch(PatternRewriter &rewriter, Operation *op, Region &region) {
  Block *block = &region.front();
  Operation *terminator = block->getTerminator();
  SmallVector<Value> results(terminator->getOperands());
  rewriter.eraseOp(terminator);
  rewriter.inlineBlockBefore(block, op);
  rewriter.replaceOp(op, results);
}

// Pattern: case(constant) { branches } -> the branch
struct InlineConstantCase : OpRewritePattern<stablehlo::CaseOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::CaseOp op,
                                PatternRewriter &rewriter) const override {
    DenseIntElementsAttr index;
    if (!matchPattern(op.getIndex(), m_Constant(&index)))
      return failure();
    int64_t chosen = (*index.begin()).getSExtValue();
    int64_t count = op.getBranches().size();
    // An index out of bounds means the last branch.
    if (chosen < 0 || chosen >= count)
      chosen = count - 1;
    inlineBranch(rewriter, op, op.getBranches()[chosen]);
    return success();
  }
};

// Pattern: if(constant) { a } else { b } -> a or b
struct InlineConstantIf : OpRewritePattern<stablehlo::IfOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::IfOp op,
                                PatternRewriter &rewriter) const override {
    DenseIntElementsAttr predicate;
    if (!matchPattern(op.getPred(), m_Constant(&predicate)))
      return failure();
    bool isTrue = !(*predicate.begin()).isZero();
    inlineBranch(rewriter, op,
                 isTrue ? op.getTrueBranch() : op.getFalseBranch());
    return success();
  }
};

// Pattern: if(p) { a } else { b } -> case(convert(p)) { b } { a }
struct MakeCase : OpRewritePattern<stablehlo::IfOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::IfOp op,
                                PatternRewriter &rewriter) const override {
    DenseIntElementsAttr constant;
    if (matchPattern(op.getPred(), m_Constant(&constant)))
      return failure();
    auto type = RankedTensorType::get({}, rewriter.getI32Type());
    Value index =
        stablehlo::ConvertOp::create(rewriter, op.getLoc(), type, op.getPred());
    OperationState state(op.getLoc(), stablehlo::CaseOp::getOperationName(),
                         index, op->getResultTypes(),
                         op->getDiscardableAttrDictionary().getValue());
    for (Region *region : {&op.getFalseBranch(), &op.getTrueBranch()})
      state.addRegion()->takeBody(*region);
    rewriter.replaceOp(op, rewriter.create(state));
    return success();
  }
};

} // namespace

void populateControlFlowPatterns(RewritePatternSet &patterns) {
  patterns.add<DropInvariants, DropUnreadCarries, InlineConstantCase,
               InlineConstantIf, MakeCase, RemoveBarrier>(
      patterns.getContext());
}

} // namespace whale::normalize
