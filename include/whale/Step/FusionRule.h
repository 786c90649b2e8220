//===- FusionRule.h - Which loops become one kernel -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one rule of what kernels take in, what they compute again and what they
// leave in memory. whale-fuse-kernels follows it; what plans memory, or what is
// computed again, asks it before there are kernels. Uses neither LLVM nor MLIR:
// each level says what it knows of two loops.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_STEP_FUSIONRULE_H
#define WHALE_STEP_FUSIONRULE_H

#include <cstdint>
#include <optional>

namespace whale {

/// The most values that a fused loop reads and writes: beyond it, it runs out
/// of registers and its compiler of time.
inline constexpr unsigned kMostFusedBuffers = 24;

/// The most operations of a fused loop's body, for the same reasons.
inline constexpr unsigned kMostFusedBody = 300;

/// What takes more arithmetic for each element is not computed again.
inline constexpr unsigned kMostCheapArithmetic = 4;

/// The arithmetic of a loop's counter as a number: as a vector it is a copy for
/// each element, the sum with the element's place, and a conversion.
inline constexpr unsigned kCounterArithmetic = 3;

/// Returns whether a value of so many elements is far smaller than a result of
/// a loop: one for each of its rows, as it were, which is read from a cache.
bool isFarSmaller(int64_t elements, int64_t resultElements);

/// A loop that gives each element of its result by itself.
struct LoopWork {
  /// Instructions for each element; nothing if one of them takes long.
  /// Conversions between what is stored and what is computed in don't count:
  /// what is kept takes as much memory as without them.
  std::optional<unsigned> arithmetic;
  /// The values that it reads which are not far smaller than its result.
  unsigned largeInputs = 0;
  /// Whether it only takes a slice, at a place that is the same for all
  /// elements.
  bool isSlice = false;
};

/// Returns whether a loop is cheaper to compute again than its result is to
/// store and load: little arithmetic on at most one value of its size.
bool isCheap(const LoopWork &work);

/// How another loop reads the result of one, as far as is known. What is left
/// out is what allows most.
struct LoopRead {
  /// Whether windows overlap, so that elements would be computed several times.
  bool overlaps = false;
  /// Whether it reads each element once, and at that all its loops in an order.
  bool readsOnce = true, isPermutation = true;
  /// Whether the outer loops alone say which element it reads.
  bool isPrefix = true;
  /// How many loops read the value, and whether this one does so in one way.
  unsigned readers = 1;
  bool isInOneWay = true;
  /// Buffers of the loop that both would become, and operations of its body.
  unsigned buffers = 0, bodySize = 0;
  /// For a GPU, where arithmetic costs little: the bytes that the reader would
  /// read instead of the result, beside what it reads anyway, and those of the
  /// result.
  struct Bytes {
    int64_t instead = 0, result = 0;
  };
  std::optional<Bytes> gpu;
};

/// What becomes of a value between two loops.
enum class Fusion {
  /// It is written to memory, and read from there.
  None,
  /// The reader computes it, and so may others: it is cheap.
  Again,
  /// The reader computes it, and nobody else needs it.
  Alone,
  /// The first of several readers computes it and writes it for the others.
  Kept,
};

/// Returns what becomes of the result of a loop that another one reads.
Fusion willFuse(const LoopWork &producer, const LoopRead &read);

} // namespace whale

#endif // WHALE_STEP_FUSIONRULE_H
