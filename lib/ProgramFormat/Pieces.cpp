//===- Pieces.cpp - Who has which part of a box -----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/ProgramFormat/Pieces.h"

#include <algorithm>

namespace whale::format {

Shape startIn(const Box &box, const Box &part) {
  Shape start = part.start;
  for (size_t i = 0; i < start.size(); ++i)
    start[i] -= box.start[i];
  return start;
}

std::vector<Piece> piecesOf(const Box &box, const Layout &layout,
                            std::span<const size_t> holders) {
  std::vector<Piece> pieces;
  for (size_t holder : holders) {
    const std::optional<Box> &held = layout.boxes[holder];
    std::optional<Box> common = held ? intersect(box, *held) : std::nullopt;
    if (!common)
      continue;
    if (*common == box)
      return {{holder, box}};
    if (std::ranges::find(pieces, *common, &Piece::box) == pieces.end())
      pieces.push_back({holder, std::move(*common)});
  }
  return pieces;
}

} // namespace whale::format
