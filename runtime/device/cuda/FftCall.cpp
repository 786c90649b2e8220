//===- FftCall.cpp - Fourier transforms by cuFFT --------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/Calls.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace whale::runtime::cuda {

/// A plan of cuFFT.
struct PlannedFft {
  explicit PlannedFft(const Fft &fft) : fft(fft) {}
  ~PlannedFft() {
    if (hasPlan)
      fft.destroy.function(plan);
  }
  PlannedFft(const PlannedFft &) = delete;
  PlannedFft &operator=(const PlannedFft &) = delete;

  const Fft &fft;
  FftPlan plan = 0;
  bool hasPlan = false;
};

/// By the elements that a transform reads and writes.
static int kindOf(DType from, DType to) {
  switch (from) {
  case DType::F32:
    return kFftF32ToC64;
  case DType::F64:
    return kFftF64ToC128;
  case DType::C64:
    return to == DType::F32 ? kFftC64ToF32 : kFftC64;
  default:
    return to == DType::F64 ? kFftC128ToF64 : kFftC128;
  }
}

int64_t workspaceOfFft(const LibraryTensor &input,
                       const LibraryTensor &output) {
  constexpr int64_t small = 1 << 20;
  const LibraryTensor &larger =
      elementCount(input.shape) < elementCount(output.shape) ? output : input;
  bool isDouble = input.dtype == DType::F64 || input.dtype == DType::C128;
  int64_t bytes = elementCount(larger.shape) * (isDouble ? 16 : 8);
  // Eight times the numbers as complex ones at the most, which lengths with
  // large prime factors take.
  bool isSmooth = std::ranges::all_of(larger.shape, [](int64_t extent) {
    for (int64_t factor : {2, 3, 5, 7})
      while (extent > 1 && extent % factor == 0)
        extent /= factor;
    return extent <= 1;
  });
  // And a copy of what a transform to real numbers reads.
  return small + (1 + (isSmooth ? 2 : 8)) * bytes;
}

GpuCall prepareGpuFft(CallContext &context, const LibraryRequest &request) {
  prepareFft(request); // checks the operands
  const LibraryTensor &input = request.inputs[0], &output = request.outputs[0];
  auto planned = std::make_shared<PlannedFft>(openFft(context.gpu.libraries));
  const Fft &fft = planned->fft;
  auto lengths = request.config["length"].get<std::vector<long long>>();
  long long batch = 1;
  for (size_t i = 0; i + lengths.size() < input.shape.size(); ++i)
    batch *= input.shape[i];
  context.call(fft.create, &planned->plan);
  planned->hasPlan = true;
  context.call(fft.setAutoAllocation, planned->plan, 0);
  size_t workBytes = 0;
  long long *contiguous = nullptr;
  context.check(
      fft.makePlan.symbol,
      context.gpu.tryLibrary(
          fft.makePlan, planned->plan, static_cast<int>(lengths.size()),
          lengths.data(), contiguous, 1LL,
          static_cast<long long>(elementCount(input.shape)) / batch, contiguous,
          1LL, static_cast<long long>(elementCount(output.shape)) / batch,
          kindOf(input.dtype, output.dtype), batch, &workBytes));
  // Transforms to real numbers write to what they read: it is copied.
  bool toReal = output.dtype == DType::F32 || output.dtype == DType::F64;
  int64_t copied =
      toReal ? elementCount(input.shape) * byteSize(input.dtype) : 0;
  int64_t workOffset = (copied + 255) / 256 * 256;
  int direction = request.config["type"].get<std::string>().starts_with("I")
                      ? kFftInverse
                      : kFftForward;
  GpuCall call;
  call.algorithm = "cuFFT";
  call.workspaceBytes = workOffset + static_cast<int64_t>(workBytes);
  call.run = [&context, planned, copied, workOffset,
              direction](std::span<void *const> inputs,
                         std::span<void *const> outputs) {
    const Fft &fft = planned->fft;
    void *from = inputs[0];
    if (copied) {
      context.gpu.copy(context.workspace, from, copied, context.stream);
      from = context.workspace;
    }
    context.call(fft.setStream, planned->plan, context.stream);
    context.call(fft.setWorkArea, planned->plan,
                 static_cast<void *>(static_cast<char *>(context.workspace) +
                                     workOffset));
    context.call(fft.exec, planned->plan, from, outputs[0], direction);
  };
  return call;
}

} // namespace whale::runtime::cuda
