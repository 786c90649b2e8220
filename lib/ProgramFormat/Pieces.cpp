//===- Pieces.cpp - Who has which part of a box -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Pieces.h"

#include "whale/System/Error.h"

#include <algorithm>

namespace whale::format {

Shape startIn(const Box &box, const Box &part) {
  Shape start = part.start;
  for (size_t i = 0; i < start.size(); ++i)
    start[i] -= box.start[i];
  return start;
}

std::pair<int64_t, int64_t> rangeIn(const Box &box, const Box &part) {
  Shape first = startIn(box, part);
  int64_t begin = 0, end = 0;
  for (size_t d = 0; d < first.size(); ++d) {
    begin = begin * box.size[d] + first[d];
    end = end * box.size[d] + first[d] + part.size[d] - 1;
  }
  return {begin, end + 1};
}

Shape denseStrides(const Shape &size) {
  Shape strides(size.size());
  for (size_t d = 0; d < size.size(); ++d)
    strides[d] = elementCount(std::span(size).subspan(d + 1));
  return strides;
}

namespace {
/// A box that is cut along each dimension; its cells are counted in row-major
/// order.
class Grid {
public:
  /// Cuts `box` where `parts`, boxes inside of it, begin and end.
  Grid(const Box &box, const std::vector<std::pair<size_t, Box>> &parts);

  size_t cells() const { return count; }
  Box cell(size_t number) const;
  /// Calls `visit` with the number of each cell of one of the parts.
  template <typename Visit>
  void forEachCellOf(const Box &part, const Visit &visit, size_t dim = 0,
                     size_t number = 0) const;

private:
  /// By dimension, ascending: where cells begin, and where the last one ends.
  std::vector<Shape> cuts;
  size_t count = 1;
};
} // namespace

Grid::Grid(const Box &box, const std::vector<std::pair<size_t, Box>> &parts) {
  constexpr size_t most = size_t(1) << 22;
  for (size_t d = 0; d < box.start.size(); ++d) {
    Shape &ends = cuts.emplace_back();
    ends = {box.start[d], box.start[d] + box.size[d]};
    for (const auto &[holder, part] : parts) {
      ends.push_back(part.start[d]);
      ends.push_back(part.start[d] + part.size[d]);
    }
    std::ranges::sort(ends);
    ends.erase(std::ranges::unique(ends).begin(), ends.end());
    count *= ends.size() - 1;
    if (count > most)
      throw system::Error("the boxes are too fragmented");
  }
}

Box Grid::cell(size_t number) const {
  Box box = {Shape(cuts.size()), Shape(cuts.size())};
  for (size_t d = cuts.size(); d-- > 0;) {
    size_t cells = cuts[d].size() - 1, i = number % cells;
    number /= cells;
    box.start[d] = cuts[d][i];
    box.size[d] = cuts[d][i + 1] - cuts[d][i];
  }
  return box;
}

template <typename Visit>
void Grid::forEachCellOf(const Box &part, const Visit &visit, size_t dim,
                         size_t number) const {
  if (dim == cuts.size())
    return visit(number);
  const Shape &ends = cuts[dim];
  auto i = static_cast<size_t>(std::ranges::lower_bound(ends, part.start[dim]) -
                               ends.begin());
  for (; ends[i] < part.start[dim] + part.size[dim]; ++i)
    forEachCellOf(part, visit, dim + 1, number * (ends.size() - 1) + i);
}

std::vector<Piece> piecesOf(const Box &box, const Layout &layout,
                            std::span<const size_t> holders,
                            const ChooseHolder &choose) {
  std::vector<std::pair<size_t, Box>> parts;
  for (size_t holder : holders)
    if (const std::optional<Box> &held = layout.boxes[holder])
      if (std::optional<Box> part = intersect(box, *held))
        parts.emplace_back(holder, std::move(*part));
  if (parts.empty())
    return {};
  Grid grid(box, parts);
  std::vector<std::vector<size_t>> holdersOf(grid.cells());
  for (const auto &[holder, part] : parts)
    grid.forEachCellOf(part,
                       [&](size_t cell) { holdersOf[cell].push_back(holder); });
  std::vector<Piece> pieces;
  for (size_t cell = 0; cell < grid.cells(); ++cell) {
    if (holdersOf[cell].empty())
      continue;
    Box piece = grid.cell(cell);
    size_t holder = choose(piece, holdersOf[cell]);
    pieces.push_back({holder, std::move(piece)});
  }
  return pieces;
}

} // namespace whale::format
