//===- ConvolutionsToProducts.cpp - whale-convolutions-to-products --------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: convolutions. Out: a product instead of each that is one, as its filter
// has one pixel, or its window is the whole image (the gradient of such a
// filter); the images become matrices by reshapes, which move nothing. Cost: a
// look at each convolution.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

namespace whale {
#define GEN_PASS_DEF_CONVOLUTIONSTOPRODUCTS
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

static int64_t getSize(Value tensor, int64_t dim) {
  return cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
}

/// Of a spatial dimension, whether it is the image's own or summed over.
enum class Window { Own, Summed };

/// Nothing where windows overlap, leave out elements, or have zeros.
static std::optional<SmallVector<Window>>
findWindows(stablehlo::ConvolutionOp op) {
  auto numbers = op.getDimensionNumbers();
  if (auto padding = op.getPadding())
    if (!llvm::all_of(padding->getValues<int64_t>(),
                      [](int64_t zeros) { return zeros == 0; }))
      return std::nullopt;
  SmallVector<Window> windows;
  for (auto [i, dims] :
       llvm::enumerate(llvm::zip_equal(numbers.getInputSpatialDimensions(),
                                       numbers.getKernelSpatialDimensions(),
                                       numbers.getOutputSpatialDimensions()))) {
    auto [lhsDim, rhsDim, outDim] = dims;
    int64_t image = getSize(op.getLhs(), lhsDim);
    int64_t kernel = getSize(op.getRhs(), rhsDim);
    int64_t out = getSize(op.getResult(), outDim);
    auto isOne = [&](std::optional<ArrayRef<int64_t>> factors, int64_t extent) {
      return extent == 1 || !factors || (*factors)[i] == 1;
    };
    bool isReversed = op.getWindowReversal() && (*op.getWindowReversal())[i];
    if (!isOne(op.getLhsDilation(), image))
      return std::nullopt;
    if (kernel == 1 && out == image && isOne(op.getWindowStrides(), out))
      windows.push_back(Window::Own);
    else if (kernel == image && out == 1 && !isReversed &&
             isOne(op.getRhsDilation(), kernel))
      windows.push_back(Window::Summed);
    else
      return std::nullopt;
  }
  return windows;
}

namespace {

/// Pattern: convolution -> reshape(transpose(dot_general(x, reshape(w))))
struct ConvolutionToProduct : OpRewritePattern<stablehlo::ConvolutionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(stablehlo::ConvolutionOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<SmallVector<Window>> windows = findWindows(op);
    if (op.getFeatureGroupCount() != 1 || op.getBatchGroupCount() != 1 ||
        !windows)
      return failure();
    Location loc = op.getLoc();
    auto numbers = op.getDimensionNumbers();
    auto rhsType = cast<RankedTensorType>(op.getRhs().getType());
    auto type = cast<RankedTensorType>(op.getType());
    ArrayRef<int64_t> image = numbers.getInputSpatialDimensions(),
                      kernel = numbers.getKernelSpatialDimensions(),
                      result = numbers.getOutputSpatialDimensions();

    // A window of one element is no dimension of the filter's.
    llvm::SmallBitVector isDropped(rhsType.getRank());
    for (auto [window, dim] : llvm::zip_equal(*windows, kernel))
      isDropped[dim] = window == Window::Own;
    SmallVector<int64_t> rhsShape, rhsPlaces;
    for (auto [dim, extent] : llvm::enumerate(rhsType.getShape())) {
      rhsPlaces.push_back(static_cast<int64_t>(rhsShape.size()));
      if (!isDropped[dim])
        rhsShape.push_back(extent);
    }
    auto reshape = [&](Value value, Type type) -> Value {
      if (value.getType() == type)
        return value;
      return stablehlo::ReshapeOp::create(rewriter, loc, type, value);
    };
    Value rhs = reshape(op.getRhs(), rhsType.clone(rhsShape));

    // The product has the free dimensions of the image, and then the outputs.
    // `places` says where each is in the result.
    SmallVector<int64_t> lhsSummed = {numbers.getInputFeatureDimension()};
    SmallVector<int64_t> rhsSummed = {
        rhsPlaces[numbers.getKernelInputFeatureDimension()]};
    SmallVector<std::pair<int64_t, int64_t>> free = {
        {numbers.getInputBatchDimension(), numbers.getOutputBatchDimension()}};
    for (auto [i, window] : llvm::enumerate(*windows)) {
      if (window == Window::Own) {
        free.emplace_back(image[i], result[i]);
        continue;
      }
      lhsSummed.push_back(image[i]);
      rhsSummed.push_back(rhsPlaces[kernel[i]]);
    }
    llvm::sort(free);
    SmallVector<int64_t> places;
    for (auto [lhsDim, outDim] : free)
      places.push_back(outDim);
    places.push_back(numbers.getOutputFeatureDimension());
    auto extentsOf = [&](ArrayRef<int64_t> dims) {
      return llvm::map_to_vector(
          dims, [&](int64_t dim) { return type.getDimSize(dim); });
    };
    Value product = stablehlo::DotGeneralOp::create(
        rewriter, loc, type.clone(extentsOf(places)), op.getLhs(), rhs,
        stablehlo::DotDimensionNumbersAttr::get(getContext(), {}, {}, lhsSummed,
                                                rhsSummed),
        op.getPrecisionConfigAttr(), stablehlo::DotAlgorithmAttr());

    SmallVector<int64_t> order =
        llvm::to_vector(llvm::seq<int64_t>(places.size()));
    llvm::sort(order,
               [&](int64_t a, int64_t b) { return places[a] < places[b]; });
    if (!isIdentityPermutation(order))
      product = stablehlo::TransposeOp::create(
          rewriter, loc, type.clone(extentsOf(applyPermutation(places, order))),
          product, order);
    rewriter.replaceOp(op, reshape(product, type));
    return success();
  }
};

struct ConvolutionsToProducts
    : whale::impl::ConvolutionsToProductsBase<ConvolutionsToProducts> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ConvolutionToProduct>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
