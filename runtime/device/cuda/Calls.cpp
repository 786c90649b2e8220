//===- Calls.cpp - Library calls that a GPU computes ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Calls.h"

#include "whale/ProgramFormat/Limits.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace whale::runtime {

bool isGpuConvolution(const format::Convolution &convolution) {
  return cuda::describeForDnn(convolution).has_value();
}

int64_t gpuWorkspace(const format::Convolution &convolution) {
  auto described = cuda::describeForDnn(convolution);
  return described ? cuda::workspaceOf(*described) : 0;
}

bool isGpuCall(const std::string &function) {
  static const std::set<std::string> functions = {"fused_attention",
                                                  "fused_attention_gradient",
                                                  "fft",
                                                  "triangular_solve",
                                                  "lapack.trsm",
                                                  "lapack.potrf",
                                                  "lapack.getrf",
                                                  "lapack.geqrf",
                                                  "lapack.orgqr",
                                                  "lapack.ormqr",
                                                  "lapack.syevd",
                                                  "lapack.gesdd"};
  return functions.contains(function);
}

int64_t gpuWorkspace(const std::string &function,
                     const std::vector<LibraryTensor> &inputs,
                     const std::vector<LibraryTensor> &outputs) {
  if (!isGpuCall(function))
    return 0;
  if (function == "fft")
    return cuda::workspaceOfFft(inputs.front(), outputs.front());
  if (function == "triangular_solve" || function == "lapack.trsm")
    return cuda::workspaceOfSystem;
  return cuda::workspaceOfLapack(inputs, outputs);
}

namespace cuda {

CallContext::~CallContext() {
  if (solverHandle)
    openSolver(gpu.libraries).destroy.function(solverHandle);
  if (dnnHandle)
    openDnn(gpu.libraries).destroy.function(dnnHandle);
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

DnnHandle CallContext::dnn() {
  if (!dnnHandle)
    call(openDnn(gpu.libraries).create, &dnnHandle);
  return dnnHandle;
}

void CallContext::check(const char *function, int status) const {
  if (status)
    throw Error(gpu.name() + ": " + function + ": status " +
                std::to_string(status));
}

GpuCall prepareGpuConvolution(CallContext &context,
                              const DnnConvolution &convolution) {
  const Dnn &dnn = openDnn(context.gpu.libraries);
  DnnHandle handle = context.dnn();
  std::shared_ptr<const DnnPlan> plan =
      findConvolutionPlan(dnn, convolution, {handle}, context.workspaceBytes);
  if (!plan)
    return {};
  GpuCall call;
  call.algorithm = "cuDNN engine " + std::to_string(plan->engine());
  call.workspaceBytes = plan->workspaceBytes();
  auto [lhs, rhs, out] = tensorNumbers(convolution);
  call.run = [=, &context, &dnn](std::span<void *const> inputs,
                                 std::span<void *const> outputs) {
    context.call(dnn.setStream, handle, context.stream);
    plan->run(handle, {{lhs, inputs[0]}, {rhs, inputs[1]}, {out, outputs[0]}},
              context.workspace);
  };
  return call;
}

/// What calls that are prepared alike have in common.
static std::string describe(const Call &call) {
  std::string text = call.given->function + call.given->config +
                     std::to_string(call.inputs.size());
  for (const LibraryTensor &tensor : call.tensors) {
    text += name(tensor.dtype);
    for (int64_t extent : tensor.shape)
      text += " " + std::to_string(extent);
  }
  return text;
}

/// The processor's where the library asks for more than is planned.
static GpuCall withinPlan(GpuCall call, int64_t planned) {
  if (!call.run || call.workspaceBytes <= planned)
    return call;
  GpuCall ofProcessor;
  ofProcessor.algorithm += ", as " + call.algorithm + " takes " +
                           std::to_string(call.workspaceBytes) +
                           " bytes of workspace where " +
                           std::to_string(planned) + " are planned";
  return ofProcessor;
}

static GpuCall prepare(CallContext &context, const Call &call) {
  bool isEmpty =
      std::ranges::any_of(call.bytes, [](int64_t bytes) { return bytes == 0; });
  if (isEmpty || !isGpuCall(call.given->function))
    return {};
  const std::string &function = call.given->function;
  auto outputs =
      call.tensors.begin() + static_cast<std::ptrdiff_t>(call.inputs.size());
  nlohmann::json config = nlohmann::json::parse(call.given->config);
  LibraryRequest request{{call.tensors.begin(), outputs},
                         {outputs, call.tensors.end()},
                         config,
                         {}};
  if (function.starts_with("fused_attention"))
    return prepareGpuAttention(
        context, request,
        std::min(context.workspaceBytes, format::mostWorkspace),
        function == "fused_attention_gradient");
  if (function == "fft")
    return withinPlan(prepareGpuFft(context, request), context.workspaceBytes);
  if (function == "triangular_solve" || function == "lapack.trsm")
    return withinPlan(prepareGpuSystem(context, function, request),
                      context.workspaceBytes);
  return withinPlan(prepareGpuLapack(context, function, request),
                    context.workspaceBytes);
}

template <typename Op, typename Prepare>
const GpuCall *Calls::find(const Op &op, Prepare prepare) {
  auto it = prepared.find(&op);
  if (it == prepared.end())
    it = prepared.emplace(&op, prepare()).first;
  return it->second.run ? &it->second : nullptr;
}

/// What was prepared for this key, or is now.
template <typename Key, typename Prepare>
static GpuCall findAlike(std::map<Key, GpuCall> &alike, const Key &key,
                         Prepare prepare) {
  auto it = alike.find(key);
  if (it == alike.end())
    it = alike.emplace(key, prepare()).first;
  return it->second;
}

const GpuCall *Calls::find(const Call &call) {
  return find(call, [&]() -> GpuCall {
    if (!call.given)
      return {};
    return findAlike(alikeCalls, describe(call),
                     [&] { return prepare(context, call); });
  });
}

const GpuCall *Calls::find(const Convolution &convolution) {
  return find(convolution, [&]() -> GpuCall {
    std::optional<DnnConvolution> described = describeForDnn(convolution);
    if (!described)
      return {};
    return findAlike(alikeConvolutions, *described, [&] {
      return prepareGpuConvolution(context, *described);
    });
  });
}

void Calls::run(const GpuCall &call, std::span<void *const> inputs,
                std::span<void *const> outputs, Stream stream) {
  context.stream = stream;
  call.run(inputs, outputs);
}

} // namespace cuda
} // namespace whale::runtime
