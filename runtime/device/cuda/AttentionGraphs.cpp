//===- AttentionGraphs.cpp - Attention by cuDNN ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: sizes and strides. Out: a plan for the graph of small operations in which
// cuDNN's engines recognize attention or its gradient, from version 9.10 on.
// The matrices of scores that the graphs speak of are not stored.
//
// Forward: S = scale Q Kt, masked; statistics = log sum exp S; O = softmax(S)
// V. Gradient, with P = exp(S - statistics) and D = row sums of dO O: dV = Pt
// dO; dS = scale P (dO Vt - D); dK = dSt Q; dQ = dS K. dQ is a product of the
// graph and not a sum in memory, to which blocks would add in any order: cuDNN
// keeps dS in its workspace then, two bytes for each pair of a row and a key.
// Cost: a plan (DnnPlans.cpp); it forms two products of rows, keys and
// features, in the gradient five.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/AttentionGraphs.h"

namespace whale::runtime::cuda {

namespace {

using Sizes = std::array<int64_t, 4>;

/// Adds operations over tensors of four dimensions.
class GraphMaker {
public:
  /// A tensor of a graph, and its sizes.
  struct Value {
    DnnObject tensor;
    Sizes sizes;
  };

  GraphMaker(const Dnn &dnn, const format::FusedAttention &attention)
      : graph(dnn), attention(attention) {
    one = number(kAttentionOne);
    scale = number(kAttentionScale);
    if (attention.isCausal)
      masked = number(kAttentionMasked);
  }

  /// Of rows or keys and features.
  Value matrix(int64_t number, int64_t heads, int64_t lines,
               const format::FusedAttention::Strides &strides) {
    return make({kDnnBF16,
                 {attention.samples, heads, lines, attention.features},
                 {strides[0], strides[1], strides[2], 1},
                 number});
  }
  /// The same tensor, with features before keys.
  Value transposed(int64_t number,
                   const format::FusedAttention::Strides &strides) {
    return make({kDnnBF16,
                 {attention.samples, attention.keyHeads, attention.features,
                  attention.keys},
                 {strides[0], strides[1], 1, strides[2]},
                 number});
  }
  /// A number for each row.
  Value rows(int64_t number) { return dense(rowSizes(), kDnnF32, number); }

  Value multiply(const Value &a, const Value &b, int dataType = kDnnF32) {
    Value result =
        dense({a.sizes[0], a.sizes[1], a.sizes[2], b.sizes[3]}, dataType);
    multiply(a, b, result);
    return result;
  }
  void multiply(const Value &a, const Value &b, const Value &result) {
    DnnObject how = graph.create(kDnnMatmul);
    graph.set(how, kDnnMatmulPrecision, kDnnOfDataType, int(kDnnF32));
    graph.finalize(how);
    add(kDnnMatmulOperation, {{kDnnMatmulDescriptor, how},
                              {kDnnMatmulA, a.tensor},
                              {kDnnMatmulB, b.tensor},
                              {kDnnMatmulC, result.tensor}});
  }
  Value pointwise(int mode, const Value &x, const Value *b = nullptr,
                  const Value *condition = nullptr, int dataType = kDnnF32) {
    Value result = dense(x.sizes, dataType);
    pointwise(mode, x, b, result, condition,
              mode == kDnnNotLess ? kDnnBoolean : kDnnF32);
    return result;
  }
  void pointwise(int mode, const Value &x, const Value *b, const Value &result,
                 const Value *condition = nullptr, int precision = kDnnF32,
                 int64_t axis = -1) {
    DnnObject how = graph.create(kDnnPointwise);
    graph.set(how, kDnnPointwiseMode, kDnnOfPointwise, mode);
    graph.set(how, kDnnPointwisePrecision, kDnnOfDataType, precision);
    if (axis >= 0)
      graph.set(how, kDnnPointwiseAxis, kDnnOfInteger, axis);
    graph.finalize(how);
    std::vector<std::pair<int, DnnObject>> operands = {
        {kDnnPointwiseDescriptor, how},
        {kDnnPointwiseX, x.tensor},
        {kDnnPointwiseY, result.tensor}};
    if (b)
      operands.emplace_back(kDnnPointwiseB, b->tensor);
    if (condition)
      operands.emplace_back(kDnnPointwiseT, condition->tensor);
    add(kDnnPointwiseOperation, operands);
  }
  /// Over the last dimension.
  Value reduce(int mode, const Value &x) {
    Value result = dense(rowSizes(), kDnnF32);
    reduce(mode, x, result);
    return result;
  }
  void reduce(int mode, const Value &x, const Value &result) {
    DnnObject how = graph.create(kDnnReduction);
    graph.set(how, kDnnReductionMode, kDnnOfReduction, mode);
    graph.set(how, kDnnReductionPrecision, kDnnOfDataType, int(kDnnF32));
    graph.finalize(how);
    add(kDnnReductionOperation, {{kDnnReductionDescriptor, how},
                                 {kDnnReductionX, x.tensor},
                                 {kDnnReductionY, result.tensor}});
  }
  /// A product over the rows, summed over the heads that share those of the
  /// result.
  void multiplyRows(const Value &a, const Value &b, const Value &result) {
    if (attention.heads == attention.keyHeads)
      return multiply(a, b, result);
    reduce(kDnnSum, multiply(a, b, kDnnBF16), result);
  }
  /// Another order of dimensions of the elements of `x`.
  Value reshape(const Value &x, const Value &result) {
    add(kDnnReshapeOperation,
        {{kDnnReshapeX, x.tensor}, {kDnnReshapeY, result.tensor}});
    return result;
  }
  /// Scores or their like as the factor of a product over the rows.
  Value byKeys(const Value &scores) {
    const auto &[samples, heads, rows, keys] = scores.sizes;
    return reshape(scores, make({kDnnBF16,
                                 {samples, heads, keys, rows},
                                 {heads * rows * keys, rows * keys, 1, keys},
                                 0,
                                 true}));
  }
  /// Keys from their transpose.
  Value byFeatures(const Value &keys,
                   const format::FusedAttention::Strides &strides) {
    return reshape(keys, make({kDnnBF16,
                               {attention.samples, attention.keyHeads,
                                attention.keys, attention.features},
                               {strides[0], strides[1], strides[2], 1},
                               0,
                               true}));
  }

  /// Minus infinity where the key is behind the row.
  Value mask(const Value &scores) {
    if (!attention.isCausal)
      return scores;
    Value row = dense(scores.sizes, kDnnI32),
          key = dense(scores.sizes, kDnnI32);
    pointwise(kDnnIndex, scores, nullptr, row, nullptr, kDnnF32, 2);
    pointwise(kDnnIndex, scores, nullptr, key, nullptr, kDnnF32, 3);
    Value isKept = pointwise(kDnnNotLess, row, &key, nullptr, kDnnBoolean);
    return pointwise(kDnnSelect, scores, &masked, &isKept);
  }

  DnnGraph graph;
  const format::FusedAttention &attention;
  Value one, scale, masked;

private:
  Value make(DnnGraph::Tensor tensor) {
    if (tensor.number == 0)
      tensor.number = next++;
    return {
        graph.tensor(tensor),
        {tensor.sizes[0], tensor.sizes[1], tensor.sizes[2], tensor.sizes[3]}};
  }
  Value number(int64_t number) {
    return make({kDnnF32, {1, 1, 1, 1}, {1, 1, 1, 1}, number, false, true});
  }
  /// Virtual without a number.
  Value dense(const Sizes &sizes, int dataType, int64_t number = 0) {
    return make(
        {dataType,
         {sizes.begin(), sizes.end()},
         {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1},
         number,
         number == 0});
  }
  Sizes rowSizes() const {
    return {attention.samples, attention.heads, attention.rows, 1};
  }
  void add(int type, const std::vector<std::pair<int, DnnObject>> &operands) {
    DnnObject operation = graph.create(type);
    for (const auto &[attribute, operand] : operands)
      graph.set(operation, attribute, kDnnOfDescriptor, operand.get());
    graph.add(operation);
  }

  int64_t next = kAttentionTensors;
};

} // namespace

static DnnGraph makeForward(const Dnn &dnn,
                            const format::FusedAttention &attention) {
  GraphMaker make(dnn, attention);
  auto query = make.matrix(kAttentionQuery, attention.heads, attention.rows,
                           attention.inputs[0]);
  auto key = make.transposed(kAttentionKey, attention.inputs[1]);
  auto value = make.matrix(kAttentionValue, attention.keyHeads, attention.keys,
                           attention.inputs[2]);
  auto result = make.matrix(kAttentionOutput, attention.heads, attention.rows,
                            attention.results[0]);
  auto statistics = make.rows(kAttentionStatistics);
  auto scores = make.mask(
      make.pointwise(kDnnMultiply, make.multiply(query, key), &make.scale));
  auto largest = make.reduce(kDnnMaximum, scores);
  auto exponentials = make.pointwise(
      kDnnExponential, make.pointwise(kDnnSubtract, scores, &largest));
  auto sum = make.reduce(kDnnSum, exponentials);
  auto logarithm = make.pointwise(kDnnLogarithm, sum);
  make.pointwise(kDnnAdd, largest, &logarithm, statistics);
  make.multiply(
      make.pointwise(kDnnDivide, exponentials, &sum, nullptr, kDnnBF16), value,
      result);
  return std::move(make.graph);
}

static DnnGraph makeGradient(const Dnn &dnn,
                             const format::FusedAttention &attention) {
  GraphMaker make(dnn, attention);
  int64_t heads = attention.heads, rows = attention.rows;
  auto query = make.matrix(kAttentionQuery, heads, rows, attention.inputs[0]);
  auto key = make.transposed(kAttentionKey, attention.inputs[1]);
  auto value = make.transposed(kAttentionValue, attention.inputs[2]);
  auto cotangent =
      make.matrix(kAttentionCotangent, heads, rows, attention.inputs[3]);
  auto result = make.matrix(kAttentionOutput, heads, rows, attention.inputs[4]);
  auto statistics = make.rows(kAttentionStatistics);
  auto sums = make.rows(kAttentionSums);
  auto ofQuery =
      make.matrix(kAttentionQueryCotangent, heads, rows, attention.results[0]);
  auto ofKey = make.matrix(kAttentionKeyCotangent, attention.keyHeads,
                           attention.keys, attention.results[1]);
  auto ofValue = make.matrix(kAttentionValueCotangent, attention.keyHeads,
                             attention.keys, attention.results[2]);
  // Engines look for the product with 1, too.
  make.pointwise(
      kDnnMultiply,
      make.reduce(kDnnSum, make.pointwise(kDnnMultiply, cotangent, &result)),
      &make.one, sums);
  auto scores =
      make.pointwise(kDnnMultiply, make.multiply(query, key), &make.scale);
  auto probabilities = make.pointwise(
      kDnnExponential,
      make.mask(make.pointwise(kDnnSubtract, scores, &statistics)));
  make.multiplyRows(make.byKeys(probabilities), cotangent, ofValue);
  auto difference =
      make.pointwise(kDnnSubtract, make.multiply(cotangent, value), &sums);
  auto ofScores = make.pointwise(
      kDnnMultiply, make.pointwise(kDnnMultiply, difference, &probabilities),
      &make.scale);
  make.multiplyRows(make.byKeys(ofScores), query, ofKey);
  make.multiply(ofScores, make.byFeatures(key, attention.inputs[1]), ofQuery);
  return std::move(make.graph);
}

std::shared_ptr<const DnnPlan>
findAttentionPlan(const Dnn &dnn, const format::FusedAttention &attention,
                  const DnnWhere &where, int64_t mostWorkspace) {
  DnnPlans plans =
      DnnPlan::find(attention.isGradient ? makeGradient(dnn, attention)
                                         : makeForward(dnn, attention),
                    where, mostWorkspace, /*isExact=*/false, /*most=*/1);
  return plans.empty() ? nullptr : plans.front();
}

} // namespace whale::runtime::cuda
