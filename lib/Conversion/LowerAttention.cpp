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
//
//===----------------------------------------------------------------------===//

#include "LowerLinearAlgebra.h"

#include "whale/Dialect/Whale/IR/Attention.h"
#include "whale/Dialect/Whale/IR/WhaleProgramOps.h"
#include "whale/ProgramFormat/Attention.h"

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

namespace {

struct LowerAttention : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    format::AttentionSizes sizes = getSizes(op);
    replaceByCall(rewriter, op, "attention", sizes.heads * sizes.blocks(),
                  sizes.scratch());
    return success();
  }
};

struct LowerAttentionGradient : OpRewritePattern<AttentionGradientOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionGradientOp op,
                                PatternRewriter &rewriter) const override {
    format::AttentionSizes sizes = getSizes(op);
    replaceByCall(rewriter, op, "attention_gradient", sizes.heads,
                  sizes.gradientScratch());
    return success();
  }
};

} // namespace

void whale::populateAttentionPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerAttention, LowerAttentionGradient>(patterns.getContext());
}
