//===- Layout.cpp - Boxes of tensors ----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Layout.h"

#include "whale/Runtime/Error.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <tuple>

namespace whale::runtime {

int64_t elementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

std::string toString(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::optional<Box> intersect(const Box &a, const Box &b) {
  assert(a.start.size() == b.start.size() && "boxes of one view");
  Box common;
  for (size_t i = 0; i < a.start.size(); ++i) {
    int64_t start = std::max(a.start[i], b.start[i]);
    int64_t end = std::min(a.start[i] + a.size[i], b.start[i] + b.size[i]);
    if (end <= start)
      return std::nullopt;
    common.start.push_back(start);
    common.size.push_back(end - start);
  }
  return common;
}

/// Appends what is left of `region` without `hole`, as disjoint boxes.
static void subtract(Box region, const Box &hole, std::vector<Box> &rest) {
  std::optional<Box> common = intersect(region, hole);
  if (!common) {
    rest.push_back(std::move(region));
    return;
  }
  for (size_t i = 0; i < region.start.size(); ++i) {
    int64_t start = common->start[i], end = start + common->size[i];
    int64_t regionEnd = region.start[i] + region.size[i];
    if (region.start[i] < start) {
      Box piece = region;
      piece.size[i] = start - region.start[i];
      rest.push_back(std::move(piece));
    }
    if (end < regionEnd) {
      Box piece = region;
      piece.start[i] = end;
      piece.size[i] = regionEnd - end;
      rest.push_back(std::move(piece));
    }
    region.start[i] = start;
    region.size[i] = end - start;
  }
}

bool covers(const Shape &view, std::span<const std::optional<Box>> boxes) {
  if (elementCount(view) == 0)
    return true;
  // Replicas repeat the same few boxes; subtracting one twice is idle work.
  std::vector<const Box *> distinct;
  for (const std::optional<Box> &box : boxes)
    if (box)
      distinct.push_back(&*box);
  auto less = [](const Box *a, const Box *b) {
    return std::tie(a->start, a->size) < std::tie(b->start, b->size);
  };
  std::sort(distinct.begin(), distinct.end(), less);
  distinct.erase(
      std::unique(distinct.begin(), distinct.end(),
                  [](const Box *a, const Box *b) { return *a == *b; }),
      distinct.end());

  std::vector<Box> uncovered = {Box::whole(view)}, rest;
  for (const Box *box : distinct) {
    rest.clear();
    for (Box &region : uncovered)
      subtract(std::move(region), *box, rest);
    std::swap(uncovered, rest);
    // Boxes of real placements leave few pieces; only crafted ones explode.
    if (uncovered.size() > 100'000)
      throw Error("the boxes are too fragmented");
  }
  return uncovered.empty();
}

void copyBox(void *dst, std::span<const int64_t> dstShape,
             std::span<const int64_t> dstStart, const void *src,
             std::span<const int64_t> srcShape,
             std::span<const int64_t> srcStart, std::span<const int64_t> size,
             int64_t elementBytes) {
  // Trailing dimensions that are whole on both sides make one run of bytes.
  size_t rank = size.size();
  int64_t dstOffset = 0, srcOffset = 0;
  int64_t dstStride = elementBytes, srcStride = elementBytes;
  int64_t run = elementBytes;
  bool contiguous = true;
  struct Loop {
    int64_t count, dstStride, srcStride;
  };
  std::vector<Loop> loops;
  for (size_t i = rank; i-- > 0;) {
    dstOffset += dstStart[i] * dstStride;
    srcOffset += srcStart[i] * srcStride;
    if (contiguous)
      run *= size[i];
    else if (size[i] != 1)
      loops.push_back({size[i], dstStride, srcStride});
    if (size[i] != dstShape[i] || size[i] != srcShape[i])
      contiguous = false;
    dstStride *= dstShape[i];
    srcStride *= srcShape[i];
  }
  if (run == 0)
    return;
  for (const Loop &loop : loops)
    if (loop.count == 0)
      return;

  auto *to = static_cast<char *>(dst) + dstOffset;
  auto *from = static_cast<const char *>(src) + srcOffset;
  if (loops.empty()) {
    std::memcpy(to, from, run);
    return;
  }
  // loops[0] is the innermost; an odometer runs over the others.
  std::vector<int64_t> index(loops.size(), 0);
  while (true) {
    const Loop &inner = loops[0];
    for (int64_t i = 0; i < inner.count; ++i)
      std::memcpy(to + i * inner.dstStride, from + i * inner.srcStride, run);
    size_t d = 1;
    for (; d < loops.size(); ++d) {
      to += loops[d].dstStride;
      from += loops[d].srcStride;
      if (++index[d] < loops[d].count)
        break;
      to -= loops[d].count * loops[d].dstStride;
      from -= loops[d].count * loops[d].srcStride;
      index[d] = 0;
    }
    if (d == loops.size())
      return;
  }
}

} // namespace whale::runtime
