//===- Calls.cpp - Library calls that a GPU computes ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Calls.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace whale::runtime {

bool isGpuCall(const std::string &function) {
  static const std::set<std::string> functions = {
      "fft",          "triangular_solve", "lapack.trsm",  "lapack.potrf",
      "lapack.getrf", "lapack.geqrf",     "lapack.orgqr", "lapack.ormqr",
      "lapack.syevd", "lapack.gesdd"};
  return functions.contains(function);
}

namespace cuda {

CallContext::~CallContext() {
  if (solverHandle)
    openSolver(gpu.libraries).destroy.function(solverHandle);
  if (triangularHandle)
    openBlas(gpu.libraries).destroy.function(triangularHandle);
}

SolverHandle CallContext::solver() {
  if (!solverHandle)
    call(openSolver(gpu.libraries).create, &solverHandle);
  return solverHandle;
}

TriangularHandle CallContext::triangles() {
  if (!triangularHandle)
    call(openBlas(gpu.libraries).create, &triangularHandle);
  return triangularHandle;
}

void CallContext::check(const char *function, int status) const {
  if (status)
    throw Error(gpu.name() + ": " + function + ": status " +
                std::to_string(status));
}

static GpuCall prepare(CallContext &context, const Call &call) {
  bool isEmpty =
      std::ranges::any_of(call.bytes, [](int64_t bytes) { return bytes == 0; });
  if (isEmpty || !call.given || !isGpuCall(call.given->function))
    return {};
  const std::string &function = call.given->function;
  auto outputs =
      call.tensors.begin() + static_cast<std::ptrdiff_t>(call.inputs.size());
  nlohmann::json config = nlohmann::json::parse(call.given->config);
  LibraryRequest request{{call.tensors.begin(), outputs},
                         {outputs, call.tensors.end()},
                         config,
                         {}};
  if (function == "fft")
    return prepareGpuFft(context, request);
  if (function == "triangular_solve" || function == "lapack.trsm")
    return prepareGpuSystem(context, function, request);
  return prepareGpuLapack(context, function, request);
}

const GpuCall *Calls::find(const Call &call) {
  auto it = prepared.find(&call);
  if (it == prepared.end())
    it = prepared.emplace(&call, prepare(context, call)).first;
  return it->second.run ? &it->second : nullptr;
}

void Calls::run(const GpuCall &call, std::span<void *const> inputs,
                std::span<void *const> outputs, void *workspace,
                Stream stream) {
  context.workspace = workspace;
  context.stream = stream;
  call.run(inputs, outputs);
}

} // namespace cuda
} // namespace whale::runtime
