//===- Operations.h - Products on a CPU device ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_RUNTIME_DEVICE_CPU_OPERATIONS_H
#define WHALE_RUNTIME_DEVICE_CPU_OPERATIONS_H

#ifdef WHALE_WITHOUT_HOST_LIBRARIES
#include "device/cpu/NoOperations.h"
#else

#include "device/cpu/Scratch.h"
#include "device/cpu/SmallProduct.h"
#include "device/cpu/ViewConvolution.h"
#include "program/Format.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>

namespace whale::runtime {

/// oneDNN takes extents for 64 bits, and computes with 32 of them.
inline bool fitsOneDnn(std::initializer_list<dnnl::memory::dims> lists) {
  for (const dnnl::memory::dims &list : lists)
    for (int64_t value : list)
      if (value < INT32_MIN || value > INT32_MAX)
        return false;
  return true;
}

/// oneDNN, limited to instructions that work on this processor.
dnnl::engine makeEngine();

/// Whether it adds products of i8 to an i32 without saturating at 16 bits.
bool hasVnni();

/// What an operation needs of its device.
struct CpuContext {
  explicit CpuContext(int64_t threads)
      : engine(makeEngine()), stream(engine), threads(threads) {}

  dnnl::engine engine;
  dnnl::stream stream;
  Scratch scratch;
  int64_t threads;
};

/// An instruction made ready for its shapes: through oneDNN where it can, else
/// by converting to dense matrices.
class PreparedMatmul {
public:
  PreparedMatmul(const Matmul &matmul, CpuContext &context);
  void run(CpuContext &context, const void *lhs, const void *rhs,
           void *out) const;
  const ScratchSizes &getScratch() const { return scratch; }

private:
  /// The product of neighbouring columns of lhs and rows of rhs.
  struct Block {
    dnnl::primitive primitive;
    dnnl::memory::desc lhs, rhs, scratch;
  };

  bool prepareSmall();
  bool prepareDirect(CpuContext &context);
  bool prepareGemm();
  bool prepareBlock(CpuContext &context, int64_t size, bool accumulate,
                    Block &block);
  void runDirect(CpuContext &context, const void *lhs, const void *rhs,
                 void *out) const;
  void runSmall(const char *lhs, const char *rhs, char *out) const;
  void runGemm(const void *lhs, const void *rhs, void *out) const;
  template <typename T>
  void runPacked(CpuContext &context, const void *lhs, const void *rhs,
                 void *out) const;

  Matmul op;
  /// Of those of the rank, as many as pay.
  int64_t threads;
  ScratchSizes scratch;
  /// `op` computes the transpose of the original product: lhs is its rhs.
  bool transposed = false;
  bool empty = false;
  /// So many products that are computed without oneDNN.
  bool isSmall = false;
  SmallProduct small = {};
  int64_t products = 0;
  bool direct = false;
  /// By oneDNN's GEMM instead of its primitives, so many columns at a time.
  bool usesGemm = false;
  int64_t columns = 0;
  /// By oneDNN, `depth` of the op.k columns and rows at a time: the first ones,
  /// those between, and the last if they are fewer.
  int64_t depth = 0;
  Block first, middle, last;
  dnnl::memory::desc outDesc;
};

class PreparedConvolution {
public:
  PreparedConvolution(const Convolution &convolution, CpuContext &context);
  void run(CpuContext &context, const void *lhs, const void *rhs,
           void *out) const;
  const ScratchSizes &getScratch() const { return scratch; }

private:
  bool prepareDirect(CpuContext &context);
  void preparePacked();
  bool prepareViews(CpuContext &context);
  bool prefersViews() const;
  void prepareSides(CpuContext &context, const dnnl::memory::desc &lhs,
                    const dnnl::memory::desc &rhs,
                    const dnnl::memory::desc &out);
  void runDirect(CpuContext &context, const void *lhs, const void *rhs,
                 void *out) const;
  void runViews(CpuContext &context, const void *lhs, const void *rhs,
                void *out) const;
  template <typename T>
  void runPacked(CpuContext &context, const void *lhs, const void *rhs,
                 void *out) const;

  Convolution op;
  /// As of a product.
  int64_t threads;
  ScratchSizes scratch;
  /// What has views, and is faster so.
  std::optional<ViewConvolution> views;
  bool direct = false;
  dnnl::primitive primitive;
  /// What the primitive calls lhs, rhs and the result.
  std::array<int, 3> arguments = {};
  /// A tensor as it is, and as the primitive, or the views, take it.
  struct Side {
    dnnl::memory::desc given, wanted;
    dnnl::reorder reorder;
    bool reordered = false;
    /// Of the copy that is taken.
    int64_t bytes() const {
      return reordered ? static_cast<int64_t>(wanted.get_size()) : 0;
    }
  };
  /// What the primitive takes, and what the views do.
  Side lhsSide, rhsSide, outSide, lhsView, rhsView, outView;
  dnnl::memory::desc scratchDesc;
  /// Without the primitive it is, for each group, products of unrolled patches
  /// of `depth` elements with `outputs` columns of weights, `block` of all the
  /// rows at a time.
  int64_t positions = 1, taps = 1, depth = 0, outputs = 0, rows = 0, block = 0;
  /// For each spatial dimension and each pair of output and kernel position:
  /// the offset in lhs, or -1 where the kernel meets padding.
  std::vector<std::vector<int64_t>> offsets;
};

} // namespace whale::runtime

#endif // WHALE_WITHOUT_HOST_LIBRARIES

#endif // WHALE_RUNTIME_DEVICE_CPU_OPERATIONS_H
