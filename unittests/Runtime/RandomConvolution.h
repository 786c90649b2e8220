//===- RandomConvolution.h - Convolutions of all kinds ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_UNITTESTS_RUNTIME_RANDOMCONVOLUTION_H
#define WHALE_UNITTESTS_RUNTIME_RANDOMCONVOLUTION_H

#include "program/Format.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace whale::runtime::test {

inline Convolution::Dimensions randomDims(std::mt19937 &random, size_t rank) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < rank; ++i)
    order.push_back(static_cast<int64_t>(i));
  std::shuffle(order.begin(), order.end(), random);
  return {order[0], order[1], {order.begin() + 2, order.end()}};
}

/// Of f32, up to three spatial dimensions in any order, some of no elements.
inline Convolution randomConvolution(std::mt19937 &random) {
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  size_t spatial = pick(4), rank = spatial + 2;
  Convolution op;
  op.lhsType = op.rhsType = op.outType = DType::F32;
  op.lhsDims = randomDims(random, rank);
  op.rhsDims = randomDims(random, rank);
  op.outDims = randomDims(random, rank);
  int64_t kind = pick(4);
  op.featureGroups = kind == 1 ? 1 + pick(3) : 1;
  op.batchGroups = kind == 2 ? 1 + pick(3) : 1;
  int64_t batch = op.batchGroups * (1 + pick(3));
  int64_t features = 1 + pick(4);
  int64_t outputs = op.featureGroups * op.batchGroups * (1 + pick(4));
  op.lhsShape = op.rhsShape = op.outShape = Shape(rank);
  op.lhsShape[op.lhsDims.first] = batch;
  op.lhsShape[op.lhsDims.second] = features * op.featureGroups;
  op.rhsShape[op.rhsDims.first] = features;
  op.rhsShape[op.rhsDims.second] = outputs;
  op.outShape[op.outDims.first] = batch / op.batchGroups;
  op.outShape[op.outDims.second] = outputs;
  bool plain = pick(3) == 0;
  // That of an image, as libraries have it.
  bool gradient = !plain && pick(2);
  for (size_t d = 0; d < spatial; ++d) {
    auto &window = op.windows.emplace_back();
    // Some windows are about as large as the image, as in the gradient of
    // a kernel.
    int64_t extent = pick(8), kernel = 1 + pick(pick(3) ? 3 : 8);
    window.stride = 1 + pick(3);
    window.rhsDilation = 1 + pick(2);
    window.low = pick(3);
    window.high = pick(3);
    if (!plain) {
      window.lhsDilation = 1 + pick(2);
      window.reversed = pick(2);
      window.low -= pick(3);
      window.high -= pick(3);
    }
    if (gradient) {
      window.stride = 1;
      window.reversed = true;
    }
    int64_t input = (extent ? (extent - 1) * window.lhsDilation + 1 : 0) +
                    window.low + window.high;
    int64_t reach = (kernel - 1) * window.rhsDilation + 1;
    op.lhsShape[op.lhsDims.spatial[d]] = extent;
    op.rhsShape[op.rhsDims.spatial[d]] = kernel;
    op.outShape[op.outDims.spatial[d]] =
        input < reach ? 0 : (input - reach) / window.stride + 1;
  }
  return op;
}

/// Dimensions of a filter in any order, often as JAX's models have them: taps,
/// rows, columns.
inline Convolution::Dimensions randomFilterDims(std::mt19937 &random,
                                                size_t rank) {
  Convolution::Dimensions dims = randomDims(random, rank);
  if (random() % 2)
    return dims;
  auto last = static_cast<int64_t>(rank) - 1;
  dims.first = last - 1;
  dims.second = last;
  std::iota(dims.spatial.begin(), dims.spatial.end(), 0);
  return dims;
}

/// Of images with channels last: dense, of groups, of single channels, with few
/// outputs; strided, dilated, spread, padded, and cut in patches.
inline Convolution randomImageConvolution(std::mt19937 &random) {
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  size_t spatial = 1 + pick(3), rank = spatial + 2;
  auto last = static_cast<int64_t>(rank) - 1;
  Convolution op;
  op.lhsType = op.rhsType = op.outType = DType::F32;
  op.lhsDims = op.outDims = {0, last, {}};
  op.rhsDims = randomFilterDims(random, rank);
  int64_t features = 1 + pick(pick(2) ? 40 : 6);
  int64_t outputs = 1 + pick(pick(2) ? 90 : 6);
  if (int64_t kind = pick(4); kind == 0) {
    op.featureGroups = 16 + pick(50);
    features = outputs = 1;
  } else if (kind == 1) {
    op.featureGroups = 2 + pick(2);
  }
  op.lhsShape = op.rhsShape = op.outShape = Shape(rank);
  op.lhsShape[0] = op.outShape[0] = 1 + pick(3);
  op.lhsShape[last] = features * op.featureGroups;
  op.rhsShape[op.rhsDims.first] = features;
  op.outShape[last] = outputs * op.featureGroups;
  op.rhsShape[op.rhsDims.second] = op.outShape[last];
  bool isSpread = pick(3) == 0;
  for (size_t d = 0; d < spatial; ++d) {
    auto dim = static_cast<int64_t>(d) + 1;
    op.lhsDims.spatial.push_back(dim);
    op.outDims.spatial.push_back(dim);
    auto &window = op.windows.emplace_back();
    int64_t extent = 1 + pick(spatial == 1 ? 60 : 9), kernel = 1 + pick(4);
    window.stride = isSpread && pick(3) ? 1 : 1 + pick(3);
    window.lhsDilation = isSpread ? 1 + pick(3) : 1;
    window.rhsDilation = 1 + pick(3);
    window.reversed = pick(2);
    window.low = pick(6) - 2;
    window.high = pick(6) - 2;
    if (pick(4) == 0) {
      window = {};
      window.stride = kernel;
      extent = kernel * (1 + extent / kernel);
    }
    int64_t input =
        (extent - 1) * window.lhsDilation + 1 + window.low + window.high;
    int64_t reach = (kernel - 1) * window.rhsDilation + 1;
    op.lhsShape[dim] = extent;
    op.rhsShape[op.rhsDims.spatial[d]] = kernel;
    op.outShape[dim] = input < reach ? 0 : (input - reach) / window.stride + 1;
  }
  return op;
}

/// With images and gradients that have channels last.
inline Convolution randomFilterGradient(std::mt19937 &random) {
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  size_t spatial = 1 + pick(3), rank = spatial + 2;
  auto last = static_cast<int64_t>(rank) - 1;
  Convolution op;
  op.lhsType = op.rhsType = op.outType = DType::F32;
  op.lhsDims = {last, 0, {}};
  op.rhsDims = {0, last, {}};
  op.outDims = randomFilterDims(random, rank);
  int64_t channels = 1 + pick(pick(2) ? 40 : 6);
  int64_t outputs = 16 * (1 + pick(5));
  if (int64_t kind = pick(4); kind == 0) {
    op.batchGroups = 16 + pick(50);
    channels = outputs = 1;
  } else if (kind == 1) {
    op.batchGroups = 2 + pick(2);
  }
  op.lhsShape = op.rhsShape = op.outShape = Shape(rank);
  op.lhsShape[0] = op.rhsShape[0] = 1 + pick(3);
  op.lhsShape[last] = channels * op.batchGroups;
  op.outShape[op.outDims.first] = channels;
  op.rhsShape[last] = outputs * op.batchGroups;
  op.outShape[op.outDims.second] = op.rhsShape[last];
  for (size_t d = 0; d < spatial; ++d) {
    auto dim = static_cast<int64_t>(d) + 1;
    op.lhsDims.spatial.push_back(dim);
    op.rhsDims.spatial.push_back(dim);
    auto &window = op.windows.emplace_back();
    // What of the image is left out, and padded.
    int64_t gradient = 2 + pick(spatial == 1 ? 60 : 8), taps = 1 + pick(4);
    window.stride = 1 + pick(3);
    window.rhsDilation = 1 + pick(3);
    window.low = pick(5) - 1;
    int64_t reach =
        (gradient - 1) * window.rhsDilation + (taps - 1) * window.stride + 1;
    int64_t extent = std::max<int64_t>(reach - window.low - pick(4), 1);
    if (pick(4) == 0) {
      window = {};
      window.rhsDilation = taps;
      reach = extent = gradient * taps;
    }
    window.high = reach - window.low - extent;
    op.lhsShape[dim] = extent;
    op.rhsShape[dim] = gradient;
    op.outShape[op.outDims.spatial[d]] = taps;
  }
  return op;
}

} // namespace whale::runtime::test

#endif // WHALE_UNITTESTS_RUNTIME_RANDOMCONVOLUTION_H
