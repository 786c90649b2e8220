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

namespace whale::format {

/// Returns where `part`, a box inside of `box`, starts in that one's shard.
Shape startIn(const Box &box, const Box &part);

/// A part of a box, and who has it.
struct Piece {
  size_t holder;
  Box box;
  bool operator==(const Piece &) const = default;
};

/// Returns what a box is pieced together from: all of it from the first of
/// `holders`, numbers of boxes of `layout`, that has all of it, else its part
/// from each, from the first of those that have the same.
std::vector<Piece> piecesOf(const Box &box, const Layout &layout,
                            std::span<const size_t> holders);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_PIECES_H
