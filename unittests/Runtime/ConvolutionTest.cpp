//===- ConvolutionTest.cpp - Convolutions against loops ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Products.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

using namespace whale::runtime;
using namespace whale::runtime::test;

namespace {

struct Tensor {
  Shape shape;
  std::vector<float> data;
  float &at(const Shape &index) {
    int64_t flat = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      flat = flat * shape[d] + index[d];
    return data[flat];
  }
};

/// Calls `body(index)` for every index of a shape.
template <typename Body>
void forEach(const Shape &shape, Body body) {
  for (int64_t i = 0; i < elementCount(shape); ++i) {
    Shape index(shape.size());
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
      index[d] = rest % shape[d];
    body(index);
  }
}

/// The definition: for each output, a sum over the window.
void oracle(const Convolution &op, Tensor &lhs, Tensor &rhs, Tensor &out) {
  int64_t features = op.rhsShape[op.rhsDims.first];
  int64_t outputs = op.rhsShape[op.rhsDims.second];
  int64_t batch = op.outShape[op.outDims.first];
  Shape window;
  for (int64_t dim : op.rhsDims.spatial)
    window.push_back(op.rhsShape[dim]);
  forEach(op.outShape, [&](const Shape &o) {
    int64_t feature = o[op.outDims.second];
    int64_t featureGroup = feature / (outputs / op.featureGroups);
    int64_t batchGroup = feature / (outputs / op.batchGroups);
    double sum = 0;
    forEach(window, [&](const Shape &w) {
      Shape l(op.lhsShape.size()), r(op.rhsShape.size());
      for (size_t d = 0; d < window.size(); ++d) {
        const auto &dim = op.windows[d];
        int64_t step = dim.reversed ? window[d] - 1 - w[d] : w[d];
        int64_t at = o[op.outDims.spatial[d]] * dim.stride +
                     step * dim.rhsDilation - dim.low;
        if (at < 0 || at % dim.lhsDilation ||
            at / dim.lhsDilation >= op.lhsShape[op.lhsDims.spatial[d]])
          return;
        l[op.lhsDims.spatial[d]] = at / dim.lhsDilation;
        r[op.rhsDims.spatial[d]] = w[d];
      }
      l[op.lhsDims.first] =
          o[op.outDims.first] + (op.batchGroups > 1 ? batchGroup * batch : 0);
      r[op.rhsDims.second] = feature;
      for (int64_t i = 0; i < features; ++i) {
        l[op.lhsDims.second] =
            i + (op.featureGroups > 1 ? featureGroup * features : 0);
        r[op.rhsDims.first] = i;
        sum += double(lhs.at(l)) * rhs.at(r);
      }
    });
    out.at(o) = static_cast<float>(sum);
  });
}

Convolution::Dimensions randomDims(std::mt19937 &random, size_t rank) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < rank; ++i)
    order.push_back(static_cast<int64_t>(i));
  std::shuffle(order.begin(), order.end(), random);
  return {order[0], order[1], {order.begin() + 2, order.end()}};
}

TEST(ConvolutionTest, RandomConvolutions) {
  std::mt19937 random(9);
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  auto device = createCpuDevice(2);
  device->attachThread();
  std::deque<Convolution> ops;
  int tried = 0;
  while (tried < 600) {
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
      int64_t input = (extent ? (extent - 1) * window.lhsDilation + 1 : 0) +
                      window.low + window.high;
      int64_t reach = (kernel - 1) * window.rhsDilation + 1;
      op.lhsShape[op.lhsDims.spatial[d]] = extent;
      op.rhsShape[op.rhsDims.spatial[d]] = kernel;
      op.outShape[op.outDims.spatial[d]] =
          input < reach ? 0 : (input - reach) / window.stride + 1;
    }
    if (elementCount(op.outShape) == 0 && pick(10))
      continue;
    ++tried;
    auto tensor = [&](const Shape &shape) {
      Tensor result = {shape, std::vector<float>(elementCount(shape))};
      for (float &x : result.data)
        x = static_cast<float>(pick(17) - 8) / 4;
      return result;
    };
    Tensor lhs = tensor(op.lhsShape), rhs = tensor(op.rhsShape);
    Tensor out = tensor(op.outShape), expected = out;
    oracle(op, lhs, rhs, expected);
    ops.push_back(op);
    multiply(*device, ops.back(), lhs.data.data(), rhs.data.data(),
             out.data.data());
    ASSERT_EQ(out.data, expected.data) << tried;
  }
}

} // namespace
