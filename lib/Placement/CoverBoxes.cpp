//===- CoverBoxes.cpp - Compare what lists of boxes cover -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CoverBoxes.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace whale;

/// Adds to `corners` the mixed difference of the box's indicator function: two
/// lists of boxes cover every element equally often iff the sums are equal.
static void addCorners(const Box &box, ArrayRef<unsigned> dims, int sign,
                       std::vector<std::pair<Extents, int>> &corners) {
  if (box.empty())
    return;
  for (unsigned bits = 0; bits != 1u << dims.size(); ++bits) {
    Extents corner;
    int parity = sign;
    for (auto [i, d] : llvm::enumerate(dims)) {
      bool end = bits >> i & 1;
      corner.push_back(box.start[d] + (end ? box.size[d] : 0));
      parity = end ? -parity : parity;
    }
    corners.push_back({std::move(corner), parity});
  }
}

bool whale::coverAlike(ArrayRef<const Box *> a, ArrayRef<const Box *> b) {
  const Box *first = nullptr;
  SmallVector<unsigned> dims;
  auto boxes = llvm::concat<const Box *const>(a, b);
  for (const Box *box : boxes)
    if (!first && !box->empty())
      first = box;
  if (!first)
    return true;
  for (unsigned d = 0, e = first->start.size(); d != e; ++d)
    if (llvm::any_of(boxes, [&](const Box *box) {
          return !box->empty() && (box->start[d] != first->start[d] ||
                                   box->size[d] != first->size[d]);
        }))
      dims.push_back(d);
  std::vector<std::pair<Extents, int>> corners;
  for (const Box *box : a)
    addCorners(*box, dims, 1, corners);
  for (const Box *box : b)
    addCorners(*box, dims, -1, corners);
  llvm::sort(corners);
  for (size_t i = 0, j; i != corners.size(); i = j) {
    int sum = 0;
    for (j = i; j != corners.size() && corners[j].first == corners[i].first;
         ++j)
      sum += corners[j].second;
    if (sum != 0)
      return false;
  }
  return true;
}
