//===- BoxKernels.h - Copies and reductions of boxes on a GPU ---*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_CUDA_BOXKERNELS_H
#define WHALE_RUNTIME_CUDA_BOXKERNELS_H

#include "cuda/Gpu.h"
#include "transport/Reduce.h"

#include <map>

namespace whale::runtime::cuda {

/// The parameter of all kernels of boxes: one structure.
struct BoxParameter {
  static constexpr size_t mostDims = 6;
  /// As many as fit into the 4 KiB of parameters that every GPU takes.
  static constexpr size_t mostSources = 480;
  /// Marks a source that has the strides `from`. Others are dense.
  static constexpr Address strided = Address(1) << 63;

  Address to = 0;
  uint64_t count = 0;
  uint32_t sources = 0, dims = 0;
  uint64_t extents[mostDims] = {};
  /// In bytes: of the destination and of sources that are not dense.
  uint64_t toStrides[mostDims] = {}, fromStrides[mostDims] = {};
  Address from[mostSources] = {};
};

/// Copies or reduces boxes of buffers as `copyBox` and `reduceBox` do on the
/// host, with the same bits but for those of NaNs. Modules are loaded by
/// `prepare`, before anything runs.
class BoxKernels {
public:
  explicit BoxKernels(const Gpu &gpu) : gpu(gpu) {}
  ~BoxKernels();
  BoxKernels(const BoxKernels &) = delete;
  BoxKernels &operator=(const BoxKernels &) = delete;

  /// False for f8, integers below 8 bits, products of complex numbers, and more
  /// sources than a launch has parameters for.
  static bool canReduce(DType dtype, Reduction reduction, size_t sources);
  /// Loads what `run` needs for such elements; without a reduction, what copies
  /// them.
  void prepare(DType dtype, std::optional<Reduction> reduction);
  void prepareCopy(int64_t elementBytes) { prepare(copyKind(elementBytes)); }

  /// Puts it on the stream: the box of `size` at `dstStart` becomes the only
  /// source, or the reduction of all sources in their order, or, of none, the
  /// reduction's identity. At most one source is not dense.
  void run(DType dtype, std::optional<Reduction> reduction, void *dst,
           const Shape &dstShape, const Shape &dstStart, const Shape &size,
           std::span<const BoxSource> sources, Stream stream);
  /// Puts a copy of elements on the stream as `copyStrided` makes it.
  void copy(int64_t elementBytes, void *dst, const Shape &dstStrides,
            const void *src, const Shape &srcStrides, const Shape &size,
            Stream stream);

private:
  /// Bytes of what is combined, and how: part of a kernel's name.
  struct Kind {
    std::string name;
    int64_t bytes;
  };
  static Kind copyKind(int64_t elementBytes);
  static Kind kindOf(DType dtype, std::optional<Reduction> reduction);
  using Strides = std::vector<uint64_t>;
  void prepare(const Kind &kind);
  /// Puts a box on the stream that lacks but its dimensions; strides are in
  /// bytes.
  void put(const Kind &kind, int64_t elementBytes, bool isCopy,
           BoxParameter box, const Shape &size, Strides to, Strides from,
           Stream stream);
  void launch(const std::string &name, const BoxParameter &box, Stream stream);

  const Gpu &gpu;
  std::vector<Module> modules;
  std::map<std::string, Function> functions;
};

/// PTX that loads an element of f32 or half precision at %src into the f32 %x,
/// and that rounds the f32 %acc to such an element at %dst; by way of %w, %v,
/// %u (b32), %h (b16) and the predicate %nan.
std::string floatLoadText(DType dtype);
std::string floatStoreText(DType dtype);
/// The PTX of the kernel of a name, such as "box_sum_bf16" or "box_copy_8".
std::string boxKernelText(const std::string &name);
/// The names of all.
std::vector<std::string> boxKernelNames();

} // namespace whale::runtime::cuda

#endif // WHALE_RUNTIME_CUDA_BOXKERNELS_H
