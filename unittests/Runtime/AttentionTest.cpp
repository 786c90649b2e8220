//===- AttentionTest.cpp - The library functions of attention -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The processor's routines of attention and its gradient, which work in blocks
// of rows and keys. They are compared with the formula in double, element by
// element, over masks, biases, causal offsets and rows without any key.
//
// Tolerances are 2e-5 for f32 and 1e-2 for bf16, relative to each element and
// in proportion to the scale. Results must have the same bits for all numbers
// of threads. Results and scratch memory start as NaNs, so that what is read
// before it is written shows. Wrong requests must be refused word for word.
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Attention.h"
#include "Numeric.h"
#include "device/cpu/Parallel.h"
#include "library/Library.h"
#include "whale/Runtime/Types.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <random>

using namespace whale::runtime;
using nlohmann::json;
using whale::format::BFloat16;

namespace {

constexpr int64_t samples = 2, heads = 3;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Attention with tensors [samples, rows or keys, heads, features]; keys and
/// values have no heads.
struct Problem {
  int64_t rows = 5, keys = 7, depth = 4, features = 6;
  double scale = 0.5;
  std::optional<int64_t> causal = {};
  bool hasMask = false, hasBias = false;
  std::optional<double> fill = {};
  DType dtype = DType::F32;
  int64_t threads = 1;

  std::vector<float> query = {}, key = {}, value = {}, bias = {},
                     cotangent = {};
  std::vector<uint8_t> mask = {};

  void fillIn() {
    std::mt19937 random(1);
    auto make = [&](int64_t count) {
      std::normal_distribution<float> normal;
      std::vector<float> list(count);
      for (float &each : list)
        each = rounded(normal(random));
      return list;
    };
    query = make(samples * rows * heads * depth);
    key = make(samples * keys * depth);
    value = make(samples * keys * features);
    cotangent = make(samples * rows * heads * features);
    bias = make(heads * rows * keys);
    for (int64_t i = 0; i < samples * keys; ++i)
      mask.push_back(i % 3 != 1);
  }

  /// The number as the tensor's element type holds it.
  float rounded(float number) const {
    if (dtype == DType::F32)
      return number;
    return Element<BFloat16>::load(Element<BFloat16>::store(number));
  }

  std::vector<uint8_t> bytesOf(const std::vector<float> &list) const {
    std::vector<uint8_t> bytes(list.size() * byteSize(dtype));
    for (size_t i = 0; i < list.size(); ++i)
      if (dtype == DType::F32)
        reinterpret_cast<float *>(bytes.data())[i] = list[i];
      else
        reinterpret_cast<BFloat16 *>(bytes.data())[i] =
            Element<BFloat16>::store(list[i]);
    return bytes;
  }
  std::vector<float> floatsOf(const std::vector<uint8_t> &bytes) const {
    std::vector<float> list(bytes.size() / byteSize(dtype));
    for (size_t i = 0; i < list.size(); ++i)
      list[i] = dtype == DType::F32
                    ? reinterpret_cast<const float *>(bytes.data())[i]
                    : Element<BFloat16>::load(
                          reinterpret_cast<const BFloat16 *>(bytes.data())[i]);
    return list;
  }

  /// What the function computes, without its scratch memory.
  std::vector<std::vector<float>> run(bool isGradient) const;
  /// The same in f64, by its definition.
  std::vector<std::vector<double>> expect(bool isGradient) const;
};

std::vector<std::vector<float>> Problem::run(bool isGradient) const {
  json config = {
      {"query", "bqhd"}, {"key", "bkd"}, {"value", "bke"}, {"scale", scale}};
  std::vector<LibraryTensor> inputs = {{dtype, {samples, rows, heads, depth}},
                                       {dtype, {samples, keys, depth}},
                                       {dtype, {samples, keys, features}}};
  std::vector<std::vector<uint8_t>> memory = {bytesOf(query), bytesOf(key),
                                              bytesOf(value)};
  if (hasMask) {
    config["mask"] = "bk";
    inputs.push_back({DType::I1, {samples, keys}});
    memory.push_back(mask);
  }
  if (hasBias) {
    config["bias"] = "hqk";
    inputs.push_back({dtype, {heads, rows, keys}});
    memory.push_back(bytesOf(bias));
  }
  if (fill)
    config["fill"] = *fill;
  if (causal)
    config["causal"] = *causal;
  whale::format::AttentionSizes sizes{samples * heads, rows, keys, depth,
                                      features};
  std::vector<LibraryTensor> outputs;
  if (isGradient) {
    config["cotangent"] = "bqhe";
    inputs.push_back({dtype, {samples, rows, heads, features}});
    memory.push_back(bytesOf(cotangent));
    config["query_result"] = "hbdq";
    config["key_result"] = "hbkd";
    config["value_result"] = "bhke";
    outputs = {{dtype, {heads, samples, depth, rows}},
               {dtype, {heads, samples, keys, depth}},
               {dtype, {samples, heads, keys, features}},
               {DType::F32, {threads * sizes.gradientScratch()}}};
  } else {
    config["result"] = "bhqe";
    outputs = {{dtype, {samples, heads, rows, features}},
               {DType::F32, {threads * sizes.scratch()}}};
  }
  std::vector<std::vector<uint8_t>> results;
  for (const LibraryTensor &tensor : outputs) {
    int64_t count = byteSize(tensor.dtype);
    for (int64_t extent : tensor.shape)
      count *= extent;
    // Nothing is read before it is written.
    results.emplace_back(count, 0xff);
  }
  std::vector<void *> in, out;
  for (auto &bytes : memory)
    in.push_back(bytes.data());
  for (auto &bytes : results)
    out.push_back(bytes.data());
  LibraryRequest request{inputs, outputs, config, {}};
  (isGradient ? prepareAttentionGradient : prepareAttention)(request)(in, out);
  std::vector<std::vector<float>> lists;
  for (size_t i = 0; i + 1 < results.size(); ++i)
    lists.push_back(floatsOf(results[i]));
  return lists;
}

std::vector<std::vector<double>> Problem::expect(bool isGradient) const {
  std::vector<double> result(samples * heads * rows * features),
      queries(heads * samples * depth * rows),
      ofKeys(heads * samples * keys * depth),
      ofValues(samples * heads * keys * features);
  for (int64_t b = 0; b < samples; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t q = 0; q < rows; ++q) {
        std::vector<double> p(keys), dp(keys);
        std::vector<bool> kept(keys);
        double largest = -infinity, sum = 0, shift = 0;
        for (int64_t k = 0; k < keys; ++k) {
          for (int64_t d = 0; d < depth; ++d)
            p[k] += scale * query[((b * rows + q) * heads + h) * depth + d] *
                    key[(b * keys + k) * depth + d];
          if (hasBias)
            p[k] += bias[(h * rows + q) * keys + k];
          kept[k] =
              (!hasMask || mask[b * keys + k]) && (!causal || k <= q + *causal);
          if (!kept[k])
            p[k] = fill.value_or(-infinity);
          largest = std::max(largest, p[k]);
        }
        for (double &each : p)
          sum += each = std::exp(each - largest);
        for (int64_t k = 0; k < keys; ++k) {
          p[k] /= sum;
          for (int64_t e = 0; e < features; ++e) {
            double v = value[(b * keys + k) * features + e];
            double c = cotangent[((b * rows + q) * heads + h) * features + e];
            result[((b * heads + h) * rows + q) * features + e] += p[k] * v;
            ofValues[((b * heads + h) * keys + k) * features + e] += p[k] * c;
            dp[k] += c * v;
          }
          shift += p[k] * dp[k];
        }
        for (int64_t k = 0; k < keys; ++k)
          for (int64_t d = 0; d < depth && kept[k]; ++d) {
            double ds = scale * p[k] * (dp[k] - shift);
            queries[((h * samples + b) * depth + d) * rows + q] +=
                ds * key[(b * keys + k) * depth + d];
            ofKeys[((h * samples + b) * keys + k) * depth + d] +=
                ds * query[((b * rows + q) * heads + h) * depth + d];
          }
      }
  if (isGradient)
    return {queries, ofKeys, ofValues};
  return {result};
}

void compare(Problem problem) {
  problem.fillIn();
  // The error of a score is in proportion to it.
  double tolerance = (problem.dtype == DType::F32 ? 2e-5 : 1e-2) *
                     std::max(1.0, problem.scale);
  for (bool isGradient : {false, true}) {
    auto results = problem.run(isGradient);
    auto expected = problem.expect(isGradient);
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      ASSERT_EQ(results[i].size(), expected[i].size());
      for (size_t j = 0; j < results[i].size(); ++j) {
        if (std::isnan(expected[i][j])) {
          EXPECT_TRUE(std::isnan(results[i][j])) << i << " " << j;
          continue;
        }
        ASSERT_NEAR(results[i][j], expected[i][j],
                    tolerance * (1 + std::abs(expected[i][j])))
            << "gradient " << isGradient << ", result " << i << ", " << j;
      }
    }
  }
}

TEST(AttentionTest, Plain) { compare({}); }

TEST(AttentionTest, ManyBlocks) {
  compare(
      {.rows = 300, .keys = 515, .depth = 33, .features = 17, .threads = 3});
}

TEST(AttentionTest, Causal) {
  for (int64_t offset : {0, 3, -2, 100})
    compare({.rows = 140,
             .keys = 150,
             .causal = offset,
             .fill = -1e9,
             .threads = 2});
}

TEST(AttentionTest, RowsWithoutKeysAreMeans) {
  // All masked scores are equal then, and count.
  compare({.rows = 40, .keys = 33, .causal = -20, .fill = -3e38});
  compare({.rows = 40, .keys = 33, .causal = -50, .fill = -1.0});
}

TEST(AttentionTest, MaskedScoresMayCount) {
  compare({.rows = 30, .keys = 70, .causal = 2, .hasMask = true, .fill = -1.5});
}

TEST(AttentionTest, RowsWithoutKeysAreNaN) {
  compare({.rows = 4, .keys = 6, .causal = -2});
}

TEST(AttentionTest, MaskAndBias) {
  compare({.hasMask = true});
  compare({.hasBias = true});
  compare({.rows = 30,
           .keys = 90,
           .causal = 10,
           .hasMask = true,
           .hasBias = true,
           .fill = -1e30});
}

TEST(AttentionTest, HalfPrecision) {
  compare({.rows = 70,
           .keys = 90,
           .depth = 16,
           .features = 8,
           .causal = 5,
           .hasMask = true,
           .hasBias = true,
           .fill = -1e9,
           .dtype = DType::BF16});
}

TEST(AttentionTest, LargeScores) {
  compare({.rows = 20, .keys = 30, .scale = 30});
}

TEST(AttentionTest, SameBitsForAllThreadCounts) {
  Problem problem{.rows = 200,
                  .keys = 600,
                  .depth = 32,
                  .features = 32,
                  .causal = 400,
                  .fill = -1e9};
  problem.fillIn();
  int64_t before = getThreadCount();
  for (bool isGradient : {false, true}) {
    problem.threads = 1;
    auto expected = problem.run(isGradient);
    for (int64_t threads : {2, 3, 5}) {
      setThreadCount(threads);
      problem.threads = 4;
      EXPECT_EQ(problem.run(isGradient), expected) << threads;
    }
    setThreadCount(before);
  }
}

/// The error for a change to a good request.
std::string errorOf(const std::function<void(LibraryRequest &, json &)> &edit) {
  json config = {
      {"query", "qd"}, {"key", "kd"}, {"value", "ke"}, {"result", "qe"}};
  whale::format::AttentionSizes sizes{1, 4, 6, 8, 2};
  LibraryRequest request{
      {{DType::F32, {4, 8}}, {DType::F32, {6, 8}}, {DType::F32, {6, 2}}},
      {{DType::F32, {4, 2}}, {DType::F32, {sizes.scratch()}}},
      config,
      {}};
  try {
    edit(request, config);
    prepareAttention(request);
  } catch (const Error &error) {
    return error.what();
  }
  return "none";
}

TEST(AttentionTest, RefusesWhatIsNoAttention) {
  EXPECT_EQ(errorOf([](auto &, json &) {}), "none");
  EXPECT_EQ(errorOf([](auto &, json &config) { config.erase("key"); }),
            "attention: config.key must be a string");
  EXPECT_EQ(errorOf([](auto &, json &config) { config["key"] = "k"; }),
            "attention: config.key must have a letter for each dimension");
  EXPECT_EQ(errorOf([](auto &, json &config) { config["key"] = "kk"; }),
            "attention: config.key must have different letters");
  EXPECT_EQ(errorOf([](auto &, json &config) { config["key"] = "dk"; }),
            "attention: the letter 'd' has two extents");
  EXPECT_EQ(errorOf([](auto &, json &config) { config["key"] = "kz"; }),
            "attention: config.key must have the letter 'd'");
  EXPECT_EQ(errorOf([](auto &, json &config) { config["result"] = "q1"; }),
            "attention: config.result must have different letters");
  EXPECT_EQ(errorOf([](auto &, json &config) { config["causal"] = 1.5; }),
            "attention: config.causal must be an integer of 32 bits");
  EXPECT_EQ(errorOf([](auto &, json &config) { config["scale"] = "a"; }),
            "attention: config.scale must be a number");
  EXPECT_EQ(errorOf([](auto &request, json &) { request.inputs.pop_back(); }),
            "attention: takes 3 tensors and makes 2");
  EXPECT_EQ(errorOf([](auto &request, json &) {
              request.inputs[0].dtype = DType::F64;
            }),
            "attention: the query has an element type that it can't have");
  EXPECT_EQ(
      errorOf([](auto &request, json &) { request.outputs[1].shape = {10}; }),
      "attention: the last output must be f32 scratch memory of a "
      "multiple of 124 elements");
}

} // namespace
