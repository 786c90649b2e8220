//===- ConvolutionTest.cpp - Convolutions against loops ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Numeric.h"
#include "Products.h"
#include "RandomConvolution.h"
#include "device/cpu/Operations.h"
#include "device/cpu/ViewConvolution.h"
#include "device/cpu/ViewMoves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <random>
#include <string>

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

TEST(ConvolutionTest, RandomConvolutions) {
  std::mt19937 random(9);
  auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  auto device = createCpuDevice(2);
  device->attachThread();
  std::deque<Convolution> ops;
  int tried = 0;
  while (tried < 600) {
    Convolution op = randomConvolution(random);
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

template <typename T>
std::vector<T> store(const Tensor &tensor) {
  std::vector<T> result;
  for (float x : tensor.data)
    result.push_back(Element<T>::store(x));
  return result;
}

/// With tensors of T.
template <typename T>
void compareViews(Convolution op, const Tensor &lhs, const Tensor &rhs,
                  const Tensor &expected) {
  op.lhsType = op.rhsType = op.outType =
      sizeof(T) == sizeof(float) ? DType::F32 : DType::BF16;
  auto views = ViewConvolution::prepare(op, stridesOf(op.rhsShape));
  ASSERT_TRUE(views);
  std::vector<T> left = store<T>(lhs), right = store<T>(rhs),
                 wanted = store<T>(expected);
  Scratch scratch;
  scratch.reserve(views->getScratch());
  for (int64_t threads : {1, 3}) {
    std::vector<T> out(wanted.size(), Element<T>::store(NAN));
    views->run(scratch, threads, left.data(), right.data(), out.data());
    ASSERT_EQ(std::memcmp(out.data(), wanted.data(), out.size() * sizeof(T)),
              0);
  }
}

TEST(ConvolutionTest, ProductsOfViews) {
  std::mt19937 random(3);
  std::map<bool, int> found;
  for (int i = 0; i < 800; ++i) {
    bool isFilter = i % 2;
    Convolution op = isFilter ? randomFilterGradient(random)
                              : randomImageConvolution(random);
    // The definition takes its time.
    constexpr double mostTerms = 20000;
    double terms = double(elementCount(op.outShape)) *
                   elementCount(op.rhsShape) / op.rhsShape[op.rhsDims.second];
    if (terms == 0 || terms > mostTerms ||
        !ViewConvolution::prepare(op, stridesOf(op.rhsShape)))
      continue;
    SCOPED_TRACE(i);
    ++found[isFilter];
    auto tensor = [&](const Shape &shape) {
      Tensor result = {shape, std::vector<float>(elementCount(shape))};
      for (float &x : result.data)
        x = static_cast<float>(static_cast<int>(random() % 17) - 8) / 4;
      return result;
    };
    Tensor lhs = tensor(op.lhsShape), rhs = tensor(op.rhsShape);
    Tensor expected = tensor(op.outShape);
    oracle(op, lhs, rhs, expected);
    compareViews<float>(op, lhs, rhs, expected);
    compareViews<BFloat16>(op, lhs, rhs, expected);
    if (HasFatalFailure())
      return;
  }
  EXPECT_GT(found[false], 80);
  EXPECT_GT(found[true], 40);
}

/// The dimensions of a tensor in another order.
void shuffle(Shape &shape, Convolution::Dimensions &dims,
             std::mt19937 &random) {
  Shape old = shape;
  std::vector<int64_t> place(shape.size());
  std::iota(place.begin(), place.end(), 0);
  std::ranges::shuffle(place, random);
  for (size_t dim = 0; dim < old.size(); ++dim)
    shape[place[dim]] = old[dim];
  dims.first = place[dims.first];
  dims.second = place[dims.second];
  for (int64_t &dim : dims.spatial)
    dim = place[dim];
}

TEST(ConvolutionTest, ViewsOfCopies) {
  dnnl::engine engine = makeEngine();
  dnnl::stream stream(engine);
  std::mt19937 random(5);
  std::map<bool, int> found;
  for (int i = 0; i < 800; ++i) {
    bool isFilter = i % 2;
    Convolution op = isFilter ? randomFilterGradient(random)
                              : randomImageConvolution(random);
    shuffle(op.lhsShape, op.lhsDims, random);
    shuffle(op.rhsShape, op.rhsDims, random);
    shuffle(op.outShape, op.outDims, random);
    ViewMoves moves(op);
    constexpr double mostTerms = 20000;
    double terms = double(elementCount(op.outShape)) *
                   elementCount(op.rhsShape) / op.rhsShape[op.rhsDims.second];
    if (terms == 0 || terms > mostTerms ||
        !(moves.lhs || moves.rhs || moves.out))
      continue;
    auto views = ViewConvolution::prepare(moves.op, moves.rhsStrides);
    if (!views)
      continue;
    SCOPED_TRACE(i);
    ++found[isFilter];
    auto tensor = [&](const Shape &shape) {
      Tensor result = {shape, std::vector<float>(elementCount(shape))};
      for (float &x : result.data)
        x = static_cast<float>(static_cast<int>(random() % 17) - 8) / 4;
      return result;
    };
    Tensor lhs = tensor(op.lhsShape), rhs = tensor(op.rhsShape);
    Tensor out = tensor(op.outShape), expected = out;
    oracle(op, lhs, rhs, expected);
    auto reorder = [&](const dnnl::memory::desc &fromDesc, float *from,
                       const dnnl::memory::desc &toDesc, float *to) {
      dnnl::memory source(fromDesc, engine, from), target(toDesc, engine, to);
      dnnl::reorder(source, target).execute(stream, source, target);
      stream.wait();
    };
    // What is between rows is read, and changes nothing.
    auto copyOf = [&](const std::optional<ViewMoves::Move> &move) {
      return std::vector<float>(
          move ? move->wanted.get_size() / sizeof(float) : 0, NAN);
    };
    std::vector<float> left = copyOf(moves.lhs), right = copyOf(moves.rhs),
                       result = copyOf(moves.out);
    if (moves.lhs)
      reorder(moves.lhs->given, lhs.data.data(), moves.lhs->wanted,
              left.data());
    if (moves.rhs)
      reorder(moves.rhs->given, rhs.data.data(), moves.rhs->wanted,
              right.data());
    right.resize(right.size() + 64, NAN);
    Scratch scratch;
    scratch.reserve(views->getScratch());
    views->run(scratch, 2, moves.lhs ? left.data() : lhs.data.data(),
               moves.rhs ? right.data() : rhs.data.data(),
               moves.out ? result.data() : out.data.data());
    if (moves.out)
      reorder(moves.out->wanted, result.data(), moves.out->given,
              out.data.data());
    ASSERT_EQ(out.data, expected.data);
  }
  EXPECT_GT(found[false], 80);
  EXPECT_GT(found[true], 80);
}

} // namespace
