//===- CustomCalls.cpp - Custom calls that are operations -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/StableHLO/IR/CustomCalls.h"
#include "Structured.h"
#include "whale/Dialect/CHLO/IR/CHLOOps.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace whale::elementwise {

namespace {

// Pattern: custom_call @mhlo.erf(x) -> chlo.erf(x)
//
// So exported texts spell operations of chlo.
struct ExpandMhloCall : OpRewritePattern<stablehlo::CustomCallOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::CustomCallOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<StringRef> name = getChloOperation(op.getCallTargetName());
    if (!name)
      return failure();
    auto registered = RegisteredOperationName::lookup(("chlo." + *name).str(),
                                                      op.getContext());
    NamedAttrList attributes = getConfiguration(op);
    // Of top_k: the smallest would be another function.
    attributes.erase("largest");
    OperationState state(op.getLoc(), *registered, op.getInputs(),
                         op.getResultTypes(), attributes);
    rewriter.replaceOp(op, rewriter.create(state));
    return success();
  }
};

// Pattern: custom_call @ApproxTopK(x, i, ...) {by f}
//   -> slice(sort(x, i) {by f})
//
// Its approximation is for hardware that is slow to sort: the exact result is
// always one of those allowed.
struct ExpandApproxTopK : OpRewritePattern<stablehlo::CustomCallOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::CustomCallOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getCallTargetName() != "ApproxTopK")
      return failure();
    unsigned count = op->getNumResults();
    int64_t dim =
        getConfiguration(op).getAs<IntegerAttr>("reduction_dim").getInt();
    auto type = cast<RankedTensorType>(op.getInputs()[0].getType());
    if (!type.hasStaticShape())
      return failure();
    auto comparator = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        op, cast<FlatSymbolRefAttr>(op.getCalledComputations()[0]));
    if (!comparator)
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto sort = stablehlo::SortOp::create(b, op.getInputs().take_front(count),
                                          dim, /*isStable=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      IRMapping mapping;
      Block &from = comparator.getBody().front();
      Block *block = b.createBlock(
          &sort.getComparator(), {}, from.getArgumentTypes(),
          SmallVector<Location>(from.getNumArguments(), op.getLoc()));
      mapping.map(from.getArguments(), block->getArguments());
      for (Operation &inner : from.without_terminator())
        b.clone(inner, mapping);
      stablehlo::ReturnOp::create(
          b, mapping.lookupOrDefault(from.getTerminator()->getOperand(0)));
    }
    SmallVector<int64_t> starts(type.getRank(), 0), strides(type.getRank(), 1);
    SmallVector<Value> results;
    for (auto [sorted, result] :
         llvm::zip_equal(sort.getResults(), op.getResults()))
      results.push_back(stablehlo::SliceOp::create(
          b, result.getType(), sorted, starts,
          cast<RankedTensorType>(result.getType()).getShape(), strides));
    rewriter.replaceOp(op, results);
    return success();
  }
};

} // namespace

void populateCustomCallPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandApproxTopK, ExpandMhloCall>(patterns.getContext());
}

} // namespace whale::elementwise
