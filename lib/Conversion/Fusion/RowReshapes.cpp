//===- RowReshapes.cpp - Rows through reshapes ----------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a linalg operation that reads another one's result through a reshape that
// only adds or drops dimensions of size one. Out: one that reads the result.
//
//===----------------------------------------------------------------------===//

#include "Fusion/FuseRows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;
using linalg::GenericOp;

/// The map of a tensor of `shape` that a reshape gives the shape that `map`
/// sees; null if it does more than add or drop dimensions of size one.
static AffineMap mapThroughReshape(AffineMap map, ArrayRef<int64_t> seen,
                                   ArrayRef<int64_t> shape) {
  SmallVector<AffineExpr> exprs, kept;
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), seen))
    if (size != 1)
      kept.push_back(expr);
  size_t next = 0;
  for (int64_t size : shape) {
    if (size == 1)
      exprs.push_back(getAffineConstantExpr(0, map.getContext()));
    else if (next == kept.size())
      return {};
    else
      exprs.push_back(kept[next++]);
  }
  auto notOne = [](int64_t size) { return size != 1; };
  if (!llvm::equal(llvm::make_filter_range(seen, notOne),
                   llvm::make_filter_range(shape, notOne)))
    return {};
  return AffineMap::get(map.getNumDims(), 0, exprs, map.getContext());
}

/// The operation without its loops of size one, which reads `inputs` through
/// `maps`.
static GenericOp dropUnitLoops(RewriterBase &rewriter, GenericOp op,
                               ArrayRef<Value> inputs,
                               ArrayRef<AffineMap> maps) {
  SmallVector<AffineExpr> dims;
  SmallVector<utils::IteratorType> iterators;
  SmallVector<int64_t> places;
  for (auto [size, iterator] :
       llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray())) {
    places.push_back(size == 1 ? -1 : int64_t(iterators.size()));
    dims.push_back(size == 1 ? rewriter.getAffineConstantExpr(0)
                             : rewriter.getAffineDimExpr(iterators.size()));
    if (size != 1)
      iterators.push_back(iterator);
  }
  SmallVector<AffineMap> newMaps;
  for (AffineMap map : maps)
    newMaps.push_back(map.replaceDimsAndSymbols(dims, {}, iterators.size(), 0));
  rewriter.setInsertionPoint(op);
  auto smaller = GenericOp::create(rewriter, op.getLoc(), op.getResultTypes(),
                                   inputs, op.getOutputs(), newMaps, iterators);
  smaller.getRegion().takeBody(op.getRegion());
  SmallVector<linalg::IndexOp> indices;
  smaller.getRegion().walk(
      [&](linalg::IndexOp index) { indices.push_back(index); });
  for (linalg::IndexOp index : indices) {
    rewriter.setInsertionPoint(index);
    int64_t place = places[index.getDim()];
    if (place >= 0)
      index.setDim(place);
    else
      rewriter.replaceOpWithNewOp<arith::ConstantIndexOp>(index, 0);
  }
  rewriter.replaceOp(op, smaller.getResults());
  return smaller;
}

GenericOp whale::readThroughReshapes(RewriterBase &rewriter, GenericOp op) {
  SmallVector<Value> inputs(op.getInputs());
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  bool changed = false;
  for (auto [input, map] : llvm::zip(inputs, maps)) {
    auto reshape = input.getDefiningOp<stablehlo::ReshapeOp>();
    if (!reshape || !reshape.getOperand().getDefiningOp<GenericOp>())
      continue;
    AffineMap through = mapThroughReshape(map, getShape(reshape),
                                          getShape(reshape.getOperand()));
    if (!through)
      continue;
    input = reshape.getOperand();
    map = through;
    changed = true;
  }
  return changed ? dropUnitLoops(rewriter, op, inputs, maps) : op;
}
