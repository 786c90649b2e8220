//===- Python.cpp - Calls of Python functions -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "library/Library.h"

#include <nlohmann/json.hpp>

namespace whale::runtime {

LibraryFunction preparePython(const LibraryRequest &request) {
  auto index = request.config.find("index");
  if (index == request.config.end() || !index->is_number_integer())
    throw Error("'python' needs the index of a function");
  auto withData = [](const std::vector<LibraryTensor> &types,
                     std::span<void *const> data) {
    std::vector<HostTensor> tensors;
    for (size_t i = 0; i < types.size(); ++i)
      tensors.push_back({types[i], data[i]});
    return tensors;
  };
  return [number = index->get<int64_t>(), inputTypes = request.inputs,
          outputTypes = request.outputs, python = request.python, withData](
             std::span<void *const> inputs, std::span<void *const> outputs) {
    if (!python)
      throw Error("the step calls back into Python, which doesn't run it");
    python(number, withData(inputTypes, inputs),
           withData(outputTypes, outputs));
  };
}

} // namespace whale::runtime
