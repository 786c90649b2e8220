//===- Pieces.h - Who has which part of a box -------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_PIECES_H
#define WHALE_PROGRAMFORMAT_PIECES_H

#include "whale/ProgramFormat/Layout.h"

#include <functional>
#include <utility>

namespace whale::format {

/// Returns where `part`, a box inside of `box`, starts in that one's shard.
Shape startIn(const Box &box, const Box &part);

/// Returns the first element of `part`, which is not empty, in the shard of
/// `box`, and one behind the last.
std::pair<int64_t, int64_t> rangeIn(const Box &box, const Box &part);

/// Returns how far apart elements are along each dimension of a shard.
Shape denseStrides(const Shape &size);

/// A part of a box, and who gives it.
struct Piece {
  size_t holder;
  Box box;
  bool operator==(const Piece &) const = default;
};

/// Returns one of those that have a piece, given in the order of all holders.
using ChooseHolder =
    std::function<size_t(const Box &piece, std::span<const size_t> holders)>;

/// Returns what a box is pieced together from, in row-major order: it is cut
/// where boxes of `holders`, numbers of boxes of `layout`, begin or end in it,
/// and `choose` says who gives each piece. What nobody has is left out. Cost:
/// the pieces, times the holders of each. Throws system::Error for more pieces
/// than layouts of real placements have.
std::vector<Piece> piecesOf(const Box &box, const Layout &layout,
                            std::span<const size_t> holders,
                            const ChooseHolder &choose);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_PIECES_H
