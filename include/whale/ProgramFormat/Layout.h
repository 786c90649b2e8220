//===- Layout.h - Which part of a tensor each rank holds --------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layout gives each rank a box of the tensor, in the coordinates of a view:
// factor extents whose row-major product is the tensor's shape ([D, 3D] seen as
// [D, 3, D]). A shard is the dense row-major buffer over a rank's box.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_LAYOUT_H
#define WHALE_PROGRAMFORMAT_LAYOUT_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace whale::format {

using Shape = std::vector<int64_t>;

/// Returns the product of the extents; 1 for a scalar. The shape must have been
/// validated, so that the product does not overflow.
int64_t elementCount(std::span<const int64_t> shape);

/// Returns the text of a shape: "[2, 3]".
std::string toString(std::span<const int64_t> shape);

/// A box: along each dimension the indices [start, start + size).
struct Box {
  Shape start;
  Shape size;

  static Box whole(Shape view) {
    return {Shape(view.size(), 0), std::move(view)};
  }
  int64_t elements() const { return elementCount(size); }
  bool operator==(const Box &) const = default;
};

/// The box of each rank; nullopt for a rank that holds no part.
struct Layout {
  Shape view;
  std::vector<std::optional<Box>> boxes;

  /// Returns the layout with one holder (a host, or the only rank) of the whole
  /// tensor.
  static Layout whole(const Shape &shape) {
    return {shape, {Box::whole(shape)}};
  }
  bool operator==(const Layout &) const = default;
};

/// Returns the intersection of two boxes, or nullopt if it is empty.
std::optional<Box> intersect(const Box &a, const Box &b);

/// Whether the boxes cover every element of `view`.
bool covers(const Shape &view, std::span<const std::optional<Box>> boxes);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_LAYOUT_H
