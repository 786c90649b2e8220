//===- Calls.cpp - Library calls that a GPU computes ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a library call or a convolution of a program. Out: what puts it on a
// stream. It is empty where the processor computes the call: one of no
// elements, one that no library of the GPU has, and one that takes more
// workspace than is planned. Each call is prepared once, and those of one
// function and the same types and shapes together. Where plans of convolutions
// are measured, the fastest is chosen, and its name kept in a file for other
// processes. Cost: a look-up for each call of a run; measuring takes four runs
// of each plan.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Calls.h"

#include "whale/ProgramFormat/Limits.h"
#include "whale/System/Json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace whale::runtime {

namespace cuda {

/// Whether a library of the GPU has it; the processor computes others.
static bool isGpuCall(const std::string &function) {
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

std::optional<int64_t> workspaceOf(const std::string &function,
                                   const std::vector<LibraryTensor> &inputs,
                                   const std::vector<LibraryTensor> &outputs) {
  if (!isGpuCall(function))
    return std::nullopt;
  if (function.starts_with("fused_attention"))
    return 0;
  if (function == "fft")
    return workspaceOfFft(inputs.front(), outputs.front());
  if (function == "triangular_solve" || function == "lapack.trsm")
    return workspaceOfSystem;
  return workspaceOfLapack(inputs, outputs);
}

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
    create(openSolver(gpu.libraries).create, &solverHandle);
  return solverHandle;
}

TriangularHandle CallContext::triangles() {
  if (!triangularHandle)
    create(openBlas(gpu.libraries).create, &triangularHandle);
  return triangularHandle;
}

DnnHandle CallContext::dnn() {
  if (!dnnHandle)
    create(openDnn(gpu.libraries).create, &dnnHandle);
  return dnnHandle;
}

void CallContext::check(const char *function, int status) const {
  if (status)
    throw Error(gpu.name() + ": " + function + ": status " +
                std::to_string(status));
}

/// The plan that takes the least time, or the one that took it when that was
/// measured before.
static std::shared_ptr<const DnnPlan>
choose(CallContext &context, const DnnConvolution &convolution,
       const Choices &choices, const DnnPlans &plans,
       const std::function<void(const DnnPlan &)> &run) {
  const Gpu &gpu = context.gpu;
  // Nobody waits for other ranks while others wait for the file.
  gpu.synchronize(gpu.compute);
  context.stream = gpu.compute;
  std::string key =
      gpu.model() + ", " + std::to_string(gpu.multiprocessors()) +
      " multiprocessors, cuDNN " +
      std::to_string(openDnn(gpu.libraries).getVersion.function()) + ", " +
      std::to_string(context.workspaceBytes) +
      " bytes: " + describe(convolution);
  std::string best = choices.find(key, [&] {
    std::map<double, std::string> names;
    for (const auto &plan : plans)
      try {
        names.emplace(gpu.seconds(gpu.compute, [&] { run(*plan); }),
                      plan->name());
      } catch (const Error &) {
        // Others may do it.
        if (plan == plans.back() && names.empty())
          throw;
      }
    return names.begin()->second;
  });
  auto it = std::ranges::find(plans, best,
                              [](const auto &plan) { return plan->name(); });
  if (it == plans.end())
    throw Error(choices.path + " (WHALE_CUDA_CHOICES) names '" + best +
                "', which cuDNN does not offer for '" + key + "'");
  return *it;
}

GpuCall leaveToProcessor(const std::string &why) {
  GpuCall call;
  call.algorithm += ", as " + why;
  return call;
}

GpuCall prepareGpuConvolution(CallContext &context,
                              const DnnConvolution &convolution,
                              const Choices &choices,
                              std::span<void *const> inputs,
                              std::span<void *const> outputs) {
  const Dnn &dnn = openDnn(context.gpu.libraries);
  DnnHandle handle = context.dnn();
  constexpr size_t mostMeasured = 12;
  DnnPlans plans =
      findConvolutionPlans(dnn, convolution, {handle}, context.workspaceBytes,
                           choices.areMeasured() ? mostMeasured : 1);
  if (plans.empty())
    return leaveToProcessor(
        "cuDNN " + std::to_string(dnn.getVersion.function()) +
        " has no plan within " + std::to_string(context.workspaceBytes) +
        " bytes of workspace: " + lastErrorOf(dnn));
  auto [lhs, rhs, out] = tensorNumbers(convolution);
  auto run = [=, &context, &dnn](const DnnPlan &plan,
                                 std::span<void *const> inputs,
                                 std::span<void *const> outputs) {
    context.call(dnn.setStream, handle, context.stream);
    plan.run(context.gpu, handle,
             {{lhs, inputs[0]}, {rhs, inputs[1]}, {out, outputs[0]}},
             context.workspace);
  };
  std::shared_ptr<const DnnPlan> plan = plans.front();
  if (choices.areMeasured())
    plan = choose(context, convolution, choices, plans,
                  [&](const DnnPlan &plan) { run(plan, inputs, outputs); });
  GpuCall call;
  call.algorithm = "cuDNN " + plan->name();
  call.workspaceBytes = plan->workspaceBytes();
  call.run = [=](std::span<void *const> inputs,
                 std::span<void *const> outputs) {
    run(*plan, inputs, outputs);
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
  return leaveToProcessor(
      call.algorithm + " takes " + std::to_string(call.workspaceBytes) +
      " bytes of workspace where " + std::to_string(planned) + " are planned");
}

static GpuCall prepare(CallContext &context, const Call &call) {
  bool isEmpty =
      std::ranges::any_of(call.bytes, [](int64_t bytes) { return bytes == 0; });
  if (isEmpty || !isGpuCall(call.given->function))
    return {};
  const std::string &function = call.given->function;
  auto outputs =
      call.tensors.begin() + static_cast<std::ptrdiff_t>(call.inputs.size());
  nlohmann::json config = system::parseJson<nlohmann::json>(call.given->config);
  LibraryRequest request{{call.tensors.begin(), outputs},
                         {outputs, call.tensors.end()},
                         config,
                         {}};
  if (function.starts_with("fused_attention"))
    return prepareGpuAttention(context, request, context.workspaceBytes,
                               function == "fused_attention_gradient");
  if (function == "fft")
    return withinPlan(prepareGpuFft(context, request), context.workspaceBytes);
  if (function == "triangular_solve" || function == "lapack.trsm")
    return withinPlan(prepareGpuSystem(context, function, request),
                      context.workspaceBytes);
  return withinPlan(prepareGpuLapack(context, function, request),
                    context.workspaceBytes);
}

const GpuCall *Calls::find(const void *op,
                           const std::function<GpuCall()> &prepare) {
  auto it = prepared.find(op);
  if (it == prepared.end())
    it = prepared.emplace(op, prepare()).first;
  return it->second.run ? &it->second : nullptr;
}

GpuCall Calls::findAlike(const std::string &text,
                         const std::function<GpuCall()> &prepare) {
  auto it = alike.find(text);
  if (it == alike.end())
    it = alike.emplace(text, prepare()).first;
  return it->second;
}

const GpuCall *Calls::find(const Call &call) {
  return find(&call, [&]() -> GpuCall {
    if (!call.given)
      return {};
    return findAlike(describe(call), [&] { return prepare(context, call); });
  });
}

const GpuCall *Calls::find(const Convolution &convolution,
                           std::span<void *const> inputs,
                           std::span<void *const> outputs) {
  return find(&convolution, [&]() -> GpuCall {
    std::optional<DnnConvolution> described = describeForDnn(convolution);
    if (!described)
      return {};
    return findAlike(describe(*described), [&] {
      return prepareGpuConvolution(context, *described, choices, inputs,
                                   outputs);
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
