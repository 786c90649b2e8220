//===- Box.h - A rectangle of elements --------------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rectangle of a tensor that a device holds, and the row-major views in
// whose coordinates such rectangles are given.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PLACEMENT_BOX_H
#define WHALE_PLACEMENT_BOX_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>
#include <utility>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace whale {

/// Extents of a tensor or of a view of it, in elements, outermost first.
using Extents = llvm::SmallVector<int64_t, 4>;

/// The product of `extents`; 1 for a scalar.
int64_t volumeOf(llvm::ArrayRef<int64_t> extents);

/// A rectangle of elements: [start, start + size) along every dimension.
struct Box {
  Extents start;
  Extents size;

  /// The box of all elements of a view.
  static Box whole(llvm::ArrayRef<int64_t> view);

  int64_t volume() const { return volumeOf(size); }
  bool empty() const { return volume() == 0; }
  /// Whether every element of `other` is in this box; an empty box is in any
  /// box.
  bool contains(const Box &other) const;
  /// Returns the common elements; nullopt if there are none.
  std::optional<Box> intersect(const Box &other) const;
  /// Whether there are common elements.
  bool overlaps(const Box &other) const;
  bool operator==(const Box &other) const = default;
};

llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Box &box);

/// A view that refines two others: every dimension of either is the row-major
/// product of a run [first, second) of its dimensions.
struct CommonView {
  Extents extents;
  llvm::SmallVector<std::pair<unsigned, unsigned>, 4> first;
  llvm::SmallVector<std::pair<unsigned, unsigned>, 4> second;
};

/// The coarsest common refinement of two views of one tensor, or nullopt where
/// their dimensions interleave ([6, 4] and [4, 6]) or the volumes differ.
std::optional<CommonView> commonRefinement(llvm::ArrayRef<int64_t> first,
                                           llvm::ArrayRef<int64_t> second);

/// Returns the same elements as a box of another view of the tensor; nullopt if
/// they do not form a box there. An empty box stays empty. The view of a scalar
/// has no empty box, so the result is nullopt there.
std::optional<Box> convertBox(const Box &box, llvm::ArrayRef<int64_t> from,
                              llvm::ArrayRef<int64_t> to);

} // namespace whale

#endif // WHALE_PLACEMENT_BOX_H
