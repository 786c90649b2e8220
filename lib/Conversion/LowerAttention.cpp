//===- LowerAttention.cpp - Library calls of attention --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The call gets the letters of each tensor, and one more result that nothing
// uses: the memory that its threads need is planned as that of any other value.
// What cuDNN computes on a GPU is a call of another name: the processor
// computes it all the same where cuDNN turns out not to.
//
//===----------------------------------------------------------------------===//

#include "LowerLinearAlgebra.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Attention.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/ProgramFormat/Attention.h"
#include "whale/ProgramFormat/FusedAttention.h"

using namespace mlir;
using namespace whale;

/// Replaces the operation by a call of `function`; `tasks` can run at once.
static void replaceByCall(PatternRewriter &rewriter, Operation *op,
                          StringRef function, int64_t tasks, int64_t scratch) {
  int64_t threads = std::clamp<int64_t>(tasks, 1, format::mostAttentionThreads);
  SmallVector<Type> types(op->getResultTypes());
  types.push_back(
      RankedTensorType::get({threads * scratch}, rewriter.getF32Type()));
  auto call = LibraryCallOp::create(rewriter, op->getLoc(), types, function,
                                    op->getOperands());
  call->setAttr(kFlopsAttrName,
                rewriter.getI64IntegerAttr(getAttentionFlops(op)));
  for (NamedAttribute attribute : op->getAttrs()) {
    StringRef name = attribute.getName();
    if (name == "operandSegmentSizes" || name.starts_with("whale."))
      continue;
    name.consume_back("_dims");
    call->setAttr(name, attribute.getValue());
  }
  rewriter.replaceOp(op, call->getResults().drop_back());
}

static format::AttentionSizes getSizes(Operation *op) {
  AttentionSizes sizes = getAttentionSizes(op);
  return {sizes.heads, sizes.rows, sizes.keys, sizes.depth, sizes.features};
}

static void replaceByCall(PatternRewriter &rewriter, Operation *op,
                          StringRef prefix = "") {
  format::AttentionSizes sizes = getSizes(op);
  if (isa<AttentionOp>(op))
    replaceByCall(rewriter, op, (prefix + "attention").str(),
                  sizes.heads * sizes.blocks(), sizes.scratch());
  else
    replaceByCall(rewriter, op, (prefix + "attention_gradient").str(),
                  sizes.heads, sizes.gradientScratch());
}

void whale::absorbTranspose(PatternRewriter &rewriter, AttentionOp op) {
  if (!op->hasOneUse())
    return;
  auto user = dyn_cast<stablehlo::TransposeOp>(*op->user_begin());
  if (!user)
    return;
  std::string letters;
  for (int64_t dim : user.getPermutation())
    letters += op.getResultDims()[dim];
  rewriter.modifyOpInPlace(op, [&] {
    op.setResultDims(letters);
    op.getResult().setType(cast<RankedTensorType>(user.getType()));
  });
  // Nothing uses it any more: the pass erases it in the end.
  rewriter.replaceAllUsesWith(user.getResult(), op.getResult());
}

static format::AttentionCall::Tensor describe(Value value, StringRef letters) {
  auto type = cast<RankedTensorType>(value.getType());
  return {type.getElementType().isBF16() ? format::DType::BF16
                                         : format::DType::F32,
          letters.str(),
          {type.getShape().begin(), type.getShape().end()}};
}

template <typename Op>
static format::AttentionCall describe(Op op) {
  AttentionLetters letters = getAttentionLetters(op);
  format::AttentionCall call;
  call.isGradient = isa<AttentionGradientOp>(op);
  call.hasMask = op.getMask() != nullptr;
  call.hasBias = op.getBias() != nullptr;
  call.scale = op.getScale().convertToDouble();
  call.causal = op.getCausal();
  if (auto fill = op.getFill())
    call.fill = fill->convertToDouble();
  for (unsigned operand = 0; operand < 3; ++operand)
    call.inputs.push_back(
        describe(op->getOperand(operand), letters.operands[operand]));
  if (call.isGradient)
    call.inputs.push_back(
        describe(op->getOperands().back(), letters.operands.back()));
  for (auto [result, own] : llvm::zip_equal(op->getResults(), letters.results))
    call.results.push_back(describe(result, own));
  return call;
}

namespace {

template <typename Op>
struct LowerAttention : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    replaceByCall(rewriter, op);
    return success();
  }
};

/// Pattern: what cuDNN computes on GPUs of a compute capability.
template <typename Op>
struct LowerFusedAttention : OpRewritePattern<Op> {
  LowerFusedAttention(MLIRContext *context, int capability)
      : OpRewritePattern<Op>(context, /*benefit=*/3), capability(capability) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    std::string why;
    if (!format::describeFused(describe(op), capability, why)) {
      op->emitRemark("attention is not cuDNN's: ") << why;
      return failure();
    }
    replaceByCall(rewriter, op, "fused_");
    return success();
  }

  int capability;
};

} // namespace

void whale::populateAttentionPatterns(RewritePatternSet &patterns) {
  patterns
      .add<LowerAttention<AttentionOp>, LowerAttention<AttentionGradientOp>>(
          patterns.getContext());
}

void whale::populateFusedAttentionPatterns(RewritePatternSet &patterns,
                                           int capability) {
  patterns.add<LowerFusedAttention<AttentionOp>,
               LowerFusedAttention<AttentionGradientOp>>(patterns.getContext(),
                                                         capability);
}
