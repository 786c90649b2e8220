//===- SortTest.cpp - The library function sort -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "library/Library.h"
#include "whale/Runtime/Types.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace whale::runtime;
using nlohmann::json;

namespace {

template <typename T>
std::vector<T> sorted(DType dtype, std::vector<T> keys, json config,
                      std::vector<int32_t> *values = nullptr) {
  Shape shape = {static_cast<int64_t>(keys.size())};
  LibraryRequest request{{{dtype, shape}}, {{dtype, shape}}, config, {}};
  std::vector<int32_t> carried;
  std::vector<T> out(keys.size());
  std::vector<void *> inputs = {keys.data()}, outputs = {out.data()};
  if (values) {
    carried.resize(values->size());
    request.inputs.push_back({DType::I32, shape});
    request.outputs.push_back({DType::I32, shape});
    inputs.push_back(values->data());
    outputs.push_back(carried.data());
  }
  prepareSort(request)(inputs, outputs);
  if (values)
    *values = carried;
  return out;
}

json key(const char *order, bool descending = false) {
  return {{"dimension", 0},
          {"keys", json::array({{{"operand", 0},
                                 {"descending", descending},
                                 {"order", order}}})}};
}

TEST(SortTest, CarriesValuesStably) {
  std::vector<int32_t> values = {0, 1, 2, 3, 4};
  EXPECT_EQ(
      sorted<int32_t>(DType::I32, {3, 1, 3, 2, 1}, key("default"), &values),
      (std::vector<int32_t>{1, 1, 2, 3, 3}));
  EXPECT_EQ(values, (std::vector<int32_t>{1, 4, 3, 0, 2}));
  values = {0, 1, 2, 3, 4};
  sorted<int32_t>(DType::I32, {3, 1, 3, 2, 1}, key("default", true), &values);
  EXPECT_EQ(values, (std::vector<int32_t>{0, 2, 3, 1, 4}));
}

TEST(SortTest, OrdersOfFloats) {
  std::vector<float> input = {NAN, 0.0f, -1, -0.0f, INFINITY, -NAN, 2};
  std::vector<int32_t> values = {0, 1, 2, 3, 4, 5, 6};
  sorted<float>(DType::F32, input, key("default"), &values);
  EXPECT_EQ(values, (std::vector<int32_t>{2, 1, 3, 6, 4, 0, 5}));
  values = {0, 1, 2, 3, 4, 5, 6};
  sorted<float>(DType::F32, input, key("total"), &values);
  EXPECT_EQ(values, (std::vector<int32_t>{5, 2, 3, 1, 6, 4, 0}));
  // No order at all with NaNs, but it ends and keeps every element.
  values = {0, 1, 2, 3, 4, 5, 6};
  sorted<float>(DType::F32, input, key("partial"), &values);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(values, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(SortTest, InnerDimension) {
  json config = {{"dimension", 0}, {"keys", json::array({{{"operand", 0}}})}};
  LibraryRequest request{
      {{DType::UI8, {3, 2}}}, {{DType::UI8, {3, 2}}}, config, {}};
  uint8_t in[] = {5, 1, 4, 9, 6, 0}, out[6];
  void *inputs[] = {in}, *outputs[] = {out};
  prepareSort(request)(inputs, outputs);
  uint8_t expected[] = {4, 0, 5, 1, 6, 9};
  EXPECT_EQ(std::memcmp(out, expected, 6), 0);
}

void greater(void **buffers, int64_t, int64_t) {
  *static_cast<uint8_t *>(buffers[2]) =
      *static_cast<int32_t *>(buffers[0]) > *static_cast<int32_t *>(buffers[1]);
}

TEST(SortTest, ComparatorKernel) {
  json config = {{"dimension", 0}, {"comparator", "greater"}};
  LibraryRequest request{{{DType::I32, {4}}},
                         {{DType::I32, {4}}},
                         config,
                         [](const std::string &) { return greater; }};
  int32_t in[] = {1, 7, 3, 5}, out[4];
  void *inputs[] = {in}, *outputs[] = {out};
  prepareSort(request)(inputs, outputs);
  int32_t expected[] = {7, 5, 3, 1};
  EXPECT_EQ(std::memcmp(out, expected, 16), 0);
}

TEST(SortTest, RefusesBadRequests) {
  auto prepare = [](json config, std::vector<LibraryRequest::Tensor> inputs,
                    std::vector<LibraryRequest::Tensor> outputs) {
    LibraryRequest request{inputs, outputs, config,
                           [](const std::string &) { return nullptr; }};
    prepareSort(request);
  };
  LibraryRequest::Tensor x = {DType::F32, {4}}, y = {DType::F32, {5}};
  LibraryRequest::Tensor c = {DType::C64, {4}};
  EXPECT_NO_THROW(prepare(key("default"), {x}, {x}));
  EXPECT_THROW(prepare(key("default"), {x}, {y}), Error);
  EXPECT_THROW(prepare(key("default"), {x}, {}), Error);
  EXPECT_THROW(prepare(key("default"), {c}, {c}), Error);
  EXPECT_THROW(prepare(key("sideways"), {x}, {x}), Error);
  EXPECT_THROW(prepare({{"dimension", 1}}, {x}, {x}), Error);
  EXPECT_THROW(prepare({{"dimension", 0}}, {x}, {x}), Error);
  EXPECT_THROW(prepare({{"dimension", 0}, {"comparator", "k"}}, {x}, {x}),
               Error);
  EXPECT_THROW(prepare(json::array(), {x}, {x}), Error);
}

} // namespace
