//===- NormalizeConvolutions.cpp - whale-normalize-convolutions -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: convolutions, of any order of dimensions and any padding. Out: those in
// the order that cuDNN reads, or with channels behind the batch, padded alike
// on both sides; what differs is transposed, padded or cut before them or
// behind. Cost: where no kernel takes that in, a copy of the tensor.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "whale/Conversion/Passes.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/ProgramFormat/Products.h"

#include <algorithm>

namespace whale {
#define GEN_PASS_DEF_NORMALIZECONVOLUTIONS
#include "whale/Conversion/Passes.h.inc"
} // namespace whale

using namespace mlir;
using namespace whale;

using Order = std::vector<int64_t>;

/// In front of and behind each spatial dimension.
static SmallVector<int64_t> getPadding(stablehlo::ConvolutionOp op) {
  if (auto attribute = op.getPadding())
    return llvm::to_vector(attribute->getValues<int64_t>());
  auto numbers = op.getDimensionNumbers();
  return SmallVector<int64_t>(2 * numbers.getInputSpatialDimensions().size());
}

/// What its form follows from.
static format::Convolution describe(stablehlo::ConvolutionOp op) {
  format::Convolution result;
  auto numbers = op.getDimensionNumbers();
  result.lhsShape = getShape(op.getLhs()).vec();
  result.rhsShape = getShape(op.getRhs()).vec();
  result.outShape = getShape(op.getResult()).vec();
  result.lhsDims = {numbers.getInputBatchDimension(),
                    numbers.getInputFeatureDimension(),
                    numbers.getInputSpatialDimensions().vec()};
  result.rhsDims = {numbers.getKernelInputFeatureDimension(),
                    numbers.getKernelOutputFeatureDimension(),
                    numbers.getKernelSpatialDimensions().vec()};
  result.outDims = {numbers.getOutputBatchDimension(),
                    numbers.getOutputFeatureDimension(),
                    numbers.getOutputSpatialDimensions().vec()};
  result.windows.resize(result.lhsDims.spatial.size());
  SmallVector<int64_t> padding = getPadding(op);
  for (auto [i, window] : llvm::enumerate(result.windows)) {
    window.low = padding[2 * i];
    window.high = padding[2 * i + 1];
    if (auto strides = op.getWindowStrides())
      window.stride = (*strides)[i];
    if (auto dilation = op.getLhsDilation())
      window.lhsDilation = (*dilation)[i];
    if (auto dilation = op.getRhsDilation())
      window.rhsDilation = (*dilation)[i];
    if (auto reversal = op.getWindowReversal())
      window.reversed = (*reversal)[i];
  }
  result.featureGroups = op.getFeatureGroupCount();
  result.batchGroups = op.getBatchGroupCount();
  return result;
}

/// Whether the spatial dimensions of the order, which has channels last, are
/// behind the others: channels come first.
static bool isChannelsFirst(const Order &order) {
  Order first = order;
  std::rotate(first.begin() + 1, first.end() - 1, first.end());
  return isIdentityPermutation(first);
}

/// Pattern: conv(x) padded by 2 and 3 -> conv(pad(x) behind) padded by 2 and 2
/// or, where x is the result, slice(conv).
static stablehlo::ConvolutionOp padEvenly(IRRewriter &rewriter,
                                          stablehlo::ConvolutionOp op) {
  format::Convolution described = describe(op);
  bool isOfResult =
      format::formOf(described) == format::ConvolutionForm::ImageGradient;
  // A gradient with strides of its own is none, and no library has it.
  if (isOfResult && llvm::any_of(described.windows, [](const auto &window) {
        return window.stride != 1;
      }))
    return op;
  ArrayRef<int64_t> spatial =
      isOfResult ? described.outDims.spatial : described.lhsDims.spatial;
  Value image = isOfResult ? op.getResult() : op.getLhs();
  auto type = cast<RankedTensorType>(image.getType());
  SmallVector<int64_t> low(type.getRank()), high(type.getRank());
  SmallVector<int64_t> padding = getPadding(op), shape(type.getShape());
  // A gradient has more windows where the result has more elements.
  int64_t sign = isOfResult ? 1 : -1;
  bool isEven = true;
  for (auto [i, dim] : llvm::enumerate(spatial)) {
    auto [inFront, behind] =
        format::zerosForEvenPadding(format::windowOf(described, i));
    low[dim] = inFront;
    high[dim] = behind;
    shape[dim] += inFront + behind;
    padding[2 * i] += sign * inFront;
    padding[2 * i + 1] += sign * behind;
    isEven = isEven && !inFront && !behind;
  }
  // Nor is anything padded to more elements than 64 bits count.
  int64_t elements = 1;
  if (isEven || llvm::any_of(shape, [&](int64_t size) {
        return llvm::MulOverflow(elements, size, elements);
      }))
    return op;
  rewriter.setInsertionPoint(op);
  auto padded = cast<stablehlo::ConvolutionOp>(rewriter.clone(*op));
  padded.setPaddingAttr(stablehlo::makePadding(op.getContext(), padding));
  SmallVector<int64_t> steps(type.getRank(), 1);
  if (isOfResult) {
    padded.getResult().setType(type.clone(shape));
    SmallVector<int64_t> end(low);
    for (auto [limit, extent] : llvm::zip_equal(end, type.getShape()))
      limit += extent;
    rewriter.replaceOpWithNewOp<stablehlo::SliceOp>(op, type, padded, low, end,
                                                    steps);
    return padded;
  }
  rewriter.setInsertionPoint(padded);
  Value zero = stablehlo::ConstantOp::create(
      rewriter, op.getLoc(),
      makeZeros(RankedTensorType::get({}, type.getElementType())));
  SmallVector<int64_t> interior(type.getRank(), 0);
  Value larger =
      stablehlo::PadOp::create(rewriter, op.getLoc(), type.clone(shape), image,
                               zero, low, high, interior);
  padded.getLhsMutable().assign(larger);
  rewriter.replaceOp(op, padded);
  return padded;
}

static RankedTensorType permute(RankedTensorType type,
                                ArrayRef<int64_t> order) {
  return type.clone(applyPermutation(type.getShape(), order));
}

static void reorder(IRRewriter &rewriter, stablehlo::ConvolutionOp op) {
  format::Convolution described = describe(op);
  auto [lhs, rhs, out] = format::channelsLastOrder(described);
  bool isRead =
      (isIdentityPermutation(lhs) && isIdentityPermutation(rhs) &&
       isIdentityPermutation(out)) ||
      (isChannelsFirst(lhs) && isChannelsFirst(rhs) && isChannelsFirst(out));
  if (isRead)
    return;
  rewriter.setInsertionPointAfter(op);
  auto move = [&](Value value, ArrayRef<int64_t> order) -> Value {
    if (isIdentityPermutation(order))
      return value;
    return stablehlo::TransposeOp::create(
        rewriter, op.getLoc(),
        permute(cast<RankedTensorType>(value.getType()), order), value, order);
  };
  // Where each logical dimension is afterwards.
  auto renumber = [](format::Convolution::Dimensions dims, const Order &order) {
    SmallVector<int64_t> places = invertPermutationVector(order);
    dims.first = places[dims.first];
    dims.second = places[dims.second];
    for (int64_t &dim : dims.spatial)
      dim = places[dim];
    return dims;
  };
  auto input = renumber(described.lhsDims, lhs),
       kernel = renumber(described.rhsDims, rhs),
       output = renumber(described.outDims, out);
  auto type = permute(cast<RankedTensorType>(op.getType()), out);
  auto moved = cast<stablehlo::ConvolutionOp>(rewriter.clone(*op));
  rewriter.moveOpAfter(moved, op);
  rewriter.setInsertionPoint(moved);
  moved.getLhsMutable().assign(move(op.getLhs(), lhs));
  moved.getRhsMutable().assign(move(op.getRhs(), rhs));
  moved.getResult().setType(type);
  moved.setDimensionNumbersAttr(stablehlo::ConvDimensionNumbersAttr::get(
      op.getContext(), input.first, input.second, input.spatial, kernel.first,
      kernel.second, kernel.spatial, output.first, output.second,
      output.spatial));
  rewriter.setInsertionPointAfter(moved);
  rewriter.replaceOp(op, move(moved.getResult(), invertPermutationVector(out)));
}

namespace {

struct NormalizeConvolutions
    : whale::impl::NormalizeConvolutionsBase<NormalizeConvolutions> {
  void runOnOperation() override {
    SmallVector<stablehlo::ConvolutionOp> found;
    getOperation().walk(
        [&](stablehlo::ConvolutionOp op) { found.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (stablehlo::ConvolutionOp op : found) {
      // Libraries have windows of one to three dimensions.
      auto numbers = op.getDimensionNumbers();
      size_t rank = numbers.getInputSpatialDimensions().size();
      if (rank >= 1 && rank <= 3)
        reorder(rewriter, padEvenly(rewriter, op));
    }
  }
};

} // namespace
