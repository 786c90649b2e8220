//===- BatchNormPatterns.cpp - Batch normalization, written out -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: batch normalization: inference, training or gradient. Out: elementwise
// operations, broadcasts and sums as the StableHLO specification defines them,
// narrow floats in f32. Cost: a constant number of operations; training and
// gradient each have two sums over the tensor, inference none.
//
//===----------------------------------------------------------------------===//

#include "../ExpandChlo/Expr.h"
#include "Patterns.h"

using namespace mlir;
using whale::elementwise::Expr;

namespace whale::normalize {

namespace {

/// What all three operations share: features along one dimension of a tensor.
class Features {
public:
  Features(ImplicitLocOpBuilder &b, RankedTensorType type, int64_t dim)
      : b(b), dim(dim), shape(type.getShape()), element(type.getElementType()),
        compute(element) {
    if (cast<FloatType>(element).getWidth() < 32)
      compute = b.getF32Type();
    for (int64_t i = 0; i < type.getRank(); ++i)
      if (i != dim)
        others.push_back(i);
  }

  /// A value in the type that is computed in.
  Expr wide(Value value) { return convert({b, value}, compute); }
  Value narrow(Expr x) { return convert(x, element).getValue(); }

  /// A number for each feature, at all the elements of the feature.
  Expr spread(Expr x) {
    return {b, stablehlo::BroadcastInDimOp::create(
                   b, RankedTensorType::get(shape, compute), x.getValue(),
                   b.getDenseI64ArrayAttr(dim))};
  }

  /// The sum of the elements of each feature.
  Expr sum(Expr x) {
    auto scalar = RankedTensorType::get({}, compute);
    Value zero = stablehlo::ConstantOp::create(
        b, cast<DenseElementsAttr>(b.getZeroAttr(scalar)));
    auto reduce = stablehlo::ReduceOp::create(
        b, TypeRange{RankedTensorType::get(shape[dim], compute)},
        ValueRange{x.getValue()}, ValueRange{zero},
        b.getDenseI64ArrayAttr(others));
    OpBuilder::InsertionGuard guard(b);
    Block *block = b.createBlock(&reduce.getBody(), {}, {scalar, scalar},
                                 {b.getLoc(), b.getLoc()});
    Value added = stablehlo::AddOp::create(b, scalar, block->getArgument(0),
                                           block->getArgument(1));
    stablehlo::ReturnOp::create(b, added);
    return {b, reduce.getResult(0)};
  }

  /// The number of elements of each feature.
  double count() const {
    double product = 1;
    for (int64_t i : others)
      product *= shape[i];
    return product;
  }

private:
  Expr convert(Expr x, Type to) {
    if (x.getType().getElementType() == to)
      return x;
    return {b, stablehlo::ConvertOp::create(b, x.getType().clone(to),
                                            x.getValue())};
  }

  ImplicitLocOpBuilder &b;
  int64_t dim;
  SmallVector<int64_t> shape, others;
  Type element, compute;
};

template <typename Op>
struct ExpandBatchNorm : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = op.getOperand().getType();
    if (!type.hasStaticShape())
      return failure();
    Features features(b, type, op.getFeatureIndex());
    SmallVector<Value> results;
    for (Expr result : expand(op, features))
      results.push_back(features.narrow(result));
    rewriter.replaceOp(op, results);
    return success();
  }

  static SmallVector<Expr> expand(Op op, Features &f);
};

Expr normalize(Features &f, Expr centered, Expr variance, double epsilon) {
  return centered / f.spread(sqrt(variance + epsilon));
}

// Pattern: batch_norm_inference(x, scale, offset, mean, variance)
//   -> (x - mean) / sqrt(variance + epsilon) * scale + offset
template <>
SmallVector<Expr> ExpandBatchNorm<stablehlo::BatchNormInferenceOp>::expand(
    stablehlo::BatchNormInferenceOp op, Features &f) {
  Expr centered = f.wide(op.getOperand()) - f.spread(f.wide(op.getMean()));
  Expr normal = normalize(f, centered, f.wide(op.getVariance()),
                          op.getEpsilon().convertToFloat());
  return {normal * f.spread(f.wide(op.getScale())) +
          f.spread(f.wide(op.getOffset()))};
}

// Pattern: batch_norm_training(x, scale, offset)
//   -> the same with the mean and the variance of x, and these
template <>
SmallVector<Expr> ExpandBatchNorm<stablehlo::BatchNormTrainingOp>::expand(
    stablehlo::BatchNormTrainingOp op, Features &f) {
  Expr x = f.wide(op.getOperand());
  Expr mean = f.sum(x) / f.count();
  Expr centered = x - f.spread(mean);
  Expr variance = f.sum(centered * centered) / f.count();
  Expr normal =
      normalize(f, centered, variance, op.getEpsilon().convertToFloat());
  return {normal * f.spread(f.wide(op.getScale())) +
              f.spread(f.wide(op.getOffset())),
          mean, variance};
}

// Pattern: batch_norm_grad(x, scale, mean, variance, dy) -> its gradients by
// x, scale and offset
template <>
SmallVector<Expr> ExpandBatchNorm<stablehlo::BatchNormGradOp>::expand(
    stablehlo::BatchNormGradOp op, Features &f) {
  Expr dy = f.wide(op.getGradOutput());
  Expr centered = f.wide(op.getOperand()) - f.spread(f.wide(op.getMean()));
  Expr variance = f.wide(op.getVariance()) + op.getEpsilon().convertToFloat();
  Expr deviation = sqrt(variance);
  Expr offset = f.sum(dy);
  Expr along = f.sum(dy * centered);
  Expr inner =
      dy * f.count() - f.spread(offset) - f.spread(along / variance) * centered;
  Expr factor = f.wide(op.getScale()) / deviation / f.count();
  return {f.spread(factor) * inner, along / deviation, offset};
}

} // namespace

void populateBatchNormPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandBatchNorm<stablehlo::BatchNormGradOp>,
               ExpandBatchNorm<stablehlo::BatchNormInferenceOp>,
               ExpandBatchNorm<stablehlo::BatchNormTrainingOp>>(
      patterns.getContext());
}

} // namespace whale::normalize
