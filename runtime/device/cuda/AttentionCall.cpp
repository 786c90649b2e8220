//===- AttentionCall.cpp - Calls of attention by cuDNN --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call becomes a plan, or for a gradient two: the first one computes output
// and statistics anew, into workspace. Where the workspace of all samples would
// be too much, plans are for some samples, or some heads of one, at a time.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/AttentionGraphs.h"
#include "device/cuda/Calls.h"

#include <nlohmann/json.hpp>

#include <limits>

namespace whale::runtime::cuda {

using format::FusedAttention;
using Strides = FusedAttention::Strides;

static format::AttentionCall readCall(const LibraryRequest &request,
                                      bool isGradient) {
  const nlohmann::json &config = request.config;
  format::AttentionCall call;
  call.isGradient = isGradient;
  call.hasMask = config.contains("mask");
  call.hasBias = config.contains("bias");
  call.scale = config.value("scale", 1.0);
  if (config.contains("fill"))
    call.fill = config["fill"].get<double>();
  if (config.contains("causal"))
    call.causal = config["causal"].get<int64_t>();
  auto read = [&](const LibraryTensor &tensor, const char *name) {
    return format::AttentionCall::Tensor{tensor.dtype, config.at(name),
                                         tensor.shape};
  };
  call.inputs = {read(request.inputs[0], "query"),
                 read(request.inputs[1], "key"),
                 read(request.inputs[2], "value")};
  if (isGradient) {
    call.inputs.push_back(read(request.inputs.back(), "cotangent"));
    call.results = {read(request.outputs[0], "query_result"),
                    read(request.outputs[1], "key_result"),
                    read(request.outputs[2], "value_result")};
  } else {
    call.results = {read(request.outputs[0], "result")};
  }
  return call;
}

namespace {

/// What a call runs.
class AttentionPlans {
public:
  /// False where cuDNN has no plan.
  bool find(const Dnn &dnn, FusedAttention attention, DnnHandle handle,
            int64_t mostWorkspace);
  void run(DnnHandle handle, std::span<void *const> inputs,
           std::span<void *const> outputs, void *workspace) const;

  int64_t workspaceBytes() const { return planBytes + ownBytes(); }
  std::string algorithm() const;

private:
  using Memory = std::map<int64_t, const void *>;

  /// Where the output of the first plan is, of a gradient.
  Strides denseOutput() const {
    return {part.heads * part.rows * part.features, part.rows * part.features,
            part.features};
  }
  int64_t outputBytes() const {
    return attention.isGradient ? alignedBytes(2 * part.features) : 0;
  }
  int64_t ownBytes() const {
    return outputBytes() + alignedBytes(4) * (attention.isGradient ? 2 : 1);
  }
  /// For each row of a part so many bytes.
  int64_t alignedBytes(int64_t each) const {
    constexpr int64_t alignment = 256;
    int64_t bytes = part.samples * part.heads * part.rows * each;
    return (bytes + alignment - 1) / alignment * alignment;
  }

  /// All, and what is computed at a time.
  FusedAttention attention, part;
  std::shared_ptr<const DnnPlan> forward, gradient;
  int64_t planBytes = 0;
  float one = 1, scale = 1, masked = -std::numeric_limits<float>::infinity();
};

} // namespace

bool AttentionPlans::find(const Dnn &dnn, FusedAttention given,
                          DnnHandle handle, int64_t mostWorkspace) {
  attention = std::move(given);
  scale = static_cast<float>(attention.scale);
  // A gradient keeps two bytes of each pair of a row and a key, of whole tiles.
  auto pad = [](int64_t lines) { return (lines + 127) / 128 * 128; };
  int64_t pairs =
      attention.isGradient ? pad(attention.rows) * pad(attention.keys) * 2 : 0;
  part = attention;
  auto isModest = [&] {
    return part.samples * part.heads * pairs + ownBytes() +
               (int64_t(1) << 20) <=
           mostWorkspace;
  };
  auto divide = [&](int64_t &extent, int64_t all) {
    for (int64_t count = 1; count <= all && !isModest(); ++count)
      if (all % count == 0)
        extent = all / count;
  };
  divide(part.samples, attention.samples);
  if (attention.heads == attention.keyHeads)
    divide(part.heads, attention.heads);
  part.keyHeads = std::min(part.keyHeads, part.heads);
  int64_t most = mostWorkspace - ownBytes();
  DnnWhere where{handle};
  Strides output = attention.isGradient ? denseOutput() : part.results[0];
  forward = findForwardPlan(dnn, part, output, where, most);
  if (!forward)
    return false;
  planBytes = forward->workspaceBytes();
  if (attention.isGradient) {
    gradient = findGradientPlan(dnn, part, output, where, most);
    if (!gradient)
      return false;
    planBytes = std::max(planBytes, gradient->workspaceBytes());
  }
  planBytes = (planBytes + 255) / 256 * 256;
  return true;
}

std::string AttentionPlans::algorithm() const {
  std::string text = "cuDNN engine " + std::to_string(forward->engine());
  if (gradient)
    text += " and " + std::to_string(gradient->engine());
  return text;
}

void AttentionPlans::run(DnnHandle handle, std::span<void *const> inputs,
                         std::span<void *const> outputs,
                         void *workspace) const {
  char *own = static_cast<char *>(workspace) + planBytes;
  Memory fixed = {{kAttentionOne, &one}, {kAttentionScale, &scale}};
  if (attention.isCausal)
    fixed[kAttentionMasked] = &masked;
  fixed[kAttentionStatistics] = own + outputBytes();
  for (int64_t sample = 0; sample < attention.samples; sample += part.samples)
    for (int64_t head = 0; head < attention.heads; head += part.heads) {
      auto at = [&](void *data, const Strides &strides) {
        constexpr int64_t elementBytes = 2;
        return static_cast<char *>(data) +
               (sample * strides[0] + head * strides[1]) * elementBytes;
      };
      Memory memory = fixed;
      memory[kAttentionQuery] = at(inputs[0], attention.inputs[0]);
      memory[kAttentionKey] = at(inputs[1], attention.inputs[1]);
      memory[kAttentionValue] = at(inputs[2], attention.inputs[2]);
      memory[kAttentionOutput] =
          gradient ? own : at(outputs[0], attention.results[0]);
      Memory first = memory;
      first.erase(kAttentionOne);
      forward->run(handle, first, workspace);
      if (!gradient)
        continue;
      memory[kAttentionCotangent] = at(inputs[3], attention.inputs[3]);
      memory[kAttentionSums] = own + outputBytes() + alignedBytes(4);
      memory[kAttentionQueryCotangent] = at(outputs[0], attention.results[0]);
      memory[kAttentionKeyCotangent] = at(outputs[1], attention.results[1]);
      memory[kAttentionValueCotangent] = at(outputs[2], attention.results[2]);
      gradient->run(handle, memory, workspace);
    }
}

GpuCall prepareGpuAttention(CallContext &context, const LibraryRequest &request,
                            int64_t mostWorkspace, bool isGradient) {
  std::string why;
  std::optional<FusedAttention> attention = describeFused(
      readCall(request, isGradient), context.gpu.capability(), why);
  if (!attention)
    return {};
  const Dnn &dnn = openDnn(context.gpu.libraries);
  DnnHandle handle = context.dnn();
  auto plans = std::make_shared<AttentionPlans>();
  if (!plans->find(dnn, *attention, handle, mostWorkspace))
    return {};
  GpuCall call;
  call.algorithm = plans->algorithm();
  call.workspaceBytes = plans->workspaceBytes();
  call.run = [&context, &dnn, handle, plans](std::span<void *const> inputs,
                                             std::span<void *const> outputs) {
    context.call(dnn.setStream, handle, context.stream);
    plans->run(handle, inputs, outputs, context.workspace);
  };
  return call;
}

} // namespace whale::runtime::cuda
