//===- ConvolutionToKernel.cpp - Convolutions of any type -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a convolution that the library does not compute (of f64, integers,
// complex numbers). Out: for each element of the result a sum over the window
// and the input features: as a linalg operation, whose loops are ordered later,
// or in a kernel, element by element. Windows are not reversed:
// whale-lower-library-ops has reversed the filters.
//
// Cost: a multiplication for each element of the result and each of its terms.
// The linalg operation reads a padded copy of the operand, of at most 4 times
// its size or 65,536 elements; it may be larger on a GPU where a thread would
// have more than kMostThreadTerms terms. The kernel needs no copy, but tests
// for each term whether it is padding.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelWork.h"
#include "Kernel/Windows.h"
#include "StableHLO/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace whale;

namespace {

/// A spatial dimension of the window.
struct Spatial {
  int64_t lhsDim, rhsDim, outDim;
  WindowDim window;
};

/// The operation with defaults filled in.
struct Convolution {
  int64_t featureGroups, batchGroups;
  stablehlo::ConvDimensionNumbersAttr numbers;
  RankedTensorType lhs, rhs, out;
  SmallVector<Spatial> spatial;
  Type accumulator;

  explicit Convolution(stablehlo::ConvolutionOp op)
      : featureGroups(op.getFeatureGroupCount()),
        batchGroups(op.getBatchGroupCount()), numbers(op.getDimensionNumbers()),
        lhs(cast<RankedTensorType>(op.getLhs().getType())),
        rhs(cast<RankedTensorType>(op.getRhs().getType())),
        out(cast<RankedTensorType>(op.getType())) {
    auto valueOr = [](std::optional<ArrayRef<int64_t>> values, size_t i) {
      return values ? (*values)[i] : 1;
    };
    SmallVector<int64_t> sizes;
    for (int64_t dim : numbers.getKernelSpatialDimensions())
      sizes.push_back(rhs.getDimSize(dim));
    for (auto [i, window] : llvm::enumerate(getWindow(op, sizes))) {
      window.baseDilation = valueOr(op.getLhsDilation(), i);
      window.dilation = valueOr(op.getRhsDilation(), i);
      spatial.push_back({numbers.getInputSpatialDimensions()[i],
                         numbers.getKernelSpatialDimensions()[i],
                         numbers.getOutputSpatialDimensions()[i], window});
    }
    accumulator = getAccumulatorType(out.getElementType());
  }

  /// The sum of the products of one element of the result, in blocks.
  Value accumulate(KernelBuilder &k, ValueRange at) const {
    SmallVector<int64_t> sizes;
    for (const Spatial &dim : spatial)
      sizes.push_back(rhs.getDimSize(dim.rhsDim));
    sizes.push_back(rhs.getDimSize(numbers.getKernelInputFeatureDimension()));
    SmallVector<Value> window(sizes.size(), k.index(0));
    return overWindow(k, at, sizes, getBlockLoops(sizes), window,
                      makeZero(k.b, k.loc, accumulator));
  }

private:
  /// `sum` plus the products that `loops` walk, each of which forms its sum
  /// apart.
  Value overWindow(KernelBuilder &k, ValueRange at, ArrayRef<int64_t> sizes,
                   ArrayRef<BlockLoop> loops, MutableArrayRef<Value> window,
                   Value sum) const {
    if (loops.empty())
      return addProduct(k, at, window, sum);
    Value from = window[loops[0].dim];
    auto loop = makeBlockLoop(k, loops[0], sizes[loops[0].dim], from, sum);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    window[loops[0].dim] = loop.getInductionVar();
    Value before = loop.getRegionIterArg(0);
    bool last = loops.size() == 1;
    Value next = overWindow(k, at, sizes, loops.drop_front(), window,
                            last ? before : makeZero(k.b, k.loc, accumulator));
    if (!last)
      next = addScalars(k.b, k.loc, before, next);
    window[loops[0].dim] = from;
    scf::YieldOp::create(k.b, k.loc, next);
    return loop.getResult(0);
  }

  /// The group that `feature` of `features` belongs to, in `groups`.
  static Value groupOf(KernelBuilder &k, Value feature, int64_t features,
                       int64_t groups) {
    return arith::DivUIOp::create(k.b, k.loc, feature,
                                  k.index(features / groups));
  }

  Value addProduct(KernelBuilder &k, ValueRange at, ArrayRef<Value> window,
                   Value sum) const {
    SmallVector<Value> left(lhs.getRank()), right(rhs.getRank());
    Place place;
    for (auto [number, dim] : llvm::enumerate(spatial)) {
      place.add(k, dim.window, lhs.getDimSize(dim.lhsDim), at[dim.outDim],
                window[number]);
      left[dim.lhsDim] = place.indices.back();
      right[dim.rhsDim] = window[number];
    }
    Value feature = at[numbers.getOutputFeatureDimension()];
    Value batch = at[numbers.getOutputBatchDimension()];
    int64_t features = out.getDimSize(numbers.getOutputFeatureDimension());
    Value input = window.back();
    if (featureGroups > 1) {
      int64_t size = rhs.getDimSize(numbers.getKernelInputFeatureDimension());
      Value group = groupOf(k, feature, features, featureGroups);
      input = k.add(input, k.mul(group, k.index(size)));
    }
    if (batchGroups > 1) {
      int64_t size = out.getDimSize(numbers.getOutputBatchDimension());
      Value group = groupOf(k, feature, features, batchGroups);
      batch = k.add(batch, k.mul(group, k.index(size)));
    }
    left[numbers.getInputBatchDimension()] = batch;
    left[numbers.getInputFeatureDimension()] = input;
    right[numbers.getKernelInputFeatureDimension()] = window.back();
    right[numbers.getKernelOutputFeatureDimension()] = feature;
    auto product = [&]() -> Value {
      Value x = convertScalar(k.b, k.loc, k.loadScalar(0, left, lhs),
                              lhs.getElementType(), accumulator);
      Value y = convertScalar(k.b, k.loc, k.loadScalar(1, right, rhs),
                              rhs.getElementType(), accumulator);
      return multiplyAdd(k.b, k.loc, x, y, sum);
    };
    if (!place.inside)
      return product();
    auto branch = scf::IfOp::create(k.b, k.loc, sum.getType(), place.inside,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(k.b, k.loc, product());
    k.b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(k.b, k.loc, sum);
    return branch.getResult(0);
  }
};

/// Pattern: a convolution is a contraction of windows of the padded operand, if
/// that is not far larger or a thread would have too many terms of a result;
/// its loops form sums of neighbouring elements side by side. The output
/// features of each group are a dimension of their own in the filters and the
/// result.
struct ConvolutionToLoops : OpRewritePattern<stablehlo::ConvolutionOp> {
  ConvolutionToLoops(MLIRContext *context, const Target &target)
      : OpRewritePattern(context, /*benefit=*/2), target(target) {}

  LogicalResult matchAndRewrite(stablehlo::ConvolutionOp op,
                                PatternRewriter &rewriter) const override {
    using utils::IteratorType;
    Convolution convolution(op);
    auto numbers = convolution.numbers;
    RankedTensorType outType = convolution.out;
    int64_t filter = convolution.rhs.getNumElements();
    if (isReversed(op) || outType.getNumElements() == 0 || filter == 0)
      return failure();
    bool hasManyTerms =
        filter / convolution.rhs.getDimSize(
                     numbers.getKernelOutputFeatureDimension()) >
        kMostThreadTerms;
    FailureOr<Value> lhs = pad(rewriter, op, convolution,
                               /*anySize=*/target.isGpu() && hasManyTerms);
    if (failed(lhs))
      return failure();
    // By dimension of the result, whose last one is the innermost loop.
    int64_t groups = convolution.featureGroups * convolution.batchGroups;
    unsigned rank = outType.getRank(), outer = groups > 1 ? rank : rank - 1;
    SmallVector<IteratorType> iterators(outer, IteratorType::parallel);
    iterators.append(rank - 1, IteratorType::reduction);
    iterators.push_back(IteratorType::parallel);
    auto loop = [&](unsigned number) {
      return rewriter.getAffineDimExpr(number);
    };
    SmallVector<AffineExpr> out, left(rank), right(rank);
    for (unsigned dim = 0; dim < outer; ++dim)
      out.push_back(loop(dim));
    out.push_back(loop(outer + rank - 1));
    SmallVector<AffineExpr> split(out);
    AffineExpr group = rewriter.getAffineConstantExpr(0);
    int64_t outFeature = numbers.getOutputFeatureDimension();
    if (groups > 1) {
      group = out[outFeature];
      out.erase(out.begin() + outFeature);
    }
    AffineExpr feature = loop(outer + rank - 2);
    left[numbers.getInputBatchDimension()] =
        out[numbers.getOutputBatchDimension()];
    left[numbers.getInputFeatureDimension()] = feature;
    int64_t shared = convolution.batchGroups > 1
                         ? numbers.getInputBatchDimension()
                         : numbers.getInputFeatureDimension();
    left[shared] =
        left[shared] + group * (convolution.lhs.getDimSize(shared) / groups);
    right[numbers.getKernelInputFeatureDimension()] = feature;
    right[numbers.getKernelOutputFeatureDimension()] = out[outFeature];
    for (auto [number, dim] : llvm::enumerate(convolution.spatial)) {
      AffineExpr tap = loop(outer + number);
      left[dim.lhsDim] =
          out[dim.outDim] * dim.window.stride + tap * dim.window.dilation;
      right[dim.rhsDim] = tap;
    }
    Value rhs = op.getRhs();
    SmallVector<int64_t> shape(outType.getShape());
    if (groups > 1) {
      int64_t rhsFeature = numbers.getKernelOutputFeatureDimension();
      right.insert(right.begin() + rhsFeature, group);
      rhs = stablehlo::ReshapeOp::create(
          rewriter, op.getLoc(),
          convolution.rhs.clone(
              splitDim(convolution.rhs.getShape(), rhsFeature, groups)),
          rhs);
      shape = splitDim(shape, outFeature, groups);
    }
    SmallVector<AffineMap> maps;
    for (ArrayRef<AffineExpr> exprs : {left, right, split})
      maps.push_back(
          AffineMap::get(outer + rank, 0, exprs, rewriter.getContext()));
    return contractInLoops(rewriter, op, *lhs, rhs, maps, iterators, shape);
  }

private:
  /// The shape with a dimension for the groups before `dim`, which has them
  /// one after the other.
  static SmallVector<int64_t> splitDim(ArrayRef<int64_t> shape, int64_t dim,
                                       int64_t groups) {
    SmallVector<int64_t> split(shape);
    split[dim] /= groups;
    split.insert(split.begin() + dim, groups);
    return split;
  }
  /// Between padding and dilation the windows of a convolution stay inside.
  static FailureOr<Value> pad(PatternRewriter &rewriter,
                              stablehlo::ConvolutionOp op,
                              const Convolution &convolution, bool anySize) {
    constexpr int64_t most = 4, few = 1 << 16;
    RankedTensorType type = convolution.lhs;
    SmallVector<int64_t> low(type.getRank()), high(low), inside(low);
    SmallVector<int64_t> shape(type.getShape());
    int64_t count = type.getNumElements();
    for (const Spatial &dim : convolution.spatial) {
      int64_t before = shape[dim.lhsDim];

      const WindowDim &w = dim.window;
      int64_t size = (convolution.out.getDimSize(dim.outDim) - 1) * w.stride +
                     (w.size - 1) * w.dilation + 1;
      int64_t dilated = (before - 1) * w.baseDilation + 1;
      low[dim.lhsDim] = w.low;
      inside[dim.lhsDim] = w.baseDilation - 1;
      high[dim.lhsDim] = size - dilated - w.low;
      shape[dim.lhsDim] = size;
    }
    int64_t padded = 1;
    for (int64_t size : shape)
      if (llvm::MulOverflow(padded, size, padded))
        return failure();
    if (count == 0 || (!anySize && padded > std::max(count * most, few)))
      return failure();
    auto isZero = [](int64_t size) { return size == 0; };
    if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero) &&
        llvm::all_of(inside, isZero))
      return op.getLhs();
    Value zero = stablehlo::ConstantOp::create(
        rewriter, op.getLoc(),
        makeZeros(RankedTensorType::get({}, type.getElementType())));
    auto pad =
        stablehlo::PadOp::create(rewriter, op.getLoc(), type.clone(shape),
                                 op.getLhs(), zero, low, high, inside);
    FailureOr<Value> result = lowerPad(rewriter, pad);
    if (failed(result))
      return failure();
    Type wanted = pad.getType();
    rewriter.eraseOp(pad);
    if (result->getType() == wanted)
      return result;
    return UnrealizedConversionCastOp::create(rewriter, op.getLoc(), wanted,
                                              *result)
        .getResult(0);
  }

  Target target;
};

struct ConvolutionToKernel : OpRewritePattern<stablehlo::ConvolutionOp> {
  ConvolutionToKernel(MLIRContext *context, const Target &target)
      : OpRewritePattern(context), target(target) {}

  LogicalResult matchAndRewrite(stablehlo::ConvolutionOp op,
                                PatternRewriter &rewriter) const override {
    if (isReversed(op))
      return failure();
    Convolution convolution(op);
    RankedTensorType storage = getStorageType(convolution.out);
    Value lhs = stored(rewriter, op.getLhs());
    Value rhs = stored(rewriter, op.getRhs());
    if (!storage || !lhs || !rhs)
      return failure();
    auto kernel = makeKernel(
        rewriter, op.getLoc(), target.isGpu(), storage, ValueRange{lhs, rhs},
        [&](KernelBuilder &k) -> LogicalResult {
          k.parallel(storage.getShape(), [&](ValueRange at) {
            Value sum = convolution.accumulate(k, at);
            k.store(convertScalar(k.b, k.loc, sum, convolution.accumulator,
                                  convolution.out.getElementType()),
                    2, at);
          });
          return success();
        });
    if (failed(kernel))
      return failure();
    noteWork(*kernel, op);
    replaceWithStored(rewriter, op, kernel->getResults());
    return success();
  }

  Target target;
};

} // namespace

void whale::populateConvolutionPatterns(RewritePatternSet &patterns,
                                        const Target &target) {
  patterns.add<ConvolutionToKernel>(patterns.getContext(), target);
  patterns.add<ConvolutionToLoops>(patterns.getContext(), target);
}
