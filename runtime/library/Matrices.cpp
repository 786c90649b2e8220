//===- Matrices.cpp - Batches of matrices for library calls -----*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "library/Matrices.h"
#include "device/cpu/Parallel.h"
#include "whale/Runtime/Types.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace whale::runtime {

void failElementType(const std::string &name) {
  throw Error(name + " takes f32, f64 and complex elements");
}

MatrixBatch::MatrixBatch(const LibraryRequest &request, std::string name,
                         size_t rank)
    : request(&request), name(std::move(name)) {
  const Shape empty;
  const Shape &shape = request.inputs.empty() ? empty : request.inputs[0].shape;
  if (shape.size() < rank)
    throw Error(this->name + " takes an operand of at least " +
                std::to_string(rank) + " dimensions");
  batch.assign(shape.begin(), shape.end() - rank);
  element.assign(shape.end() - rank, shape.end());
  // LAPACK counts in 32 bits.
  for (int64_t extent : element)
    if (extent > INT32_MAX)
      throw Error(this->name + ": the matrix is too large");
}

int64_t MatrixBatch::extent(size_t dim) const { return element[dim]; }

void MatrixBatch::check(const std::vector<LibraryRequest::Tensor> &tensors,
                        std::vector<int64_t> &bytes, DType dtype,
                        const Shape &tail, const char *what) const {
  size_t number = bytes.size();
  std::string where =
      name + ": " + what + " " + std::to_string(number) + " must be ";
  if (number >= tensors.size())
    throw Error(where + "there");
  Shape shape = batch;
  shape.insert(shape.end(), tail.begin(), tail.end());
  if (tensors[number].dtype != dtype || tensors[number].shape != shape)
    throw Error(where + "of type " + std::string(whale::runtime::name(dtype)) +
                " and shape " + toString(shape));
  bytes.push_back(elementCount(tail) * byteSize(dtype));
}

char MatrixBatch::letter(const char *key, std::string_view allowed) const {
  const nlohmann::json value = request->config.value(key, nlohmann::json());
  int64_t code = value.is_number_integer() ? value.get<int64_t>() : -1;
  if (code < 0 || code > 127 ||
      allowed.find(static_cast<char>(code)) == std::string_view::npos)
    throw Error(name + ": config." + key + " must be the code of one of '" +
                std::string(allowed) + "'");
  return static_cast<char>(code);
}

bool MatrixBatch::flag(const char *key) const {
  const nlohmann::json value = request->config.value(key, nlohmann::json());
  if (!value.is_boolean())
    throw Error(name + ": config." + key + " must be true or false");
  return value.get<bool>();
}

int32_t MatrixBatch::integer(const char *key, int64_t least,
                             int64_t most) const {
  const nlohmann::json value = request->config.value(key, nlohmann::json());
  if (!value.is_number_integer() || value.get<int64_t>() < least ||
      value.get<int64_t>() > most)
    throw Error(name + ": config." + key + " must be from " +
                std::to_string(least) + " to " + std::to_string(most));
  return value.get<int32_t>();
}

LibraryFunction
MatrixBatch::finish(std::function<void(const MatrixCall &)> body,
                    int64_t mostThreads) const {
  if (inputBytes.size() != request->inputs.size() ||
      outputBytes.size() != request->outputs.size())
    throw Error(name + " takes " + std::to_string(inputBytes.size()) +
                " inputs and gives " + std::to_string(outputBytes.size()) +
                " results");
  // For an element of the batch about the multiplications, of what it takes and
  // gives a factor for each row or column; libraries do two of them in the time
  // of a byte, and a call takes as long as some hundred bytes.
  double work = 1;
  if (!element.empty()) {
    int64_t most = *std::ranges::max_element(element);
    double result = 0;
    for (const auto &output : request->outputs)
      result = std::max(result, double(elementCount(output.shape)));
    double count = std::max<double>(elementCount(batch), 1);
    constexpr double multiplicationsPerByte = 2, call = 500;
    work = double(elementCount(element)) *
               std::max(result / count / std::max<double>(most, 1), 1.0) /
               multiplicationsPerByte +
           call;
  }
  return [count = elementCount(batch), work, mostThreads,
          inputBytes = inputBytes, outputBytes = outputBytes,
          body = std::move(body)](std::span<void *const> inputs,
                                  std::span<void *const> outputs) {
    int64_t threads = threadsFor(static_cast<double>(count) * work,
                                 std::min(getThreadCount(), mostThreads));
    parallelFor(count, threads, [&](int64_t begin, int64_t end) {
      MatrixCall call;
      call.inputs.resize(inputs.size());
      call.outputs.resize(outputs.size());
      for (int64_t i = begin; i < end; ++i) {
        for (size_t n = 0; n < inputs.size(); ++n)
          call.inputs[n] =
              static_cast<const uint8_t *>(inputs[n]) + i * inputBytes[n];
        for (size_t n = 0; n < outputs.size(); ++n)
          call.outputs[n] =
              static_cast<uint8_t *>(outputs[n]) + i * outputBytes[n];
        body(call);
      }
    });
  };
}

} // namespace whale::runtime
