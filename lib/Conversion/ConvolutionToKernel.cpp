//===- ConvolutionToKernel.cpp - Convolutions of any type -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the library does not convolve (f64, integers, complex numbers): a sum
// over the window and the input features for each element of the result.
//
//===----------------------------------------------------------------------===//

#include "Windows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

using namespace mlir;
using namespace whale;

namespace {

/// A spatial dimension of the window.
struct Spatial {
  int64_t lhsDim, rhsDim, outDim;
  int64_t stride, low, lhsDilation, rhsDilation;
  bool reversed;
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
    SmallVector<int64_t> padding;
    if (auto attribute = op.getPadding())
      padding = llvm::to_vector(attribute->getValues<int64_t>());
    for (size_t i = 0; i < numbers.getInputSpatialDimensions().size(); ++i)
      spatial.push_back(
          {numbers.getInputSpatialDimensions()[i],
           numbers.getKernelSpatialDimensions()[i],
           numbers.getOutputSpatialDimensions()[i],
           valueOr(op.getWindowStrides(), i),
           padding.empty() ? 0 : padding[2 * i],
           valueOr(op.getLhsDilation(), i), valueOr(op.getRhsDilation(), i),
           op.getWindowReversal() ? (*op.getWindowReversal())[i] : false});
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
    Value inside;
    auto require = [&](Value condition) {
      inside =
          inside
              ? arith::AndIOp::create(k.b, k.loc, inside, condition).getResult()
              : condition;
    };
    for (auto [number, dim] : llvm::enumerate(spatial)) {
      Value index = k.mul(at[dim.outDim], k.index(dim.stride));
      index = k.add(index, k.mul(window[number], k.index(dim.rhsDilation)));
      index = k.add(index, k.index(-dim.low));
      int64_t size = lhs.getDimSize(dim.lhsDim);
      require(k.inside(index, (size - 1) * dim.lhsDilation + 1));
      if (dim.lhsDilation > 1) {
        Value dilation = k.index(dim.lhsDilation);
        Value rest = arith::RemUIOp::create(k.b, k.loc, index, dilation);
        require(k.compare(arith::CmpIPredicate::eq, rest, k.index(0)));
        index = arith::DivUIOp::create(k.b, k.loc, index, dilation);
      }
      left[dim.lhsDim] = index;
      right[dim.rhsDim] = window[number];
      if (dim.reversed)
        right[dim.rhsDim] = arith::SubIOp::create(
            k.b, k.loc, k.index(rhs.getDimSize(dim.rhsDim) - 1),
            window[number]);
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
    if (!inside)
      return product();
    auto branch = scf::IfOp::create(k.b, k.loc, sum.getType(), inside,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(k.b, k.loc, product());
    k.b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(k.b, k.loc, sum);
    return branch.getResult(0);
  }
};

struct ConvolutionToKernel : OpRewritePattern<stablehlo::ConvolutionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ConvolutionOp op,
                                PatternRewriter &rewriter) const override {
    Convolution convolution(op);
    RankedTensorType storage = getStorageType(convolution.out);
    Value lhs = stored(rewriter, op.getLhs());
    Value rhs = stored(rewriter, op.getRhs());
    if (!storage || !lhs || !rhs)
      return failure();
    ArrayRef<int64_t> shape = storage.getShape();
    auto kernel = makeKernel(
        rewriter, op.getLoc(), storage, ValueRange{lhs, rhs}, shape[0],
        [&](KernelBuilder &k) -> LogicalResult {
          k.loop(k.begin, k.end, [&](Value outer) {
            k.nest(shape.drop_front(), [&](ValueRange inner) {
              SmallVector<Value> at{outer};
              llvm::append_range(at, inner);
              Value sum = convolution.accumulate(k, at);
              k.store(convertScalar(k.b, k.loc, sum, convolution.accumulator,
                                    convolution.out.getElementType()),
                      2, at);
            });
          });
          return success();
        });
    if (failed(kernel))
      return failure();
    replaceWithStored(rewriter, op, kernel->getResults());
    return success();
  }
};

} // namespace

void whale::populateConvolutionPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvolutionToKernel>(patterns.getContext());
}
