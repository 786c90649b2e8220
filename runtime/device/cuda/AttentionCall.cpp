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
// cuDNN: for all heads, or, where the workspace of all would be too much, for
// some samples, some heads of keys of one with the heads of queries that share
// them, or one head of queries at a time. Heads of queries that share a head of
// keys and are computed apart give cotangents of it in bf16, as within cuDNN,
// which a kernel adds up in f32 and in their order. Where cuDNN has no plan, as
// an older one, the processor computes the call, and profiles say why.
//
// Cost: preparing finds one plan (DnnPlans.cpp). A run puts one execution of it
// on the stream for each part, and makes a small map of addresses; where a
// gradient has several parts, the statistics of each, a number for each row,
// are copied first.
//
//===----------------------------------------------------------------------===//

#include "cuda/BoxKernels.h"
#include "device/cuda/AttentionGraphs.h"
#include "device/cuda/Calls.h"
#include "library/AttentionLayout.h"

#include <nlohmann/json.hpp>

#include <algorithm>
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
  int64_t sample, head, keyHead;

  static void *at(void *data, int64_t element) {
    constexpr int64_t elementBytes = 2;
    return static_cast<char *>(data) + element * elementBytes;
  }
  /// In queries, results and their cotangents.
  void *of(void *data, const FusedAttention::Strides &strides,
           int64_t offset = 0) const {
    return at(data, offset + sample * strides[0] + head * strides[1]);
  }
  /// In keys, values and theirs.
  void *ofKeys(void *data, const FusedAttention::Strides &strides,
               int64_t offset = 0) const {
    return at(data, offset + sample * strides[0] + keyHead * strides[1]);
  }
};

namespace {

/// A call that is made ready: what is computed at a time, and where in the
/// workspace lies what is not cuDNN's own.
class PreparedAttention {
public:
  PreparedAttention(CallContext &context, FusedAttention whole,
                    FusedAttention each)
      : context(context), dnn(openDnn(context.gpu.libraries)),
        handle(context.dnn()), all(std::move(whole)), part(std::move(each)),
        sums(context.gpu) {
    numbers.scale = static_cast<float>(all.scale);
    // Of the gradient, what it sums for each row, and statistics that would not
    // be aligned where they are.
    rowBytes = part.samples * part.heads * part.rows * int64_t(sizeof(float));
    isDivided = part.samples * part.heads < all.samples * all.heads;
    sumBytes = all.isGradient ? aligned(rowBytes) : 0;
    partialsAt = isDivided ? 2 * sumBytes : sumBytes;
    ownBytes = partialsAt + aligned(format::findPartialBytes(part));
    if (part.keyParts > 1)
      sums.prepare(DType::BF16, Reduction::Sum);
  }

  /// False where cuDNN has no plan that takes `mostWorkspace` in all.
  bool findPlan(int64_t mostWorkspace) {
    plan = findAttentionPlan(dnn, part, {handle}, mostWorkspace - ownBytes);
    return plan != nullptr;
  }
  std::string name() const { return plan->name(); }
  int64_t workspaceBytes() const { return ownBytes + plan->workspaceBytes(); }

  void run(std::span<void *const> inputs, std::span<void *const> outputs) {
    context.call(dnn.setStream, handle, context.stream);
    int64_t sharing = all.heads / all.keyHeads;
    for (int64_t sample = 0; sample < all.samples; sample += part.samples)
      for (int64_t head = 0; head < all.heads; head += part.heads) {
        AttentionPart here{sample, head, head / sharing};
        run(here, head % sharing, inputs, outputs);
        if (part.keyParts > 1 && head % sharing == sharing - 1)
          sum(here, outputs);
      }
  }

private:
  static int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }
  /// Of the cotangents of keys (0) or values (1) that the parts have given.
  void *partial(int64_t which, int64_t number) const {
    int64_t one = part.keys * part.features;
    return AttentionPart::at(static_cast<char *>(context.workspace) +
                                 partialsAt,
                             (which * part.keyParts + number) * one);
  }
  void run(const AttentionPart &here, int64_t number,
           std::span<void *const> inputs, std::span<void *const> outputs) const;
  void sum(const AttentionPart &here, std::span<void *const> outputs);

  CallContext &context;
  const Dnn &dnn;
  const DnnHandle handle;
  const FusedAttention all, part;
  struct {
    float one = 1, scale = 1;
    float masked = -std::numeric_limits<float>::infinity();
  } numbers;
  int64_t rowBytes = 0, sumBytes = 0, partialsAt = 0, ownBytes = 0;
  bool isDivided = false;
  std::shared_ptr<const DnnPlan> plan;
  BoxKernels sums;
};

/// `number`: of the parts that share a head of keys.
void PreparedAttention::run(const AttentionPart &here, int64_t number,
                            std::span<void *const> inputs,
                            std::span<void *const> outputs) const {
  char *own = static_cast<char *>(context.workspace);
  auto statistics = [&](void *data) -> void * {
    if (!isDivided)
      return data;
    int64_t row = (here.sample * all.heads + here.head) * all.rows;
    context.gpu.copy(own + sumBytes, static_cast<float *>(data) + row, rowBytes,
                     context.stream);
    return own + sumBytes;
  };
  auto ofKeys = [&](int64_t which) {
    return part.keyParts > 1
               ? partial(which, number)
               : here.ofKeys(outputs[1 + which], all.results[1 + which]);
  };
  std::map<int64_t, const void *> memory = {
      {kAttentionQuery, here.of(inputs[0], all.inputs[0], all.offsets[0])},
      {kAttentionKey, here.ofKeys(inputs[1], all.inputs[1], all.offsets[1])},
      {kAttentionValue, here.ofKeys(inputs[2], all.inputs[2], all.offsets[2])},
      {kAttentionScale, &numbers.scale}};
  if (all.isCausal)
    memory[kAttentionMasked] = &numbers.masked;
  if (all.isGradient)
    memory.insert(
        {{kAttentionCotangent,
          here.of(inputs[3], all.inputs[3], all.offsets[3])},
         {kAttentionOutput, here.of(inputs[4], all.inputs[4], all.offsets[4])},
         {kAttentionStatistics, statistics(inputs[5])},
         {kAttentionSums, own},
         {kAttentionOne, &numbers.one},
         {kAttentionQueryCotangent, here.of(outputs[0], all.results[0])},
         {kAttentionKeyCotangent, ofKeys(0)},
         {kAttentionValueCotangent, ofKeys(1)}});
  else
    memory.insert({{kAttentionOutput, here.of(outputs[0], all.results[0])},
                   {kAttentionStatistics, statistics(outputs[1])}});
  plan->run(context.gpu, handle, memory, own + ownBytes);
}

/// Adds up the cotangents of a head of keys and values, in the order of the
/// heads of queries.
void PreparedAttention::sum(const AttentionPart &here,
                            std::span<void *const> outputs) {
  const Shape size = {part.keys, part.features}, start = {0, 0};
  for (int64_t which : {0, 1}) {
    std::vector<BoxSource> sources;
    for (int64_t number = 0; number < part.keyParts; ++number)
      sources.push_back({partial(which, number), &size, &start});
    const FusedAttention::Strides &strides = all.results[1 + which];
    sums.run(DType::BF16, Reduction::Sum,
             here.ofKeys(outputs[1 + which], strides), {part.keys, strides[2]},
             start, size, sources, context.stream);
  }
}

} // namespace

/// "9.19" for 91900.
static std::string versionOf(size_t version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100);
}

/// Why what the compiler has left to cuDNN is computed by the processor.
static std::string describeLack(const Dnn &dnn) {
  return "cuDNN " + versionOf(dnn.getVersion.function()) +
         " has no plan for attention (" + lastErrorOf(dnn) +
         "): it takes version 9.10 or later, which compiles kernels with "
         "libnvrtc (package cuda-nvrtc-13-x or cuda-nvrtc-12-x, or the Python "
         "package nvidia-cuda-nvrtc or nvidia-cuda-nvrtc-cu12)";
}

static bool hasFusedAttention(const std::vector<Instruction> &instructions) {
  return std::ranges::any_of(instructions, [](const Instruction &instruction) {
    const auto &operation = instruction.operation;
    if (const auto *call = std::get_if<Call>(&operation))
      return call->given && call->given->function.starts_with("fused_");
    if (const auto *loop = std::get_if<While>(&operation))
      return hasFusedAttention(loop->cond) || hasFusedAttention(loop->body);
    const auto *choice = std::get_if<Case>(&operation);
    return choice && std::ranges::any_of(choice->branches, hasFusedAttention);
  });
}

std::string findAttentionLack(const Gpu &gpu, const BoundClass &rankClass) {
  bool isUsed = hasFusedAttention(rankClass.instructions);
  for (const auto &[number, function] : rankClass.functions)
    isUsed |= hasFusedAttention(function.instructions);
  if (!isUsed)
    return "";
  constexpr size_t least = 91000;
  size_t version = openDnn(gpu.libraries).getVersion.function();
  return version >= least
             ? ""
             : gpu.name() +
                   ": the processor computes the attention that the "
                   "program leaves to cuDNN, as cuDNN " +
                   versionOf(version) +
                   " has none like it: install version 9.10 or later";
}

GpuCall prepareGpuAttention(CallContext &context, const LibraryRequest &request,
                            int64_t mostWorkspace, bool isGradient) {
  auto letters = request.config.value("statistics", std::string());
  if (letters.empty())
    return {};
  std::string why;
  std::optional<FusedAttention> attention =
      describeFused(readCall(request, isGradient),
                    {context.gpu.capability(), mostWorkspace}, why);
  if (!attention || letters != attention->headLetters + 'q')
    return leaveToProcessor(why);
  auto prepared = std::make_shared<PreparedAttention>(
      context, *attention, *format::choosePart(*attention, mostWorkspace));
  if (!prepared->findPlan(mostWorkspace))
    return leaveToProcessor(describeLack(openDnn(context.gpu.libraries)));
  GpuCall call;
  call.algorithm = "cuDNN " + prepared->name();
  call.workspaceBytes = prepared->workspaceBytes();
  call.run = [prepared](std::span<void *const> inputs,
                        std::span<void *const> outputs) {
    prepared->run(inputs, outputs);
  };
  return call;
}

} // namespace whale::runtime::cuda
