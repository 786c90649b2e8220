//===- ReadConvolution.cpp - Decode a convolution ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the JSON fields of a convolution, and the buffers that it names. Out: a
// Convolution whose fields agree with each other and with the buffers, or an
// error with the path of the field at fault. The shape of the result is
// computed from the operands and compared with that of its buffer; extents,
// windows and the number of products are bounded. Cost: linear in the
// dimensions, and sorting their numbers to find one that is missing.
//
//===----------------------------------------------------------------------===//

#include "Reader.h"
#include "whale/ProgramFormat/Limits.h"
#include "whale/ProgramFormat/Numeric.h"
#include "whale/System/Error.h"

namespace whale::format {

/// Reads the positions of one tensor's dimensions: a permutation of all.
static Convolution::Dimensions readDimensions(const Field &numbers,
                                              const std::string &first,
                                              const std::string &second,
                                              const std::string &spatial,
                                              size_t rank) {
  auto last = static_cast<int64_t>(rank) - 1;
  Convolution::Dimensions dims;
  dims.first = numbers.at(first).integer(0, last);
  dims.second = numbers.at(second).integer(0, last);
  dims.spatial = numbers.at(spatial).integers(0, last);
  std::set<int64_t> all(dims.spatial.begin(), dims.spatial.end());
  all.insert(dims.first);
  all.insert(dims.second);
  if (all.size() != rank || dims.spatial.size() + 2 != rank)
    numbers.at(spatial).fail("with " + first + " and " + second +
                             " must name each of the " + std::to_string(rank) +
                             " dimensions once");
  return dims;
}

static void readWindows(const Field &field, Convolution &convolution) {
  constexpr int64_t most = mostWindow;
  size_t rank = convolution.windows.size();
  auto readList = [&](const char *key, auto assign) {
    auto list = field.find(key);
    if (!list)
      return;
    if (list->size() != rank)
      list->fail("must have " + std::to_string(rank) + " elements");
    for (size_t i = 0; i < rank; ++i)
      assign((*list)[i], convolution.windows[i]);
  };
  using Window = Convolution::Window;
  readList("window_strides", [](const Field &f, Window &window) {
    window.stride = f.integer(1, most);
  });
  readList("lhs_dilation", [](const Field &f, Window &window) {
    window.lhsDilation = f.integer(1, most);
  });
  readList("rhs_dilation", [](const Field &f, Window &window) {
    window.rhsDilation = f.integer(1, most);
  });
  readList("window_reversal", [](const Field &f, Window &window) {
    window.reversed = f.boolean();
  });
  readList("padding", [](const Field &f, Window &window) {
    auto pair = f.integers(-most, most);
    if (pair.size() != 2)
      f.fail("must be [low, high]");
    window.low = pair[0];
    window.high = pair[1];
  });
}

/// Returns an extent after dilation; the operands are bounded, so that it
/// doesn't overflow.
static int64_t dilated(const Field &field, int64_t extent, int64_t dilation) {
  int64_t result;
  if (extent == 0)
    return 0;
  if (__builtin_mul_overflow(extent - 1, dilation, &result) ||
      result >= mostDilated)
    field.fail("the dilated extent is too large");
  return result + 1;
}

Convolution decodeConvolution(const Field &field, const BufferInfo &lhs,
                              const BufferInfo &rhs, const BufferInfo &out) {
  Convolution conv;
  conv.lhsType = lhs.dtype;
  conv.rhsType = rhs.dtype;
  conv.outType = out.dtype;
  conv.lhsShape = lhs.shape;
  conv.rhsShape = rhs.shape;
  conv.outShape = out.shape;
  checkProduct(field, lhs, rhs, out);

  size_t rank = lhs.shape.size();
  if (rank < 2 || rhs.shape.size() != rank || out.shape.size() != rank)
    field.fail("lhs, rhs and out must have the same dimensions, two or more");
  Field numbers = field.at("dimension_numbers");
  conv.lhsDims = readDimensions(numbers, "input_batch_dimension",
                                "input_feature_dimension",
                                "input_spatial_dimensions", rank);
  conv.rhsDims = readDimensions(numbers, "kernel_input_feature_dimension",
                                "kernel_output_feature_dimension",
                                "kernel_spatial_dimensions", rank);
  conv.outDims = readDimensions(numbers, "output_batch_dimension",
                                "output_feature_dimension",
                                "output_spatial_dimensions", rank);
  if (auto groups = field.find("feature_group_count"))
    conv.featureGroups = groups->integer(1);
  if (auto groups = field.find("batch_group_count"))
    conv.batchGroups = groups->integer(1);
  conv.windows.resize(rank - 2);
  readWindows(field, conv);

  int64_t batch = lhs.shape[conv.lhsDims.first];
  int64_t feature = lhs.shape[conv.lhsDims.second];
  int64_t kernelIn = rhs.shape[conv.rhsDims.first];
  int64_t kernelOut = rhs.shape[conv.rhsDims.second];
  if (conv.featureGroups > 1 && conv.batchGroups > 1)
    field.fail("cannot have both feature and batch groups");
  if (feature % conv.featureGroups || feature / conv.featureGroups != kernelIn)
    field.fail("the kernel's input features must be those of lhs by group");
  if (kernelOut % conv.featureGroups || kernelOut % conv.batchGroups)
    field.fail("the kernel's output features must divide into the groups");
  if (batch % conv.batchGroups)
    field.fail("the batch must divide into the groups");
  Shape expected(rank);
  expected[conv.outDims.first] = batch / conv.batchGroups;
  expected[conv.outDims.second] = kernelOut;
  double work =
      static_cast<double>(elementCount(rhs.shape)) * static_cast<double>(batch);
  for (size_t i = 0; i < conv.windows.size(); ++i) {
    const Convolution::Window &window = conv.windows[i];
    int64_t input =
        dilated(field, lhs.shape[conv.lhsDims.spatial[i]], window.lhsDilation) +
        window.low + window.high;
    int64_t reach =
        dilated(field, rhs.shape[conv.rhsDims.spatial[i]], window.rhsDilation);
    expected[conv.outDims.spatial[i]] =
        input < 0 || reach > input ? 0 : (input - reach) / window.stride + 1;
    work *= static_cast<double>(expected[conv.outDims.spatial[i]]);
  }
  if (expected != out.shape)
    field.fail("the shape of out is " + toString(out.shape) + ", it must be " +
               toString(expected));
  if (work > 1e18)
    field.fail("the convolution is too large");
  return conv;
}

} // namespace whale::format
