//===- AttentionLayout.cpp - Tensors of attention -------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the request of a call of attention or its gradient: tensors, and a letter
// for each of their dimensions in the configuration, as in an einsum. Out: the
// stride of each tensor along each letter's dimension, 0 where the tensor
// hasn't it, and the extents; or an Error that says what is wrong. Cost: once
// for each call of a program, a look-up in a map for each dimension of each
// tensor. In a run the offset of a head takes a division for each dimension of
// heads.
//
//===----------------------------------------------------------------------===//

#include "library/AttentionLayout.h"

#include "whale/Runtime/Types.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <map>

namespace whale::runtime {

int64_t AttentionTensor::offset(const std::vector<int64_t> &headExtents,
                                int64_t head) const {
  int64_t sum = start;
  for (size_t i = headExtents.size(); i-- > 0;) {
    sum += head % headExtents[i] * heads[i];
    head /= headExtents[i];
  }
  return sum;
}

std::optional<AttentionView> findView(const nlohmann::json &config,
                                      const std::string &name) {
  auto it = config.find(name + "_view");
  if (it == config.end())
    return std::nullopt;
  try {
    AttentionView view{it->at("shape"), it->at("strides"), it->at("offset")};
    if (view.shape.size() == view.strides.size())
      return view;
  } catch (const nlohmann::json::exception &) {
  }
  throw Error("config." + name +
              "_view must have a shape, as many strides and an offset");
}

namespace {
/// Reads the letters of one tensor after the other; all that have a letter have
/// the same extent for it.
class LetterReader {
public:
  LetterReader(const LibraryRequest &request, std::string function)
      : request(request), function(std::move(function)) {}

  [[noreturn]] void fail(const std::string &what) const {
    throw Error(function + ": " + what);
  }

  /// The tensor whose letters are the configuration's `name`, with the letters
  /// `needed`.
  AttentionTensor read(const LibraryTensor &tensor, const std::string &name,
                       const std::string &needed, bool isMask = false);

  int64_t extentOf(char letter) const { return extents.at(letter); }
  std::string heads;

private:
  const LibraryRequest &request;
  std::string function;
  std::map<char, int64_t> extents;
};
} // namespace

AttentionTensor LetterReader::read(const LibraryTensor &tensor,
                                   const std::string &name,
                                   const std::string &needed, bool isMask) {
  auto it = request.config.find(name);
  if (it == request.config.end() || !it->is_string())
    fail("config." + name + " must be a string");
  const auto letters = it->get<std::string>();
  std::optional<AttentionView> view = findView(request.config, name);
  const Shape &shape = view ? view->shape : tensor.shape;
  if (letters.size() != shape.size())
    fail("config." + name + " must have a letter for each dimension");
  if (isMask ? tensor.dtype != DType::I1
             : tensor.dtype != DType::F32 && tensor.dtype != DType::BF16 &&
                   tensor.dtype != DType::F16)
    fail("the " + name + " has an element type that it can't have");
  bool isFirst = extents.empty();
  std::map<char, int64_t> strides;
  int64_t stride = 1, last = view ? view->offset : 0;
  for (size_t dim = letters.size(); dim-- > 0;) {
    char letter = letters[dim];
    int64_t extent = shape[dim];
    if (view) {
      stride = view->strides[dim];
      if (stride < 0 || extent < 1)
        fail("config." + name + "_view must be forward and have elements");
      if (__builtin_mul_overflow(stride, extent - 1, &stride) ||
          __builtin_add_overflow(last, stride, &last))
        fail("config." + name + "_view is beyond its tensor");
      stride = view->strides[dim];
    }
    if (letter == '1' && extent == 1)
      continue;
    if (letter < 'a' || letter > 'z' || strides.contains(letter))
      fail("config." + name + " must have different letters");
    strides[letter] = stride;
    if (extents.try_emplace(letter, extent).first->second != extent)
      fail(std::string("the letter '") + letter + "' has two extents");
    stride *= extent;
  }
  if (view && (view->offset < 0 || last >= elementCount(tensor.shape)))
    fail("config." + name + "_view is beyond its tensor");
  for (char letter : needed)
    if (!strides.contains(letter))
      fail("config." + name + " must have the letter '" + letter + "'");
  AttentionTensor result;
  result.dtype = tensor.dtype;
  result.start = view ? view->offset : 0;
  auto take = [&](char letter) {
    auto found = strides.find(letter);
    return found == strides.end() ? 0 : found->second;
  };
  result.row = take('q');
  result.key = take('k');
  result.depth = take('d');
  result.feature = take('e');
  if (isFirst)
    for (char letter : letters)
      if (letter != 'q' && letter != 'd' && letter != '1')
        heads += letter;
  for (const auto &[letter, unused] : strides)
    if (std::string_view("qkde").find(letter) == std::string_view::npos &&
        heads.find(letter) == std::string::npos)
      fail(std::string("the query has no '") + letter + "'");
  for (char letter : heads)
    result.heads.push_back(take(letter));
  return result;
}

AttentionLayout::AttentionLayout(const LibraryRequest &request,
                                 bool isGradient) {
  LetterReader reader(request, isGradient ? "attention_gradient" : "attention");
  const nlohmann::json &config = request.config;
  bool hasMask = config.contains("mask"), hasBias = config.contains("bias");
  // A gradient needs neither the output nor the statistics.
  bool hasStatistics = config.contains("statistics");
  bool givesStatistics = hasStatistics && !isGradient;
  size_t inputs = 3 + hasMask + hasBias + isGradient +
                  (hasStatistics && isGradient ? 2 : 0);
  size_t outputs = isGradient ? 4 : 2 + givesStatistics;
  if (request.inputs.size() != inputs || request.outputs.size() != outputs)
    reader.fail("takes " + std::to_string(inputs) + " tensors and makes " +
                std::to_string(outputs));
  query = reader.read(request.inputs[0], "query", "qd");
  key = reader.read(request.inputs[1], "key", "kd");
  value = reader.read(request.inputs[2], "value", "ke");
  size_t next = 3;
  if (hasMask)
    mask = reader.read(request.inputs[next++], "mask", "", true);
  if (hasBias)
    bias = reader.read(request.inputs[next++], "bias", "");
  auto needed = [&](const std::string &own) { return own + reader.heads; };
  if (isGradient) {
    cotangent = reader.read(request.inputs[next], "cotangent", needed("qe"));
    cotangentNumber = next;
    if (hasStatistics) {
      reader.read(request.inputs[next + 1], "output", needed("qe"));
      reader.read(request.inputs[next + 2], "statistics", "q");
    }
    // Cotangents of keys and values that heads share may be sums.
    std::string shared;
    for (size_t i = 0; i < reader.heads.size(); ++i)
      if (key.heads[i] == 0 && value.heads[i] == 0)
        shared += reader.heads[i];
    auto it = config.find("key_result");
    bool isSum =
        it != config.end() && it->is_string() &&
        it->get<std::string>().find_first_of(shared) == std::string::npos;
    std::string all = reader.heads;
    if (isSum)
      std::erase_if(all, [&](char letter) {
        return shared.find(letter) != std::string::npos;
      });
    results = {reader.read(request.outputs[0], "query_result", needed("qd")),
               reader.read(request.outputs[1], "key_result", "kd" + all),
               reader.read(request.outputs[2], "value_result", "ke" + all)};
    for (size_t i = 0; i < reader.heads.size(); ++i)
      if ((results[1].heads[i] == 0) != (results[2].heads[i] == 0))
        reader.fail("key_result and value_result must have the same heads");
  } else {
    results = {reader.read(request.outputs[0], "result", needed("qe"))};
    if (givesStatistics)
      statistics = reader.read(request.outputs[1], "statistics", "q");
    if (givesStatistics && statistics->dtype != DType::F32)
      reader.fail("statistics are f32");
  }
  sizes = {1, reader.extentOf('q'), reader.extentOf('k'), reader.extentOf('d'),
           reader.extentOf('e')};
  for (char letter : reader.heads) {
    heads.push_back(reader.extentOf(letter));
    sizes.heads *= heads.back();
  }
  if (givesStatistics &&
      elementCount(request.outputs[1].shape) != sizes.heads * sizes.rows)
    reader.fail("statistics have all rows of all heads");
  for (int64_t extent : {sizes.rows, sizes.keys, sizes.depth, sizes.features})
    if (extent > std::numeric_limits<int32_t>::max())
      reader.fail("oneDNN computes with 32 bits of the extents");

  auto number = [&](const char *name, double otherwise) {
    auto it = config.find(name);
    if (it == config.end())
      return static_cast<float>(otherwise);
    if (!it->is_number())
      reader.fail(std::string("config.") + name + " must be a number");
    return static_cast<float>(it->get<double>());
  };
  scale = number("scale", 1);
  fill = number("fill", -std::numeric_limits<double>::infinity());
  if (auto it = config.find("causal"); it != config.end()) {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    if (!it->is_number_integer() || it->get<int64_t>() > most ||
        it->get<int64_t>() < -most)
      reader.fail("config.causal must be an integer of 32 bits");
    causal = it->get<int64_t>();
  }
  const LibraryTensor &scratch = request.outputs.back();
  int64_t each = isGradient ? sizes.gradientScratch() : sizes.scratch();
  if (scratch.dtype != DType::F32 || scratch.shape.size() != 1 ||
      (each > 0 && (scratch.shape[0] < each || scratch.shape[0] % each != 0)))
    reader.fail("the last output must be f32 scratch memory of a multiple of " +
                std::to_string(each) + " elements");
  threads = each > 0 ? scratch.shape[0] / each : 1;
}

} // namespace whale::runtime
