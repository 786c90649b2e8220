//===- ViewMoves.cpp - Tensors in the order of views ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cpu/ViewMoves.h"

#include "device/cpu/Operations.h"
#include "device/cpu/ViewKernels.h"

namespace whale::runtime {

namespace {
/// A tensor of the convolution, and which of its dimensions are the channels.
struct Tensor {
  Shape &shape;
  Convolution::Dimensions &dims;
  DType &type;
  int64_t channels;
};
} // namespace

/// The elements of a row of channels: with `wholeVectors`, and those between
/// it and the next.
static int64_t rowOf(int64_t channels, bool wholeVectors) {
  using views::kLanes;
  return wholeVectors ? (channels + kLanes - 1) / kLanes * kLanes : channels;
}

/// Makes it the copy that is wanted instead, unless it is as wanted.
static std::optional<ViewMoves::Move> moveLast(Tensor tensor, bool wholeVectors,
                                               std::vector<int64_t> &strides) {
  Shape shape = tensor.shape;
  strides = stridesOf(shape);
  int64_t channels = shape[tensor.channels];
  int64_t row = rowOf(channels, wholeVectors);
  bool isKnown = tensor.type == DType::F32 || tensor.type == DType::BF16;
  if (!isKnown || (strides[tensor.channels] == 1 && row == channels) ||
      elementCount(shape) == 0 || !fitsOneDnn({shape, strides, {row}}))
    return std::nullopt;
  using Type = dnnl::memory::data_type;
  Type type = tensor.type == DType::F32 ? Type::f32 : Type::bf16;
  ViewMoves::Move move;
  move.given = {shape, type, strides};

  std::vector<int64_t> order, places(shape.size());
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (static_cast<int64_t>(dim) != tensor.channels)
      order.push_back(static_cast<int64_t>(dim));
  order.push_back(tensor.channels);
  std::vector<int64_t> moved(shape.size());
  int64_t stride = 1;
  for (size_t place = order.size(); place-- > 0;) {
    int64_t dim = order[place];
    places[dim] = static_cast<int64_t>(place);
    tensor.shape[place] = shape[dim];
    strides[place] = moved[dim] = stride;
    stride *= place + 1 == order.size() ? row : shape[dim];
  }
  move.wanted = {shape, Type::f32, moved};
  tensor.type = DType::F32;
  for (int64_t *dim : {&tensor.dims.first, &tensor.dims.second})
    *dim = places[*dim];
  for (int64_t &dim : tensor.dims.spatial)
    dim = places[dim];
  return move;
}

ViewMoves::ViewMoves(const Convolution &given)
    : op(given), rhsStrides(stridesOf(given.rhsShape)) {
  std::vector<int64_t> others;
  // In the gradient of a filter the batch is what is contracted.
  if (format::formOf(op) == format::ConvolutionForm::FilterGradient) {
    lhs = moveLast({op.lhsShape, op.lhsDims, op.lhsType, op.lhsDims.first},
                   /*wholeVectors=*/false, others);
    rhs = moveLast({op.rhsShape, op.rhsDims, op.rhsType, op.rhsDims.second},
                   /*wholeVectors=*/op.batchGroups == 1, rhsStrides);
    return;
  }
  lhs = moveLast({op.lhsShape, op.lhsDims, op.lhsType, op.lhsDims.second},
                 /*wholeVectors=*/false, others);
  out = moveLast({op.outShape, op.outDims, op.outType, op.outDims.second},
                 /*wholeVectors=*/false, others);
}

} // namespace whale::runtime
