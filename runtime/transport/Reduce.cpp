//===- Reduce.cpp - Reductions of several buffers ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: buffers, or boxes of buffers, of one element type. Out: their reduction.
// Elements are combined in the order of their sources, in the type that they
// are computed in, and rounded once: the order of the sources alone decides the
// result. It is done in blocks of 1024 elements, so that the accumulators stay
// in cache and each source is read in long runs. A box is reduced in runs along
// the trailing dimensions that are whole in all buffers and the one before
// them.
//
// Cost: each element is read once from each source and written once, on one
// thread. Each run computes an offset for each buffer, so that short runs cost
// more. A box allocates a pointer for each source.
//
//===----------------------------------------------------------------------===//

#include "transport/Reduce.h"

#include "Numeric.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <type_traits>

namespace whale::runtime {

namespace {
struct SumOp {
  /// -0 in floating point, which changes no number at all.
  template <typename T>
  static T identity() {
    return static_cast<T>(-T{});
  }
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return a || b;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
    else
      return a + b;
  }
};

struct ProductOp {
  template <typename T>
  static T identity() {
    return static_cast<T>(1);
  }
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return a && b;
    else if constexpr (std::is_integral_v<T>)
      // 64 bits, because the product of two 16-bit numbers would be computed
      // in int and overflow it.
      return static_cast<T>(static_cast<uint64_t>(a) *
                            static_cast<uint64_t>(b));
    else
      return a * b;
  }
};

/// NaN wins; -0 is less than 0.
struct MinOp {
  template <typename T>
  static T identity() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      T smaller = a < b || (a == b && std::signbit(a)) ? a : b;
      return a != a ? a : smaller;
    } else {
      return b < a ? b : a;
    }
  }
};

struct MaxOp {
  template <typename T>
  static T identity() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      T larger = a > b || (a == b && !std::signbit(a)) ? a : b;
      return a != a ? a : larger;
    } else {
      return a < b ? b : a;
    }
  }
};

struct AndOp {
  template <typename T>
  static T identity() {
    return static_cast<T>(-1);
  }
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};

struct OrOp {
  template <typename T>
  static T identity() {
    return T{};
  }
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
} // namespace

template <typename Storage, typename Op>
static void reduceRun(Storage *dst, std::span<const void *const> sources,
                      int64_t count, Op op) {
  using Compute = typename Element<Storage>::Compute;
  if (sources.empty()) {
    std::fill_n(dst, count,
                Element<Storage>::store(Op::template identity<Compute>()));
    return;
  }
  constexpr int64_t block = 1024;
  Compute sums[block];
  for (int64_t begin = 0; begin < count; begin += block) {
    int64_t n = std::min(block, count - begin);
    auto *first = static_cast<const Storage *>(sources[0]) + begin;
    for (int64_t i = 0; i < n; ++i)
      sums[i] = Element<Storage>::load(first[i]);
    for (const void *source : sources.subspan(1)) {
      auto *next = static_cast<const Storage *>(source) + begin;
      for (int64_t i = 0; i < n; ++i)
        sums[i] = op(sums[i], Element<Storage>::load(next[i]));
    }
    for (int64_t i = 0; i < n; ++i)
      dst[begin + i] = Element<Storage>::store(sums[i]);
  }
}

void reduce(DType dtype, Reduction reduction, void *dst,
            std::span<const void *const> sources, int64_t count) {
  dispatch(dtype, [&]<typename Storage>() {
    if constexpr (!isOpaque<Storage>) {
      using Compute = typename Element<Storage>::Compute;
      auto *out = static_cast<Storage *>(dst);
      switch (reduction) {
      case Reduction::Sum:
        return reduceRun(out, sources, count, SumOp());
      case Reduction::Product:
        return reduceRun(out, sources, count, ProductOp());
      case Reduction::Min:
        if constexpr (std::is_arithmetic_v<Compute>)
          return reduceRun(out, sources, count, MinOp());
        break;
      case Reduction::Max:
        if constexpr (std::is_arithmetic_v<Compute>)
          return reduceRun(out, sources, count, MaxOp());
        break;
      case Reduction::And:
        if constexpr (std::is_integral_v<Compute>)
          return reduceRun(out, sources, count, AndOp());
        break;
      case Reduction::Or:
        if constexpr (std::is_integral_v<Compute>)
          return reduceRun(out, sources, count, OrOp());
        break;
      }
    }
    assert(false && "refused when the program is read");
  });
}

void reduceBox(DType dtype, Reduction reduction, void *dst,
               const Shape &dstShape, const Shape &dstStart, const Shape &size,
               std::span<const BoxSource> sources) {
  if (elementCount(size) == 0)
    return;
  // Runs along trailing dimensions that are whole in all buffers.
  size_t rank = size.size(), split = rank;
  int64_t run = 1;
  while (split > 0) {
    size_t d = split - 1;
    run *= size[d];
    split = d;
    bool whole = size[d] == dstShape[d];
    for (const BoxSource &source : sources)
      whole &= size[d] == (*source.shape)[d];
    if (!whole)
      break;
  }
  int64_t bytes = byteSize(dtype);
  Shape index(split, 0);
  auto offset = [&](const Shape &shape, const Shape &start) {
    int64_t result = 0;
    for (size_t d = 0; d < rank; ++d)
      result = result * shape[d] + start[d] + (d < split ? index[d] : 0);
    return result * bytes;
  };
  std::vector<const void *> pointers(sources.size());
  while (true) {
    for (size_t i = 0; i < sources.size(); ++i)
      pointers[i] = static_cast<const char *>(sources[i].data) +
                    offset(*sources[i].shape, *sources[i].start);
    reduce(dtype, reduction,
           static_cast<char *>(dst) + offset(dstShape, dstStart), pointers,
           run);
    size_t d = split;
    while (d > 0) {
      if (++index[d - 1] < size[d - 1])
        break;
      index[--d] = 0;
    }
    if (d == 0)
      return;
  }
}

} // namespace whale::runtime
