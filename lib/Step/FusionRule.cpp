//===- FusionRule.cpp - Which loops become one kernel ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value is cheap if what a kernel would read and compute instead of it takes
// no longer than to read it. What is cheap is computed by each reader; what is
// not is computed once. Cost: constant.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/FusionRule.h"

namespace whale {

/// An operand of at most this part of a result's size is read from a cache.
static constexpr int64_t kFarSmaller = 16;

/// The same as kMostCheapArithmetic where arithmetic costs little.
static constexpr unsigned kMostCheapOfGpu = 16;

bool isFarSmaller(int64_t elements, int64_t resultElements) {
  // Without overflow for any number of elements.
  return elements <= resultElements / kFarSmaller;
}

bool isCheap(const LoopWork &work) {
  return work.isSlice || (work.largeInputs <= 1 && work.arithmetic &&
                          *work.arithmetic <= kMostCheapArithmetic);
}

/// Whether the reader would read no more bytes than those of the result.
static bool isCheapOnGpu(const LoopWork &work, const LoopRead &read) {
  return read.gpu && read.isPermutation && work.arithmetic &&
         *work.arithmetic <= kMostCheapOfGpu &&
         read.gpu->instead <= read.gpu->result;
}

Fusion willFuse(const LoopWork &producer, const LoopRead &read) {
  if (read.overlaps || read.buffers > kMostFusedBuffers ||
      read.bodySize > kMostFusedBody)
    return Fusion::None;
  bool cheap = isCheap(producer) || isCheapOnGpu(producer, read);
  if (!cheap && !read.readsOnce && !read.isPrefix)
    return Fusion::None;
  bool isOnly = read.readers == 1;
  // Read in several ways, it cannot disappear with one of them. Several results
  // of a loop that are read in one way are taken in one after the other.
  if (cheap && !(isOnly && read.isInOneWay))
    return Fusion::Again;
  if (!read.isInOneWay || (!isOnly && !read.isPermutation))
    return Fusion::None;
  return isOnly ? Fusion::Alone : Fusion::Kept;
}

} // namespace whale
