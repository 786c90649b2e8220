//===- Fft.cpp - The functions of cuFFT of a test machine -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the calls of cuFFT that device/cuda makes. Out: a transform, as an
// operation of the stream, that the library functions of the processor compute.
// A fault for what cuFFT refuses or leaves undefined: a plan that is made
// during a capture, an execution without a work area, data that is not aligned.
// The input of a transform to real numbers is overwritten, since cuFFT may.
//
// Cost: the transform on the processor, under the machine's lock, and writing
// over the input of one to real numbers.
//
//===----------------------------------------------------------------------===//

#include "cuda/Gpu.h"
#include "cuda/test/DriverCalls.h"
#include "library/Library.h"

#include <nlohmann/json.hpp>

#include <cstring>

namespace whale::runtime::cuda::test {
namespace {

struct Plan {
  Shape lengths;
  int type = 0;
  int64_t batch = 0;
  bool allocates = true;
  void *work = nullptr;
  Stream stream = nullptr;
};

constexpr size_t workBytes = 512;

/// Under the machine's lock.
std::map<FftPlan, Plan> &plans() {
  static std::map<FftPlan, Plan> all;
  return all;
}

FftStatus fail(const std::string &what) {
  return Machine::get().fault(currentGpu(), "cuFFT: " + what, kFftInvalidValue);
}

FftStatus create(FftPlan *plan) {
  Lock lock(Machine::get().mutex);
  static FftPlan next = 1;
  plans()[ *plan = next++] = {};
  return 0;
}
FftStatus destroy(FftPlan plan) {
  Lock lock(Machine::get().mutex);
  return plans().erase(plan) ? 0 : kFftInvalidValue;
}
FftStatus setAutoAllocation(FftPlan plan, int allocates) {
  Lock lock(Machine::get().mutex);
  plans().at(plan).allocates = allocates != 0;
  return 0;
}
FftStatus makePlan(FftPlan plan, int rank, long long *lengths, long long *,
                   long long, long long, long long *, long long, long long,
                   int type, long long batch, size_t *bytes) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (machine.isCapturing(currentGpu()))
    return fail("a plan is made during a capture");
  if (rank < 1 || rank > 3)
    return fail("a transform of " + std::to_string(rank) + " dimensions");
  Plan &made = plans().at(plan);
  made.lengths.assign(lengths, lengths + rank);
  made.type = type;
  made.batch = batch;
  *bytes = workBytes;
  return 0;
}
FftStatus setWorkArea(FftPlan plan, void *work) {
  Lock lock(Machine::get().mutex);
  plans().at(plan).work = work;
  return 0;
}
FftStatus setStream(FftPlan plan, Stream stream) {
  Lock lock(Machine::get().mutex);
  plans().at(plan).stream = stream;
  return 0;
}

/// The elements that a transform reads and writes.
std::pair<DType, DType> elementsOf(int type) {
  switch (type) {
  case kFftF32ToC64:
    return {DType::F32, DType::C64};
  case kFftF64ToC128:
    return {DType::F64, DType::C128};
  case kFftC64ToF32:
    return {DType::C64, DType::F32};
  case kFftC128ToF64:
    return {DType::C128, DType::F64};
  case kFftC64:
    return {DType::C64, DType::C64};
  default:
    return {DType::C128, DType::C128};
  }
}

FftStatus exec(FftPlan number, void *from, void *to, int direction) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (machine.gpus[currentGpu()].error)
    return kFftExecFailed;
  const Plan &plan = plans().at(number);
  auto stream = machine.streams.find(plan.stream);
  if (stream == machine.streams.end())
    return fail("an unknown stream");
  if (plan.allocates || !plan.work)
    return fail("the plan has no work area");
  auto [read, written] = elementsOf(plan.type);
  bool isToReal = byteSize(written) < byteSize(read);
  bool isFromReal = byteSize(read) < byteSize(written);
  int64_t alignment = std::max(byteSize(read), byteSize(written));
  for (void *data : {from, to})
    if (addressOf(data) % static_cast<Address>(alignment))
      return fail("data is not aligned to a complex number");
  if (isToReal && direction != kFftInverse)
    return fail("a transform to real numbers goes forward");
  Shape whole = {plan.batch}, half;
  whole.insert(whole.end(), plan.lengths.begin(), plan.lengths.end());
  half = whole;
  half.back() = half.back() / 2 + 1;
  nlohmann::json config;
  config["length"] = plan.lengths;
  config["type"] = isFromReal                 ? "RFFT"
                   : isToReal                 ? "IRFFT"
                   : direction == kFftForward ? "FFT"
                                              : "IFFT";
  LibraryTensor input{read, isToReal ? half : whole},
      output{written, isFromReal ? half : whole};
  int64_t inputBytes = elementCount(input.shape) * byteSize(read),
          outputBytes = elementCount(output.shape) * byteSize(written);
  LibraryFunction transform = prepareFft({{input}, {output}, config, {}});
  machine.put(*stream->second,
              {"a transform",
               {{addressOf(from), inputBytes, isToReal},
                {addressOf(to), outputBytes, true},
                {addressOf(plan.work), int64_t(workBytes), true}},
               [=] {
                 void *in[] = {from}, *out[] = {to};
                 transform(in, out);
                 // What it leaves there is not defined.
                 if (isToReal)
                   std::memset(from, 0xff, static_cast<size_t>(inputBytes));
               }});
  return machine.gpus[currentGpu()].error ? kFftExecFailed : 0;
}

} // namespace

void fillFft(Fft &fft) {
#define WHALE_CUDA_FILL_FFT(member, ...) fft.member.function = member;
  WHALE_CUDA_FFT_FUNCTIONS(WHALE_CUDA_FILL_FFT)
}

} // namespace whale::runtime::cuda::test
