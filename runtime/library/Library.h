//===- Library.h - Functions that programs call by name ---------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The registry behind the instruction `call`. A function is prepared
// once, when the program is loaded, where it checks its operands and its
// configuration; the result runs at each call.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_LIBRARY_LIBRARY_H
#define WHALE_RUNTIME_LIBRARY_LIBRARY_H

#include "program/Format.h"
#include "whale/Runtime/Python.h"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace whale::runtime {

/// Runs one call. The buffers are those that were declared when it was
/// prepared; outputs overlap neither each other nor inputs.
using LibraryFunction = std::function<void(std::span<void *const> inputs,
                                           std::span<void *const> outputs)>;

struct LibraryRequest {
  using Tensor = LibraryTensor;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  const nlohmann::json &config;
  /// The kernel of that name, or null.
  std::function<void (*(const std::string &))(void **, int64_t, int64_t)>
      findKernel;
  /// Empty where Python doesn't run the program.
  PythonFunction python = {};
};

/// Throws Error for operands or a configuration that the function can't take.
using LibraryFactory = std::function<LibraryFunction(const LibraryRequest &)>;

/// Adds a function, or replaces the one of that name.
void registerLibraryFunction(const std::string &name, LibraryFactory factory);

/// The function of that name, or null.
const LibraryFactory *findLibraryFunction(const std::string &name);

// Each of these is described in docs/program-format.md.
LibraryFunction prepareAttention(const LibraryRequest &request);
LibraryFunction prepareAttentionGradient(const LibraryRequest &request);
LibraryFunction prepareFft(const LibraryRequest &request);
LibraryFunction preparePython(const LibraryRequest &request);
LibraryFunction prepareSort(const LibraryRequest &request);
LibraryFunction prepareTriangularSolve(const LibraryRequest &request);
LibraryFunction prepareTrsm(const LibraryRequest &request);

/// The routines of LAPACK.
std::map<std::string, LibraryFactory> lapackFunctions();

} // namespace whale::runtime

#endif // WHALE_RUNTIME_LIBRARY_LIBRARY_H
