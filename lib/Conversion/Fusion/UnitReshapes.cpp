//===- UnitReshapes.cpp - Loops without dimensions of size one ------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reshape that only adds or drops dimensions of size one is between
// operations that could be one loop. The operation before it gives the result
// of the other shape at once.
//
//===----------------------------------------------------------------------===//

#include "Fusion/FuseKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using linalg::GenericOp;

/// For each dimension of `from` the one of `to` that it is, constant zero for
/// those of size one; empty if the others are not the same.
static SmallVector<AffineExpr> matchShapes(MLIRContext *context,
                                           ArrayRef<int64_t> from,
                                           ArrayRef<int64_t> to) {
  Builder b(context);
  SmallVector<AffineExpr> dims;
  size_t next = 0;
  for (int64_t size : from) {
    while (next < to.size() && to[next] == 1)
      ++next;
    if (size == 1) {
      dims.push_back(b.getAffineConstantExpr(0));
      continue;
    }
    if (next == to.size() || to[next] != size)
      return {};
    dims.push_back(b.getAffineDimExpr(next++));
  }
  while (next < to.size() && to[next] == 1)
    ++next;
  return next == to.size() ? dims : SmallVector<AffineExpr>();
}

void whale::inlineBody(OpBuilder &b, GenericOp from, ArrayRef<AffineExpr> loops,
                       IRMapping &mapping, SmallVectorImpl<Value> &yielded) {
  Block &body = from.getRegion().front();
  for (Operation &inner : body.without_terminator()) {
    auto index = dyn_cast<linalg::IndexOp>(inner);
    if (!index) {
      b.clone(inner, mapping);
      continue;
    }
    Location loc = index.getLoc();
    if (auto loop = dyn_cast<AffineDimExpr>(loops[index.getDim()]))
      mapping.map(
          index.getResult(),
          linalg::IndexOp::create(b, loc, loop.getPosition()).getResult());
    else
      mapping.map(index.getResult(),
                  arith::ConstantIndexOp::create(b, loc, 0).getResult());
  }
  for (Value value : body.getTerminator()->getOperands())
    yielded.push_back(mapping.lookupOrDefault(value));
}

/// The operation whose result `reshape` is, over the loops of the new shape.
static GenericOp absorb(RewriterBase &rewriter, stablehlo::ReshapeOp reshape,
                        GenericOp op) {
  auto type = cast<RankedTensorType>(reshape.getType());
  SmallVector<AffineExpr> loops = matchShapes(
      rewriter.getContext(), op.getStaticLoopRanges(), type.getShape());
  if (loops.size() != op.getNumLoops())
    return {};
  AffineMap change =
      AffineMap::get(type.getRank(), 0, loops, rewriter.getContext());
  SmallVector<AffineMap> maps;
  for (OpOperand *input : op.getDpsInputOperands())
    maps.push_back(op.getMatchingIndexingMap(input).compose(change));
  maps.push_back(rewriter.getMultiDimIdentityMap(type.getRank()));
  rewriter.setInsertionPoint(reshape);
  Value empty = tensor::EmptyOp::create(rewriter, op.getLoc(), type.getShape(),
                                        type.getElementType());
  return GenericOp::create(
      rewriter, op.getLoc(), type, op.getInputs(), empty, maps,
      SmallVector<utils::IteratorType>(type.getRank(),
                                       utils::IteratorType::parallel),
      [&](OpBuilder &b, Location loc, ValueRange arguments) {
        IRMapping mapping;
        for (auto [argument, value] : llvm::zip(
                 op.getRegion().front().getArguments(), arguments.drop_back()))
          mapping.map(argument, value);
        SmallVector<Value> yielded;
        whale::inlineBody(b, op, loops, mapping, yielded);
        linalg::YieldOp::create(b, loc, yielded);
      });
}

void whale::absorbUnitReshapes(RewriterBase &rewriter, Block &block,
                               function_ref<bool(GenericOp)> isCheap) {
  for (auto reshape :
       llvm::make_early_inc_range(block.getOps<stablehlo::ReshapeOp>())) {
    auto op = reshape.getOperand().getDefiningOp<GenericOp>();
    if (!op || op->getBlock() != &block || op->getNumResults() != 1 ||
        op.getNumReductionLoops() != 0 || op.getNumLoops() == 0 ||
        op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)) ||
        !op.getIndexingMapMatchingResult(op->getResult(0)).isIdentity() ||
        (!op->hasOneUse() && !isCheap(op)))
      continue;
    GenericOp absorbed = absorb(rewriter, reshape, op);
    if (!absorbed)
      continue;
    rewriter.replaceOp(reshape, absorbed->getResults());
    if (op->use_empty())
      rewriter.eraseOp(op);
  }
}
