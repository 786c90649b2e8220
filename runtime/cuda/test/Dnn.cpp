//===- Dnn.cpp - The functions of cuDNN of a test machine -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In come descriptors, which keep what is set; out goes an operation of a
// stream for each plan that is executed, computed by the definition: one loop
// nest for the convolution and both of its gradients; DnnGraph.h has other
// graphs. Heuristics name four engines: one that is not deterministic, one that
// rounds f32 to TF32, one that wants more workspace than there is, and one that
// is as it should be.
//
// Cost: a convolution is all multiplications of its definition, one after the
// other in f64, and a sum in f64 for each element of the result: meant for
// small tensors.
//
//===----------------------------------------------------------------------===//

#include "cuda/Gpu.h"
#include "cuda/test/DnnGraph.h"
#include "cuda/test/DriverCalls.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>

// What the library keeps to itself.
struct cudnnContext {
  whale::runtime::cuda::Stream stream = nullptr;
};

namespace whale::runtime::cuda::test {
namespace {

enum Engine : int64_t { Unstable, Rounding, Greedy, Exact };

DnnStatus fail(const std::string &what) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  return machine.fault(currentGpu(), "cuDNN: " + what, kDnnBadParameter);
}

size_t getVersion() { return 91900; }
const char *getErrorString(DnnStatus) { return "refused"; }
void getLastError(char *text, size_t bytes) {
  std::strncpy(text, Machine::get().lastFaultText(), bytes - 1);
}
DnnStatus create(DnnHandle *handle) {
  constexpr DnnStatus allocationFailed = 1003;
  if (!Machine::get().takeObject())
    return allocationFailed;
  *handle = new cudnnContext;
  return 0;
}
DnnStatus destroy(DnnHandle handle) {
  delete handle;
  Machine::get().giveObject();
  return 0;
}
DnnStatus setStream(DnnHandle handle, Stream stream) {
  handle->stream = stream;
  return 0;
}
DnnStatus createDescriptor(int type, DnnDescriptor *descriptor) {
  auto *made = new Descriptor;
  made->type = type;
  *descriptor = made;
  return 0;
}
DnnStatus destroyDescriptor(DnnDescriptor descriptor) {
  delete static_cast<Descriptor *>(descriptor);
  return 0;
}

size_t bytesOf(int type) {
  switch (type) {
  case kDnnOfText:
  case kDnnOfBoolean:
    return 1;
  case kDnnOfHandle:
  case kDnnOfInteger:
  case kDnnOfPointer:
  case kDnnOfDescriptor:
    return 8;
  default:
    return 4;
  }
}

DnnStatus setAttribute(DnnDescriptor given, int attribute, int type,
                       int64_t count, const void *values) {
  auto *descriptor = static_cast<Descriptor *>(given);
  if (descriptor->isFinal)
    return fail("an attribute is set behind finalize");
  const auto *bytes = static_cast<const uint8_t *>(values);
  descriptor->attributes[attribute].assign(
      bytes, bytes + static_cast<size_t>(count) * bytesOf(type));
  if (type == kDnnOfDescriptor)
    for (const Descriptor *other :
         descriptor->all<const Descriptor *>(attribute))
      if (!other || !other->isFinal)
        return fail("a descriptor that is not finalized");
  return 0;
}

/// Writes `values`, as many as fit.
template <typename T>
DnnStatus give(std::initializer_list<T> values, int64_t most, int64_t *count,
               void *to) {
  *count = static_cast<int64_t>(values.size());
  if (to)
    std::copy_n(values.begin(), std::min(most, *count), static_cast<T *>(to));
  return 0;
}

DnnStatus getAttribute(DnnDescriptor given, int attribute, int, int64_t most,
                       int64_t *count, void *to) {
  const auto &descriptor = *static_cast<const Descriptor *>(given);
  switch (attribute) {
  case kDnnHeuristicResults: {
    bool hasSome = descriptor.one<int>(kDnnHeuristicMode) == kDnnHeuristic &&
                   !Machine::get().options.hasNoEngines;
    *count = hasSome ? 4 : 0;
    for (int64_t i = 0; to && i < std::min(most, *count); ++i) {
      auto &config = *static_cast<Descriptor *const *>(to)[i];
      config.engine = i;
      config.isFinal = true;
      config.attributes = descriptor.attributes;
    }
    return 0;
  }
  case kDnnConfigEngine: {
    *count = 1;
    auto &engine = **static_cast<Descriptor *const *>(to);
    engine.engine = descriptor.engine;
    return 0;
  }
  case kDnnConfigKnobs:
    *count = 0;
    return 0;
  case kDnnEngineNotes:
    if (descriptor.engine == Unstable)
      return give<int>({kDnnNondeterministic}, most, count, to);
    if (descriptor.engine == Rounding)
      return give<int>({kDnnTensorCore}, most, count, to);
    return give<int>({}, most, count, to);
  case kDnnEngineNumber:
    return give<int64_t>({descriptor.engine}, most, count, to);
  case kDnnPlanWorkspace:
    return give<int64_t>(
        {descriptor.engine == Greedy ? int64_t(1) << 40 : int64_t(512)}, most,
        count, to);
  default:
    return fail("an attribute that is not there");
  }
}

DnnStatus finalize(DnnDescriptor given) {
  auto &descriptor = *static_cast<Descriptor *>(given);
  Machine &machine = Machine::get();
  {
    Lock lock(machine.mutex);
    if (machine.isCapturing(currentGpu()) && descriptor.type != kDnnVariantPack)
      return fail("a plan is made during a capture");
    machine.plans += descriptor.type == kDnnPlan;
  }
  if (descriptor.type == kDnnPlan)
    descriptor.engine = descriptor.descriptor(kDnnPlanConfig).engine;
  if (descriptor.type == kDnnConvolution)
    for (int attribute : {kDnnPaddingBefore, kDnnPaddingAfter})
      for (int64_t padding : descriptor.all<int64_t>(attribute))
        if (padding < 0)
          return fail("a negative padding");
  descriptor.isFinal = true;
  return 0;
}

/// With ten bits of fraction, to the nearest.
double toTf32(double value) {
  auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return std::bit_cast<float>((bits + (1u << 12)) & ~((1u << 13) - 1));
}

struct Work {
  int kind;
  Place x, w, y;
  std::vector<int64_t> before, after, strides, dilations;
  bool isFlipped, isRounded;

  const Place &result() const {
    return kind == kDnnForward ? y : kind == kDnnDataGradient ? x : w;
  }

  /// Calls `body` with the places of all x, w and y that belong together.
  template <typename Body>
  void forEach(Body body) const {
    int64_t groups = x.sizes[1] / w.sizes[1];
    int64_t outputs = w.sizes[0] / groups;
    for (int64_t n = 0; n < x.sizes[0]; ++n)
      for (int64_t k = 0; k < w.sizes[0]; ++k)
        for (int64_t c = 0; c < w.sizes[1]; ++c) {
          int64_t channel = k / outputs * w.sizes[1] + c;
          along(2, n * x.strides[0] + channel * x.strides[1],
                k * w.strides[0] + c * w.strides[1],
                n * y.strides[0] + k * y.strides[1], body);
        }
  }
  template <typename Body>
  void along(size_t dim, int64_t atX, int64_t atW, int64_t atY,
             const Body &body) const {
    if (dim == x.sizes.size())
      return body(atX, atW, atY);
    size_t i = dim - 2;
    for (int64_t p = 0; p < y.sizes[dim]; ++p)
      for (int64_t q = 0; q < w.sizes[dim]; ++q) {
        int64_t place = p * strides[i] + q * dilations[i] - before[i];
        if (place < 0 || place >= x.sizes[dim])
          continue;
        int64_t tap = isFlipped ? w.sizes[dim] - 1 - q : q;
        along(dim + 1, atX + place * x.strides[dim], atW + tap * w.strides[dim],
              atY + p * y.strides[dim], body);
      }
  }

  /// Whether there are as many windows as y has elements.
  bool isConsistent() const {
    for (size_t i = 0; i < after.size(); ++i) {
      int64_t padded = x.sizes[i + 2] + before[i] + after[i];
      int64_t reach = (w.sizes[i + 2] - 1) * dilations[i] + 1;
      if (padded < reach || (padded - reach) / strides[i] + 1 != y.sizes[i + 2])
        return false;
    }
    return true;
  }

  /// Whether channels are last, or first. The real library takes filters in
  /// other orders, too, and their results are wrong.
  bool isInOrder() const {
    std::vector<size_t> first(x.sizes.size());
    std::iota(first.begin(), first.end(), 0);
    std::vector<size_t> last = first;
    std::rotate(last.begin() + 1, last.begin() + 2, last.end());
    auto areIn = [&](const std::vector<size_t> &order) {
      return x.isIn(order) && w.isIn(order) && y.isIn(order);
    };
    return areIn(first) || areIn(last);
  }

  void run() const {
    const Place &out = result();
    std::vector<double> sums(static_cast<size_t>(out.span()));
    auto read = [&](const Place &from, int64_t at) {
      return isRounded ? toTf32(from.read(at)) : from.read(at);
    };
    forEach([&](int64_t atX, int64_t atW, int64_t atY) {
      if (kind == kDnnForward)
        sums[atY] += read(x, atX) * read(w, atW);
      else if (kind == kDnnDataGradient)
        sums[atX] += read(y, atY) * read(w, atW);
      else
        sums[atW] += read(x, atX) * read(y, atY);
    });
    for (size_t i = 0; i < sums.size(); ++i)
      out.write(static_cast<int64_t>(i), sums[i]);
  }
};

Work describe(const Descriptor &operation,
              const std::map<int64_t, void *> &memory, bool isRounded) {
  int first = operation.type == kDnnForward        ? kDnnForwardFirst
              : operation.type == kDnnDataGradient ? kDnnDataGradientFirst
                                                   : kDnnFilterGradientFirst;
  const Descriptor &windows = operation.descriptor(first + 2);
  auto place = [&](int attribute) {
    return Place(operation.descriptor(attribute), memory);
  };
  return {operation.type,
          place(first + 4),
          place(first + 3),
          place(first + 5),
          windows.all<int64_t>(kDnnPaddingBefore),
          windows.all<int64_t>(kDnnPaddingAfter),
          windows.all<int64_t>(kDnnStrides),
          windows.all<int64_t>(kDnnDilations),
          windows.one<int>(kDnnConvolutionMode) == kDnnFlippedWindows,
          isRounded && place(first + 3).type == kDnnF32};
}

DnnStatus execute(DnnHandle handle, DnnDescriptor givenPlan,
                  DnnDescriptor givenPack) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (machine.gpus[currentGpu()].error)
    return kDnnBadParameter;
  bool &isLoaded = machine.gpus[currentGpu()].hasPlans;
  if (!isLoaded && !(isLoaded = machine.takeObject()))
    return kDnnNotSupported;
  const auto &plan = *static_cast<const Descriptor *>(givenPlan),
             &pack = *static_cast<const Descriptor *>(givenPack);
  auto stream = machine.streams.find(handle->stream);
  if (stream == machine.streams.end() || !plan.isFinal || !pack.isFinal)
    return fail("an unknown stream, or a plan that is not finalized");
  if (plan.engine == Unstable || plan.engine == Greedy)
    return fail("engine " + std::to_string(plan.engine) + " is executed");
  std::map<int64_t, void *> memory;
  auto numbers = pack.all<int64_t>(kDnnPackNumbers);
  auto pointers = pack.all<void *>(kDnnPackPointers);
  for (size_t i = 0; i < numbers.size(); ++i)
    memory[numbers[i]] = pointers.at(i);
  auto operations = plan.descriptor(kDnnPlanConfig)
                        .descriptor(kDnnHeuristicGraph)
                        .all<const Descriptor *>(kDnnGraphOperations);
  auto put = [&](const char *what, const auto &places,
                 std::function<void()> run) {
    std::vector<Access> accesses;
    for (auto [each, isWritten] : places) {
      if (addressOf(each->data) % 16)
        return fail("a tensor is not aligned as was promised");
      accesses.push_back(
          {addressOf(each->data), each->span() * each->bytes(), isWritten});
    }
    accesses.push_back(
        {addressOf(pack.one<void *>(kDnnPackWorkspace)), 512, true});
    machine.put(*stream->second, {what, std::move(accesses), std::move(run)});
    return machine.gpus[currentGpu()].error ? DnnStatus(kDnnBadParameter) : 0;
  };
  try {
    if (operations.size() > 1) {
      auto work = std::make_shared<const GraphWork>(operations, memory);
      return put("a graph of cuDNN", work->places(), [work] { work->run(); });
    }
    auto work = std::make_shared<const Work>(
        describe(*operations.front(), memory, plan.engine == Rounding));
    if (!work->isConsistent())
      return fail("the extents of a convolution don't match");
    if (!work->isInOrder())
      return fail("the channels of a convolution are neither last nor first");
    std::vector<std::pair<const Place *, bool>> places;
    for (const Place *each : {&work->x, &work->w, &work->y})
      places.emplace_back(each, each == &work->result());
    return put("a convolution", places, [work] { work->run(); });
  } catch (const std::out_of_range &) {
    return fail("a tensor of the graph has no memory");
  }
}

} // namespace

void fillDnn(Dnn &dnn) {
#define WHALE_CUDA_FILL_DNN(member, ...) dnn.member.function = member;
  WHALE_CUDA_DNN_FUNCTIONS(WHALE_CUDA_FILL_DNN)
}

} // namespace whale::runtime::cuda::test
