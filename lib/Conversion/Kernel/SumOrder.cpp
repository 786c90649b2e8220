//===- SumOrder.cpp - The order in which sums are formed ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/SumOrder.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cassert>

/// Four registers of AVX-512 (eight of AVX2): as many sums are then on their
/// way at a time. One or a half is enough for a sum that is short.
static constexpr int64_t kLaneBits[] = {2048, 512, 256};
/// A result with fewer columns than this is summed like one without columns.
static constexpr int64_t kMinColumns = 4;

/// Dimensions outside of one that is as long do not join its group: operands
/// that lack them, or have them alone, do not break its vectors.
static constexpr int64_t kMinRun = 512;

/// The partial sums that share the `size` elements of the last group.
static int64_t getLanes(int64_t size, unsigned bits) {
  for (int64_t laneBits : kLaneBits) {
    int64_t lanes = std::max<int64_t>(laneBits / bits, 1);
    if (size >= 2 * lanes)
      return lanes;
  }
  return 1;
}

whale::SumOrder whale::getSumOrder(llvm::ArrayRef<int64_t> sizes,
                                   llvm::ArrayRef<bool> reduced,
                                   unsigned bits) {
  assert(sizes.size() == reduced.size() && "a dimension is reduced or not");
  SumOrder order;
  order.groups.assign(sizes.size(), -1);
  int64_t terms = 1, columns = 1;
  bool joins = false; // The dimension inside is in the group, or the first.
  // From the inside out.
  for (size_t dim = sizes.size(); dim-- > 0;) {
    if (sizes[dim] == 1)
      continue;
    if (!reduced[dim]) {
      if (order.steps.empty())
        columns *= sizes[dim];
      joins = false;
      continue;
    }
    terms *= sizes[dim];
    if (joins && !(order.steps.size() == 1 && columns < kMinColumns &&
                   order.steps.back() >= kMinRun))
      order.steps.back() *= sizes[dim];
    else
      order.steps.push_back(sizes[dim]);
    order.groups[dim] = order.steps.size() - 1;
    joins = true;
  }
  // Groups are counted from the outside.
  std::reverse(order.steps.begin(), order.steps.end());
  for (int64_t &group : order.groups)
    if (group >= 0)
      group = order.steps.size() - 1 - group;
  if (terms <= kSumBlock)
    return order;
  int64_t &last = order.steps.back();
  if (columns < kMinColumns)
    order.lanes = getLanes(last, bits);
  order.tail = last % order.lanes;
  last /= order.lanes;

  unsigned level = 0;
  int64_t run = 1; // Terms that are added at this level.
  for (unsigned group = order.steps.size(); group-- > 0;) {
    int64_t rest = order.steps[group], unit = 1;
    while (rest > 1) {
      if (kSumBlock / run < 2) {
        ++level;
        run = 1;
      }
      int64_t count = std::min(rest, kSumBlock / run);
      order.chunks.push_back({group, unit, count, level});
      run *= count;
      unit *= count;
      rest = llvm::divideCeil(rest, count);
    }
  }
  return order;
}
