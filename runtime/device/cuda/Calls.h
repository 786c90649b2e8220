//===- Calls.h - Library calls that a GPU computes --------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CUDA_CALLS_H
#define WHALE_RUNTIME_DEVICE_CUDA_CALLS_H

#include "cuda/Gpu.h"
#include "device/cuda/Choices.h"
#include "device/cuda/Convolutions.h"
#include "library/Library.h"
#include "program/BoundProgram.h"

#include <functional>
#include <optional>
#include <unordered_map>

namespace whale::runtime::cuda {

/// Where calls run. Handles of libraries are made when first asked for, which
/// must not be during a capture; they throw Error where a library is missing.
class CallContext {
public:
  explicit CallContext(const Gpu &gpu) : gpu(gpu) {}
  ~CallContext();
  CallContext(const CallContext &) = delete;
  CallContext &operator=(const CallContext &) = delete;

  SolverHandle solver();
  TriangularHandle triangles();
  DnnHandle dnn();

  /// For statuses of libraries that have no text for them.
  void check(const char *function, int status) const;
  template <typename... Parameters, typename... Arguments>
  void call(const system::Entry<int(Parameters...)> &entry,
            Arguments... arguments) const {
    check(entry.symbol, entry.function(arguments...));
  }

  const Gpu &gpu;
  /// Of the call that is being put on the stream.
  Stream stream = nullptr;
  /// What calls may use, one after the other.
  void *workspace = nullptr;
  int64_t workspaceBytes = 0;

private:
  template <typename Entry, typename Handle>
  void create(const Entry &entry, Handle *handle) const {
    check(entry.symbol, gpu.tryLibrary(entry, handle));
  }

  SolverHandle solverHandle = nullptr;
  TriangularHandle triangularHandle = nullptr;
  DnnHandle dnnHandle = nullptr;
};

/// A call made ready: `run` puts it on the stream of its context, and is empty
/// where the processor computes it.
struct GpuCall {
  LibraryFunction run;
  /// Which library, and what it has chosen.
  std::string algorithm = "processor";
  int64_t workspaceBytes = 0;
  /// Whether a CUDA graph may hold it.
  bool isRecordable = true;
};

/// What the processor computes, and profiles say why.
GpuCall leaveToProcessor(const std::string &why);

// `run` is empty where the GPU has nothing for these operands.
/// With `choices` that are measured, its operands are used for that.
GpuCall prepareGpuConvolution(CallContext &context,
                              const DnnConvolution &convolution,
                              const Choices &choices,
                              std::span<void *const> inputs,
                              std::span<void *const> outputs);
GpuCall prepareGpuAttention(CallContext &context, const LibraryRequest &request,
                            int64_t mostWorkspace, bool isGradient);
/// Why the processor computes the attention that a class leaves to cuDNN;
/// empty if it does not. Throws Error where the library is missing.
std::string findAttentionLack(const Gpu &gpu, const BoundClass &rankClass);
GpuCall prepareGpuFft(CallContext &context, const LibraryRequest &request);
GpuCall prepareGpuSystem(CallContext &context, const std::string &function,
                         const LibraryRequest &request);
GpuCall prepareGpuLapack(CallContext &context, const std::string &function,
                         const LibraryRequest &request);

// The most workspace that a library asks for, in bytes: of cuFFT as it is
// documented, of cuSOLVER some copies of its matrices.
int64_t workspaceOfFft(const LibraryTensor &input, const LibraryTensor &output);
int64_t workspaceOfLapack(const std::vector<LibraryTensor> &inputs,
                          const std::vector<LibraryTensor> &outputs);
/// What triangular systems get.
inline constexpr int64_t workspaceOfSystem = 4 << 20;
/// As Libraries::gpuWorkspace says.
std::optional<int64_t> workspaceOf(const std::string &function,
                                   const std::vector<LibraryTensor> &inputs,
                                   const std::vector<LibraryTensor> &outputs);

/// The calls and convolutions of a rank's program that cuDNN, cuFFT, cuSOLVER
/// and cuBLAS compute.
class Calls {
public:
  /// They use a workspace of so many bytes.
  Calls(const Gpu &gpu, int64_t workspaceBytes, const std::string &choices = "")
      : context(gpu), choices(choices) {
    context.workspaceBytes = workspaceBytes;
  }

  /// Before the first run, and whenever it is elsewhere.
  void setWorkspace(void *workspace) { context.workspace = workspace; }

  /// Null where the processor computes it. Throws Error where the library is
  /// missing.
  const GpuCall *find(const Call &call);
  const GpuCall *find(const Convolution &convolution,
                      std::span<void *const> inputs,
                      std::span<void *const> outputs);
  /// Of an operation that was found.
  std::string algorithmOf(const void *op) const {
    auto it = prepared.find(op);
    return it == prepared.end() ? "" : it->second.algorithm;
  }
  void run(const GpuCall &call, std::span<void *const> inputs,
           std::span<void *const> outputs, Stream stream);

private:
  CallContext context;
  const Choices choices;
  const GpuCall *find(const void *op, const std::function<GpuCall()> &prepare);
  GpuCall findAlike(const std::string &text,
                    const std::function<GpuCall()> &prepare);
  /// By the operation.
  std::unordered_map<const void *, GpuCall> prepared;
  /// By what operations say: plans of cuDNN take a while, and memory.
  std::unordered_map<std::string, GpuCall> alike;
};

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_DEVICE_CUDA_CALLS_H
