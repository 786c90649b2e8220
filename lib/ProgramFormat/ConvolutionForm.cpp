//===- ConvolutionForm.cpp - Convolutions as GPU libraries say them -------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Products.h"

#include <algorithm>

namespace whale::format {

static int64_t volumeOf(const Shape &shape, const std::vector<int64_t> &dims) {
  int64_t volume = 1;
  for (int64_t dim : dims)
    volume *= shape[static_cast<size_t>(dim)];
  return volume;
}

ConvolutionForm formOf(const Convolution &op) {
  using Window = Convolution::Window;
  // An image is spread where the windows of which this is the gradient were
  // strided.
  if (std::ranges::any_of(op.windows,
                          [](const Window &w) { return w.lhsDilation != 1; }))
    return ConvolutionForm::ImageGradient;
  // The windows of a filter's gradient are all of an image.
  if (op.batchGroups > 1 ||
      (op.featureGroups == 1 &&
       std::ranges::none_of(op.windows,
                            [](const Window &w) { return w.reversed; }) &&
       volumeOf(op.rhsShape, op.rhsDims.spatial) >
           volumeOf(op.outShape, op.outDims.spatial)))
    return ConvolutionForm::FilterGradient;
  return ConvolutionForm::Forward;
}

int64_t windowPlaces(const Convolution &op) {
  return std::min(volumeOf(op.rhsShape, op.rhsDims.spatial),
                  volumeOf(op.outShape, op.outDims.spatial));
}

ConvolutionWindow windowOf(const Convolution &op, size_t spatialDim) {
  const Convolution::Window &window = op.windows[spatialDim];
  auto extent = [&](const Shape &shape, const Convolution::Dimensions &dims) {
    return shape[static_cast<size_t>(dims.spatial[spatialDim])];
  };
  int64_t lhs = extent(op.lhsShape, op.lhsDims),
          rhs = extent(op.rhsShape, op.rhsDims),
          out = extent(op.outShape, op.outDims);
  switch (formOf(op)) {
  case ConvolutionForm::Forward:
    return {lhs, rhs, out, window.low, window.stride, window.rhsDilation};
  case ConvolutionForm::FilterGradient:
    return {lhs, out, rhs, window.low, window.rhsDilation, window.stride};
  case ConvolutionForm::ImageGradient:
    return {out,
            rhs,
            lhs,
            window.rhsDilation * (rhs - 1) - window.low,
            window.lhsDilation,
            window.rhsDilation};
  }
  return {};
}

ConvolutionZeros zerosForEvenPadding(const ConvolutionWindow &window) {
  // With this much behind, and up to a stride less one more, there are as many
  // windows as y has elements.
  int64_t reach = window.dilation * (window.w - 1) + 1;
  int64_t least =
      (window.y - 1) * window.stride + reach - (window.x + window.before);
  int64_t most = least + window.stride - 1;
  return {std::max<int64_t>(window.before - std::max<int64_t>(most, 0), 0),
          std::max<int64_t>(least - std::max<int64_t>(window.before, 0), 0)};
}

/// `outer`, the spatial dimensions, and then the channels.
static std::vector<int64_t> orderOf(const Convolution::Dimensions &dims,
                                    bool isExchanged) {
  std::vector<int64_t> order = {isExchanged ? dims.second : dims.first};
  order.insert(order.end(), dims.spatial.begin(), dims.spatial.end());
  order.push_back(isExchanged ? dims.first : dims.second);
  return order;
}

ConvolutionOrder channelsLastOrder(const Convolution &op) {
  ConvolutionForm form = formOf(op);
  bool isFilterGradient = form == ConvolutionForm::FilterGradient;
  // A filter of one channel in each group is read as that of a forward one.
  bool isForward = form == ConvolutionForm::Forward || op.featureGroups > 1;
  return {orderOf(op.lhsDims, isFilterGradient),
          orderOf(op.rhsDims, !isFilterGradient && isForward),
          orderOf(op.outDims, isFilterGradient)};
}

} // namespace whale::format
