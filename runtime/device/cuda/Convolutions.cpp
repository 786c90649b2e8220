//===- Convolutions.cpp - Convolutions by cuDNN ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a convolution of the program, which says forward ones and gradients in
// one form. Out: the one of cuDNN's three that computes it, or none, and plans
// for a graph of the one operation. Cost: describing it is linear in its
// dimensions; finding plans is cuDNN's (DnnPlans.cpp), once for each
// convolution. An engine may copy image, filter and result to an order of its
// own, for which workspaceOf counts them once.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Convolutions.h"

#include "whale/ProgramFormat/Limits.h"

#include <algorithm>

namespace whale::runtime::cuda {

using Form = format::ConvolutionForm;

//===----------------------------------------------------------------------===//
// Which convolution it is
//===----------------------------------------------------------------------===//

static DnnConvolution::Tensor tensorOf(const Shape &shape,
                                       const Convolution::Dimensions &dims,
                                       bool isExchanged) {
  Shape strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  DnnConvolution::Tensor tensor;
  auto add = [&](int64_t dim) {
    tensor.sizes.push_back(shape[dim]);
    tensor.strides.push_back(strides[dim]);
  };
  add(isExchanged ? dims.second : dims.first);
  add(isExchanged ? dims.first : dims.second);
  // cuDNN has two spatial dimensions or three.
  if (dims.spatial.size() == 1) {
    tensor.sizes.push_back(1);
    tensor.strides.push_back(strides[dims.spatial[0]] * shape[dims.spatial[0]]);
  }
  for (int64_t dim : dims.spatial)
    add(dim);
  return tensor;
}

/// Whether the elements lie one behind the other with channels last, or first
/// but for the batch.
static bool isInOrder(const DnnConvolution::Tensor &tensor, bool isLast) {
  size_t rank = tensor.sizes.size();
  std::vector<size_t> order = {0};
  for (size_t dim = 2; dim < rank; ++dim)
    order.push_back(dim);
  order.insert(isLast ? order.end() : order.begin() + 1, 1);
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    size_t dim = order[i];
    if (tensor.sizes[dim] != 1 && tensor.strides[dim] != stride)
      return false;
    stride *= tensor.sizes[dim];
  }
  return true;
}

std::optional<DnnConvolution> describeForDnn(const Convolution &op) {
  size_t rank = op.windows.size();
  DType type = op.lhsType;
  if ((type != DType::F32 && type != DType::F16 && type != DType::BF16) ||
      op.rhsType != type || op.outType != type || rank < 1 || rank > 3 ||
      elementCount(op.lhsShape) * elementCount(op.rhsShape) *
              elementCount(op.outShape) ==
          0)
    return std::nullopt;
  using Window = Convolution::Window;
  auto all = [&](auto holds) { return std::ranges::all_of(op.windows, holds); };
  bool isReversed = all([](const Window &w) { return w.reversed; });
  if (!isReversed && !all([](const Window &w) { return !w.reversed; }))
    return std::nullopt;
  DnnConvolution result;
  result.kind = format::formOf(op);
  result.dtype = type;
  result.tf32 = op.tf32;
  // A dimension that is not there has one window.
  if (rank == 1) {
    result.padding = {0};
    result.strides = result.dilations = {1};
  }
  for (size_t i = 0; i < rank; ++i) {
    format::ConvolutionWindow window = format::windowOf(op, i);
    int64_t padded = window.x + 2 * window.before;
    int64_t reach = window.dilation * (window.w - 1) + 1;
    if (window.before < 0 || padded < reach ||
        (padded - reach) / window.stride + 1 != window.y)
      return std::nullopt;
    result.padding.push_back(window.before);
    result.strides.push_back(window.stride);
    result.dilations.push_back(window.dilation);
  }
  switch (result.kind) {
  case Form::ImageGradient: {
    // The filter's channels of y are in the way of its groups, unless a group
    // has one channel of each.
    bool isDepthwise = op.rhsShape[op.rhsDims.first] == 1 &&
                       op.rhsShape[op.rhsDims.second] == op.featureGroups;
    if ((op.featureGroups != 1 && !isDepthwise) || op.batchGroups != 1 ||
        !all([](const Window &w) { return w.stride == 1; }))
      return std::nullopt;
    result.isFlipped = !isReversed;
    result.x = tensorOf(op.outShape, op.outDims, false);
    result.w = tensorOf(op.rhsShape, op.rhsDims, op.featureGroups != 1);
    result.y = tensorOf(op.lhsShape, op.lhsDims, false);
    break;
  }
  case Form::FilterGradient:
    // The window is all of y, and features are what is summed over, the batch.
    if (isReversed || op.featureGroups != 1)
      return std::nullopt;
    result.x = tensorOf(op.lhsShape, op.lhsDims, true);
    result.w = tensorOf(op.outShape, op.outDims, true);
    result.y = tensorOf(op.rhsShape, op.rhsDims, false);
    break;
  case Form::Forward:
    result.isFlipped = isReversed;
    result.x = tensorOf(op.lhsShape, op.lhsDims, false);
    result.w = tensorOf(op.rhsShape, op.rhsDims, true);
    result.y = tensorOf(op.outShape, op.outDims, false);
    break;
  }
  auto areInOrder = [&](bool isLast) {
    return isInOrder(result.x, isLast) && isInOrder(result.w, isLast) &&
           isInOrder(result.y, isLast);
  };
  if (!areInOrder(true) && !areInOrder(false))
    return std::nullopt;
  return result;
}

//===----------------------------------------------------------------------===//
// Its plan
//===----------------------------------------------------------------------===//

/// Engines keep a copy of the image, the filter and the result in an order of
/// their own, where they need one, with channels by eights.
int64_t workspaceOf(const DnnConvolution &convolution) {
  constexpr int64_t small = 1 << 20;
  int64_t bytes = small;
  for (const DnnConvolution::Tensor *tensor :
       {&convolution.x, &convolution.w, &convolution.y}) {
    Shape padded = tensor->sizes;
    padded[1] = (padded[1] + 7) / 8 * 8;
    bytes += elementCount(padded) * byteSize(convolution.dtype);
  }
  return std::min(bytes, format::mostWorkspace);
}

/// The numbers of the tensors in the graph.
static constexpr int64_t xNumber = 1, wNumber = 2, yNumber = 3;

/// The graph of the one operation.
static DnnGraph describe(const Dnn &dnn, const DnnConvolution &given) {
  DnnGraph build(dnn);
  int dataType = given.dtype == DType::F32   ? kDnnF32
                 : given.dtype == DType::F16 ? kDnnF16
                                             : kDnnBF16;
  auto tensor = [&](const DnnConvolution::Tensor &its, int64_t number) {
    return build.tensor({dataType, its.sizes, its.strides, number});
  };
  auto x = tensor(given.x, xNumber), w = tensor(given.w, wNumber),
       y = tensor(given.y, yNumber);
  auto windows = build.create(kDnnConvolution);
  build.set(windows, kDnnComputeType, kDnnOfDataType, int(kDnnF32));
  build.set(windows, kDnnConvolutionMode, kDnnOfMode,
            given.isFlipped ? int(kDnnFlippedWindows) : int(kDnnWindows));
  build.set(windows, kDnnSpatialDims, kDnnOfInteger,
            static_cast<int64_t>(given.strides.size()));
  build.set(windows, kDnnDilations, given.dilations);
  build.set(windows, kDnnStrides, given.strides);
  build.set(windows, kDnnPaddingAfter, given.padding);
  build.set(windows, kDnnPaddingBefore, given.padding);
  build.finalize(windows);
  // Attributes come in a row: alpha, beta, windows, w, x and y.
  int kind = kDnnForward, first = kDnnForwardFirst;
  std::array<std::shared_ptr<void>, 3> tensors = {w, x, y};
  if (given.kind == Form::ImageGradient) {
    kind = kDnnDataGradient, first = kDnnDataGradientFirst;
  } else if (given.kind == Form::FilterGradient) {
    kind = kDnnFilterGradient, first = kDnnFilterGradientFirst;
  }
  auto operation = build.create(kind);
  build.set(operation, first, kDnnOfFloat, 1.0f);
  build.set(operation, first + 1, kDnnOfFloat, 0.0f);
  build.set(operation, first + 2, kDnnOfDescriptor, windows.get());
  for (int i = 0; i < 3; ++i)
    build.set(operation, first + 3 + i, kDnnOfDescriptor, tensors[i].get());
  build.add(operation);
  return build;
}

std::string describe(const DnnConvolution &convolution) {
  std::string text = convolution.kind == Form::Forward ? "forward"
                     : convolution.kind == Form::ImageGradient
                         ? "gradient of the image"
                         : "gradient of the filter";
  text += " in " + std::string(name(convolution.dtype));
  auto add = [&](const char *what, const std::vector<int64_t> &numbers) {
    text += what;
    for (int64_t number : numbers)
      text += " " + std::to_string(number);
  };
  auto addTensor = [&](const char *what, const DnnConvolution::Tensor &tensor) {
    add(what, tensor.sizes);
    add(" by", tensor.strides);
  };
  addTensor(", x", convolution.x);
  addTensor(", w", convolution.w);
  addTensor(", y", convolution.y);
  add(", padding", convolution.padding);
  add(", strides", convolution.strides);
  add(", dilations", convolution.dilations);
  if (convolution.isFlipped)
    text += ", flipped";
  if (convolution.tf32)
    text += ", tf32";
  return text;
}

DnnPlans findConvolutionPlans(const Dnn &dnn, const DnnConvolution &convolution,
                              const DnnWhere &where, int64_t mostWorkspace,
                              size_t most) {
  bool isExact = convolution.dtype == DType::F32 && !convolution.tf32;
  return DnnPlan::find(describe(dnn, convolution), where, mostWorkspace,
                       isExact, most);
}

std::array<int64_t, 3> tensorNumbers(const DnnConvolution &convolution) {
  switch (convolution.kind) {
  case Form::Forward:
    return {xNumber, wNumber, yNumber};
  case Form::ImageGradient:
    return {yNumber, wNumber, xNumber};
  case Form::FilterGradient:
    return {xNumber, yNumber, wNumber};
  }
  return {};
}

} // namespace whale::runtime::cuda
