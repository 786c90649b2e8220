//===- BoxKernels.cpp - Copies and reductions of boxes on a GPU -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a box of a buffer, and the boxes that are copied or reduced into it. Out:
// launches on a stream. Dimensions that are contiguous in all buffers are
// merged. A copy that is then one run is a memcpy; all else launches a kernel,
// with extents and strides as its parameter, and a thread for each element or
// part of one. The dimensions beyond its six are a launch for each of their
// points. The PTX is loaded by `prepare`, one module for each kind of element
// and reduction.
//
// Cost: each element is read once from each source and written once. The
// processor makes a few small vectors for each source and a string, the
// kernel's name, to find it. The first `prepare` of a kind has the driver
// compile its kernel.
//
//===----------------------------------------------------------------------===//

#include "cuda/BoxKernels.h"

#include <algorithm>
#include <limits>

namespace whale::runtime::cuda {

static constexpr unsigned kThreads = 256;

BoxKernels::~BoxKernels() {
  if (!gpu.tryAttach())
    return;
  for (Module module : modules)
    gpu.driver.moduleUnload.function(module);
}

/// What PTX calls the type that a reduction of these elements combines; null
/// where there is no kernel. A complex number is two real ones.
static const char *typeName(DType dtype) {
  switch (dtype) {
  case DType::I1:
    return "i1";
  case DType::I8:
    return "s8";
  case DType::I16:
    return "s16";
  case DType::I32:
    return "s32";
  case DType::I64:
    return "s64";
  case DType::UI8:
    return "u8";
  case DType::UI16:
    return "u16";
  case DType::UI32:
    return "u32";
  case DType::UI64:
    return "u64";
  case DType::BF16:
    return "bf16";
  case DType::F16:
    return "f16";
  case DType::F32:
  case DType::C64:
    return "f32";
  case DType::F64:
  case DType::C128:
    return "f64";
  default:
    return nullptr;
  }
}

bool BoxKernels::canReduce(DType dtype, Reduction reduction, size_t sources) {
  return typeName(dtype) && sources <= BoxParameter::mostSources &&
         (!isComplex(dtype) || reduction == Reduction::Sum);
}

/// On truth values a sum is *or*, a product *and*.
static const char *operationName(DType dtype, Reduction reduction) {
  bool isTruth = dtype == DType::I1;
  switch (reduction) {
  case Reduction::Sum:
    return isTruth ? "or" : "sum";
  case Reduction::Product:
    return isTruth ? "and" : "product";
  case Reduction::Min:
    return isTruth ? "and" : "min";
  case Reduction::Max:
    return isTruth ? "or" : "max";
  case Reduction::And:
    return "and";
  case Reduction::Or:
    return "or";
  }
  return nullptr;
}

BoxKernels::Kind BoxKernels::copyKind(int64_t elementBytes) {
  int64_t bytes = std::min<int64_t>(elementBytes, 8);
  return {"box_copy_" + std::to_string(bytes), bytes};
}

BoxKernels::Kind BoxKernels::kindOf(DType dtype,
                                    std::optional<Reduction> reduction) {
  int64_t bytes = byteSize(dtype);
  if (!reduction)
    return copyKind(bytes);
  return {std::string("box_") + operationName(dtype, *reduction) + "_" +
              typeName(dtype),
          isComplex(dtype) ? bytes / 2 : bytes};
}

void BoxKernels::prepare(DType dtype, std::optional<Reduction> reduction) {
  prepare(kindOf(dtype, reduction));
}

void BoxKernels::prepare(const Kind &kind) {
  Function &function = functions[kind.name];
  if (!function)
    function =
        gpu.load(boxKernelText(kind.name), kind.name, modules.emplace_back());
}

void BoxKernels::launch(const std::string &name, const BoxParameter &box,
                        Stream stream) {
  void *parameters[] = {const_cast<BoxParameter *>(&box)};
  uint64_t blocks = (box.count + kThreads - 1) / kThreads;
  if (blocks > std::numeric_limits<int32_t>::max())
    throw Error(gpu.name() + ": a transfer moves " + std::to_string(box.count) +
                " elements at once, more than the grid of a kernel has threads "
                "for");
  gpu.call(gpu.driver.launchKernel, functions.at(name),
           static_cast<unsigned>(blocks), 1u, 1u, kThreads, 1u, 1u, 0u, stream,
           static_cast<void **>(parameters), static_cast<void **>(nullptr));
}

/// By dimension, of a dense buffer.
static std::vector<uint64_t> stridesOf(const Shape &shape, int64_t bytes) {
  std::vector<uint64_t> strides(shape.size());
  auto stride = static_cast<uint64_t>(bytes);
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= static_cast<uint64_t>(shape[d]);
  }
  return strides;
}

static Address at(const void *data, const Shape &start,
                  const std::vector<uint64_t> &strides) {
  Address address = addressOf(data);
  for (size_t d = 0; d < start.size(); ++d)
    address += static_cast<uint64_t>(start[d]) * strides[d];
  return address;
}

void BoxKernels::run(DType dtype, std::optional<Reduction> reduction, void *dst,
                     const Shape &dstShape, const Shape &dstStart,
                     const Shape &size, std::span<const BoxSource> sources,
                     Stream stream) {
  if (elementCount(size) == 0)
    return;
  bool isCopy = sources.size() == 1;
  Kind kind = kindOf(dtype, isCopy ? std::nullopt : reduction);
  int64_t bytes = byteSize(dtype);

  BoxParameter box;
  std::vector<uint64_t> to = stridesOf(dstShape, bytes),
                        from = stridesOf(size, bytes);
  box.to = at(dst, dstStart, to);
  if (sources.size() > BoxParameter::mostSources)
    throw Error(gpu.name() + ": a reduction of " +
                std::to_string(sources.size()) +
                " terms has no kernel, which "
                "has at most " +
                std::to_string(BoxParameter::mostSources));
  for (const BoxSource &source : sources) {
    std::vector<uint64_t> strides = stridesOf(*source.shape, bytes);
    bool isDense = *source.shape == size;
    box.from[box.sources++] = at(source.data, *source.start, strides) |
                              (isDense ? 0 : BoxParameter::strided);
    if (!isDense)
      from = std::move(strides);
  }

  put(kind, bytes, isCopy, box, size, std::move(to), std::move(from), stream);
}

void BoxKernels::copy(int64_t elementBytes, void *dst, const Shape &dstStrides,
                      const void *src, const Shape &srcStrides,
                      const Shape &size, Stream stream) {
  if (elementCount(size) == 0)
    return;
  auto inBytes = [elementBytes](const Shape &strides) {
    Strides result;
    for (int64_t stride : strides)
      result.push_back(static_cast<uint64_t>(stride * elementBytes));
    return result;
  };
  BoxParameter box;
  box.to = addressOf(dst);
  box.from[box.sources++] = addressOf(src) | BoxParameter::strided;
  put(copyKind(elementBytes), elementBytes, /*isCopy=*/true, box, size,
      inBytes(dstStrides), inBytes(srcStrides), stream);
}

void BoxKernels::put(const Kind &kind, int64_t bytes, bool isCopy,
                     BoxParameter box, const Shape &size, Strides to,
                     Strides from, Stream stream) {
  // Dimensions that lie behind one another everywhere are one.
  std::vector<uint64_t> extents;
  size_t last = 0;
  auto add = [&](uint64_t extent, uint64_t toStride, uint64_t fromStride) {
    if (extent == 1)
      return;
    if (!extents.empty() && to[last] == extent * toStride &&
        from[last] == extent * fromStride) {
      extents[last] *= extent;
    } else {
      last = extents.size();
      extents.push_back(extent);
    }
    to[last] = toStride;
    from[last] = fromStride;
  };
  for (size_t d = 0; d < size.size(); ++d)
    add(static_cast<uint64_t>(size[d]), to[d], from[d]);
  // An element may be several of what is combined.
  auto parts = static_cast<uint64_t>(bytes / kind.bytes);
  auto part = static_cast<uint64_t>(kind.bytes);
  to.push_back(0), from.push_back(0);
  add(parts, part, part);
  if (extents.empty()) {
    extents.push_back(1);
    to[0] = from[0] = part;
  }
  bool isRun = extents.size() == 1 && to[0] == part && from[0] == part;
  if (isCopy && isRun)
    return gpu.call(gpu.driver.memcpyAsync, box.to,
                    box.from[0] & ~BoxParameter::strided,
                    static_cast<size_t>(elementCount(size) * bytes), stream);

  // The outer ones of more dimensions than a kernel has are loops here.
  size_t outer = extents.size() > BoxParameter::mostDims
                     ? extents.size() - BoxParameter::mostDims
                     : 0;
  uint64_t launches = 1;
  box.count = 1;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (d < outer) {
      launches *= extents[d];
      continue;
    }
    box.count *= extents[d];
    box.extents[box.dims] = extents[d];
    box.toStrides[box.dims] = to[d];
    box.fromStrides[box.dims++] = from[d];
  }
  for (uint64_t number = 0; number < launches; ++number) {
    BoxParameter own = box;
    uint64_t rest = number;
    for (size_t d = outer; d-- > 0; rest /= extents[d]) {
      own.to += rest % extents[d] * to[d];
      for (uint32_t i = 0; i < box.sources; ++i)
        own.from[i] += box.from[i] & BoxParameter::strided
                           ? rest % extents[d] * from[d]
                           : 0;
    }
    for (uint32_t i = 0; i < box.sources; ++i)
      if (!(box.from[i] & BoxParameter::strided))
        own.from[i] += number * box.count * part;
    launch(kind.name, own, stream);
  }
}

} // namespace whale::runtime::cuda
