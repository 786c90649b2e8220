//===- AttentionCall.cpp - Calls of attention by cuDNN --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a library call of attention or its gradient, whose configuration names
// the dimensions of each tensor by letters. Out: a function that runs a plan of
// cuDNN: for all heads, or for some samples, or some heads of one, at a time
// where the workspace of all would be too much.
//
// Cost: preparing finds one plan (DnnPlans.cpp). A run puts one execution of it
// on the stream for each part, and makes a small map of addresses; where a
// gradient has several parts, the statistics of each, a number for each row,
// are copied first.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/AttentionGraphs.h"
#include "device/cuda/Calls.h"
#include "library/AttentionLayout.h"

#include <nlohmann/json.hpp>

#include <limits>

namespace whale::runtime::cuda {

using format::FusedAttention;

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
    format::AttentionCall::Tensor read{tensor.dtype, config.at(name),
                                       tensor.shape};
    if (auto view = findView(config, name)) {
      read.shape = view->shape;
      read.strides = view->strides;
      read.offset = view->offset;
    }
    return read;
  };
  call.inputs = {read(request.inputs[0], "query"),
                 read(request.inputs[1], "key"),
                 read(request.inputs[2], "value")};
  if (isGradient) {
    call.inputs.push_back(read(request.inputs[3], "cotangent"));
    call.inputs.push_back(read(request.inputs[4], "output"));
    call.results = {read(request.outputs[0], "query_result"),
                    read(request.outputs[1], "key_result"),
                    read(request.outputs[2], "value_result")};
  } else {
    call.results = {read(request.outputs[0], "result")};
  }
  return call;
}

/// Where tensors begin whose samples and heads are computed from these on.
struct AttentionPart {
  int64_t sample, head;

  void *of(void *data, const FusedAttention::Strides &strides,
           int64_t offset = 0) const {
    constexpr int64_t elementBytes = 2;
    return static_cast<char *>(data) +
           (offset + sample * strides[0] + head * strides[1]) * elementBytes;
  }
};

/// There is no plan for what the compiler has left to cuDNN.
[[noreturn]] static void fail(const Dnn &dnn) {
  size_t version = dnn.getVersion.function();
  throw Error("cuDNN " + std::to_string(version / 10000) + "." +
              std::to_string(version / 100 % 100) +
              " has no plan for attention (" + lastErrorOf(dnn) +
              "): it takes version 9.10 or later, which compiles kernels with "
              "libnvrtc (package cuda-nvrtc-13-x or cuda-nvrtc-12-x, or the "
              "Python package nvidia-cuda-nvrtc or nvidia-cuda-nvrtc-cu12); a "
              "program that is compiled with --gpu-arch=sm_75 needs none");
}

GpuCall prepareGpuAttention(CallContext &context, const LibraryRequest &request,
                            int64_t mostWorkspace, bool isGradient) {
  auto letters = request.config.value("statistics", std::string());
  if (letters.empty())
    return {};
  std::string why;
  std::optional<FusedAttention> attention = describeFused(
      readCall(request, isGradient), context.gpu.capability(), why);
  if (!attention || letters != attention->headLetters + 'q')
    return {};
  const Dnn &dnn = openDnn(context.gpu.libraries);
  DnnHandle handle = context.dnn();
  FusedAttention all = *attention,
                 part = format::choosePart(all, mostWorkspace);
  // Of the gradient, what it sums for each row, and statistics that would not
  // be aligned where they are.
  int64_t partRows = part.samples * part.heads * part.rows;
  int64_t rowBytes = partRows * int64_t(sizeof(float));
  bool isDivided = part.samples * part.heads < all.samples * all.heads;
  int64_t sumBytes = isGradient ? (rowBytes + 255) / 256 * 256 : 0;
  int64_t ownBytes = isDivided ? 2 * sumBytes : sumBytes;
  std::shared_ptr<const DnnPlan> plan =
      findAttentionPlan(dnn, part, {handle}, mostWorkspace - ownBytes);
  if (!plan)
    fail(dnn);
  struct Numbers {
    float one, scale, masked;
  };
  auto numbers =
      std::make_shared<const Numbers>(1.0f, static_cast<float>(all.scale),
                                      -std::numeric_limits<float>::infinity());
  auto run = [=, &context](const AttentionPart &here,
                           std::span<void *const> inputs,
                           std::span<void *const> outputs) {
    char *own = static_cast<char *>(context.workspace);
    auto statistics = [&](void *data) -> void * {
      if (!isDivided)
        return data;
      int64_t row = (here.sample * all.heads + here.head) * all.rows;
      context.gpu.copy(own + sumBytes, static_cast<float *>(data) + row,
                       rowBytes, context.stream);
      return own + sumBytes;
    };
    std::map<int64_t, const void *> memory = {
        {kAttentionQuery, here.of(inputs[0], all.inputs[0], all.offsets[0])},
        {kAttentionKey, here.of(inputs[1], all.inputs[1], all.offsets[1])},
        {kAttentionValue, here.of(inputs[2], all.inputs[2], all.offsets[2])},
        {kAttentionScale, &numbers->scale}};
    if (all.isCausal)
      memory[kAttentionMasked] = &numbers->masked;
    if (isGradient)
      memory.insert(
          {{kAttentionCotangent,
            here.of(inputs[3], all.inputs[3], all.offsets[3])},
           {kAttentionOutput,
            here.of(inputs[4], all.inputs[4], all.offsets[4])},
           {kAttentionStatistics, statistics(inputs[5])},
           {kAttentionSums, own},
           {kAttentionOne, &numbers->one},
           {kAttentionQueryCotangent, here.of(outputs[0], all.results[0])},
           {kAttentionKeyCotangent, here.of(outputs[1], all.results[1])},
           {kAttentionValueCotangent, here.of(outputs[2], all.results[2])}});
    else
      memory.insert({{kAttentionOutput, here.of(outputs[0], all.results[0])},
                     {kAttentionStatistics, statistics(outputs[1])}});
    plan->run(handle, memory, own + ownBytes);
  };
  GpuCall call;
  call.algorithm = "cuDNN " + plan->name();
  call.workspaceBytes = ownBytes + plan->workspaceBytes();
  call.run = [=, &context, &dnn](std::span<void *const> inputs,
                                 std::span<void *const> outputs) {
    context.call(dnn.setStream, handle, context.stream);
    for (int64_t sample = 0; sample < all.samples; sample += part.samples)
      for (int64_t head = 0; head < all.heads; head += part.heads)
        run({sample, head}, inputs, outputs);
  };
  return call;
}

} // namespace whale::runtime::cuda
