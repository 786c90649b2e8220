//===- Library.cpp - Functions that programs call by name -------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "library/Library.h"

#include <mutex>
#include <nlohmann/json.hpp>

namespace whale::runtime {

namespace {
struct Registry {
  std::mutex mutex;
  std::map<std::string, LibraryFactory> functions = lapackFunctions();

  Registry() {
    functions["attention"] = prepareAttention;
    functions["attention_gradient"] = prepareAttentionGradient;
    functions["fused_attention"] = prepareAttention;
    functions["fused_attention_gradient"] = prepareAttentionGradient;
    functions["fft"] = prepareFft;
    functions["python"] = preparePython;
    functions["sort"] = prepareSort;
    functions["triangular_solve"] = prepareTriangularSolve;
    functions["lapack.trsm"] = prepareTrsm;
  }
};
} // namespace

static Registry &registry() {
  static Registry instance;
  return instance;
}

void registerLibraryFunction(const std::string &name, LibraryFactory factory) {
  std::lock_guard lock(registry().mutex);
  registry().functions[name] = std::move(factory);
}

const LibraryFactory *findLibraryFunction(const std::string &name) {
  std::lock_guard lock(registry().mutex);
  auto it = registry().functions.find(name);
  return it == registry().functions.end() ? nullptr : &it->second;
}

} // namespace whale::runtime
