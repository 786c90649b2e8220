//===- SumOrder.h - The order in which sums are formed ----------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum (or product) of floats is formed in an order that the shape of the
// reduction and the width of what it accumulates decide, and nothing else: not
// what it is fused with, nor how its operands lie, nor the number of threads.
//
//  - Neighbouring dimensions that are reduced count as one, a group; but where
//    the last are long enough alone, those outside are a group of their own.
//  - Where the last dimensions are reduced, `lanes` partial sums take their
//    elements in turn, so that a vector register holds as many of them. In the
//    end the upper half of the lanes is added to the lower, again and again.
//  - Each partial sum is formed in blocks of at most kSumBlock terms, the sums
//    of blocks in blocks of as many, and so on: an error grows with the
//    logarithm of the length.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_CONVERSION_KERNEL_SUMORDER_H
#define WHALE_LIB_CONVERSION_KERNEL_SUMORDER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace whale {

/// Terms that are added one after the other.
constexpr int64_t kSumBlock = 16;

struct SumOrder {
  /// A loop over `count` units (at the end of the group fewer) of `unit` steps
  /// each along a group of reduced dimensions.
  struct Chunk {
    unsigned group;
    int64_t unit;
    int64_t count;
    /// Chunks of one level add to the same partial sums; what they add are the
    /// sums of the level below, at level 0 terms.
    unsigned level;
  };

  int64_t lanes = 1;
  /// By dimension its group, the outermost first; -1 where it is not reduced,
  /// or of size one.
  llvm::SmallVector<int64_t> groups;
  /// By group its number of steps. A step of the last group is `lanes`
  /// elements.
  llvm::SmallVector<int64_t> steps;
  /// Elements of the last group behind its last step; the first lanes take
  /// them in the end.
  int64_t tail = 0;
  /// From the inside out.
  llvm::SmallVector<Chunk> chunks;

  unsigned getNumLevels() const { return chunks.back().level + 1; }
};

/// The order for a reduction over those of the dimensions `sizes` that
/// `reduced` says, with accumulators of `bits`. Nothing is summed in lanes or
/// blocks if it has few terms: the result then has no chunks.
SumOrder getSumOrder(llvm::ArrayRef<int64_t> sizes,
                     llvm::ArrayRef<bool> reduced, unsigned bits);

} // namespace whale

#endif // WHALE_LIB_CONVERSION_KERNEL_SUMORDER_H
