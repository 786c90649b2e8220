//===- Layout.cpp - Boxes of tensors ----------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Layout.h"

#include "whale/System/Error.h"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace whale::format {

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

/// Appends `region` minus `hole` to `rest`, as disjoint boxes.
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
  // Replicas have equal boxes; each needs to be subtracted only once.
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
    // Boxes of real placements leave few pieces; only crafted input exceeds
    // this.
    if (uncovered.size() > 100'000)
      throw system::Error("the boxes are too fragmented");
  }
  return uncovered.empty();
}

} // namespace whale::format
