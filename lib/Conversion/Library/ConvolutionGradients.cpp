//===- ConvolutionGradients.cpp - whale-convolution-gradients -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: convolutions. Out: those of spread images (strided ones' gradients, and
// transposed convolutions) in the form in which libraries have them. Cost: a
// look at each convolution; where no reversal of the kernel is there to be
// taken in, a copy of the kernel.
//
//===----------------------------------------------------------------------===//

#include "Kernel/Windows.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include <algorithm>

namespace whale {
#define GEN_PASS_DEF_CONVOLUTIONGRADIENTS
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

/// Extents of the spatial dimensions.
static SmallVector<int64_t> extentsOf(Value value, ArrayRef<int64_t> dims) {
  auto type = cast<RankedTensorType>(value.getType());
  return llvm::map_to_vector(dims,
                             [&](int64_t dim) { return type.getDimSize(dim); });
}

static bool areOnes(std::optional<ArrayRef<int64_t>> factors) {
  return !factors || llvm::all_of(*factors, [](int64_t f) { return f == 1; });
}

/// Whether the image is spread and the kernel is read from its start.
static bool isSpread(stablehlo::ConvolutionOp op) {
  return !areOnes(op.getLhsDilation()) && !isReversed(op) &&
         op.getResult().getType().getNumElements() > 0;
}

static int64_t volumeOf(Value value, ArrayRef<int64_t> dims) {
  return ShapedType::getNumElements(extentsOf(value, dims));
}

static bool hasLargeWindow(stablehlo::ConvolutionOp op) {
  auto numbers = op.getDimensionNumbers();
  return volumeOf(op.getRhs(), numbers.getKernelSpatialDimensions()) >
         volumeOf(op.getResult(), numbers.getOutputSpatialDimensions());
}

namespace {

/// Pattern: convolution(x spread by s, w) ->
///     convolution(x spread by s, reverse(w)) with windows reversed
/// where reverse(reverse(w)) is w.
struct ReverseWindows : OpRewritePattern<stablehlo::ConvolutionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ConvolutionOp op,
                                PatternRewriter &rewriter) const override {
    auto dims = op.getDimensionNumbers().getKernelSpatialDimensions();
    if (!isSpread(op) || hasLargeWindow(op) ||
        !areOnes(op.getWindowStrides()) || volumeOf(op.getRhs(), dims) == 1)
      return failure();
    Value kernel;
    auto reverse = op.getRhs().getDefiningOp<stablehlo::ReverseOp>();
    auto reversed = reverse ? reverse.getDimensions() : ArrayRef<int64_t>();
    if (reverse && std::is_permutation(reversed.begin(), reversed.end(),
                                       dims.begin(), dims.end()))
      kernel = reverse.getOperand();
    else
      kernel = stablehlo::ReverseOp::create(rewriter, op.getLoc(), op.getRhs(),
                                            dims);
    SmallVector<bool> reversal(dims.size(), true);
    rewriter.modifyOpInPlace(op, [&] {
      op.getRhsMutable().assign(kernel);
      op.setWindowReversal(reversal);
    });
    if (reverse && reverse->use_empty())
      rewriter.eraseOp(reverse);
    return success();
  }
};

/// Pattern: convolution(x spread by s, y) ->
///     reverse(convolution(y, x dilated by s))
/// where the window is larger than the result: the gradient of the kernel of a
/// transposed convolution. With p in x and j in y, the sum is over all with
/// o * stride + j = p * s + low; counted from the end of the result, that is
/// j = o * stride + p * s - ((extent - 1) * stride - low).
struct ExchangeOperands : OpRewritePattern<stablehlo::ConvolutionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ConvolutionOp op,
                                PatternRewriter &rewriter) const override {
    if (!isSpread(op) || !hasLargeWindow(op) || !areOnes(op.getRhsDilation()) ||
        op.getFeatureGroupCount() != 1 || op.getBatchGroupCount() != 1)
      return failure();
    auto numbers = op.getDimensionNumbers();
    SmallVector<int64_t> padding;
    for (auto [window, x, out, spread] : llvm::zip_equal(
             getWindow(op, extentsOf(op.getRhs(),
                                     numbers.getKernelSpatialDimensions())),
             extentsOf(op.getLhs(), numbers.getInputSpatialDimensions()),
             extentsOf(op.getResult(), numbers.getOutputSpatialDimensions()),
             *op.getLhsDilation())) {
      int64_t last = (out - 1) * window.stride, before = last - window.low;
      llvm::append_values(padding, before,
                          last + (x - 1) * spread + 1 - window.size - before);
    }
    auto exchanged = cast<stablehlo::ConvolutionOp>(rewriter.clone(*op));
    exchanged.getLhsMutable().assign(op.getRhs());
    exchanged.getRhsMutable().assign(op.getLhs());
    exchanged.setPaddingAttr(stablehlo::makePadding(getContext(), padding));
    exchanged.removeLhsDilationAttr();
    exchanged.setRhsDilationAttr(op.getLhsDilationAttr());
    if (ArrayAttr precision = op.getPrecisionConfigAttr())
      exchanged.setPrecisionConfigAttr(rewriter.getArrayAttr(
          llvm::to_vector(llvm::reverse(precision.getValue()))));
    exchanged.setDimensionNumbersAttr(stablehlo::ConvDimensionNumbersAttr::get(
        getContext(), numbers.getKernelOutputFeatureDimension(),
        numbers.getKernelInputFeatureDimension(),
        numbers.getKernelSpatialDimensions(),
        numbers.getInputFeatureDimension(), numbers.getInputBatchDimension(),
        numbers.getInputSpatialDimensions(),
        numbers.getOutputFeatureDimension(), numbers.getOutputBatchDimension(),
        numbers.getOutputSpatialDimensions()));
    rewriter.replaceOpWithNewOp<stablehlo::ReverseOp>(
        op, exchanged, numbers.getOutputSpatialDimensions());
    return success();
  }
};

struct ConvolutionGradients
    : whale::impl::ConvolutionGradientsBase<ConvolutionGradients> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ReverseWindows, ExchangeOperands>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
