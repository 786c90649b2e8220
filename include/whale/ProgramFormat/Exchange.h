//===- Exchange.h - Many arrays go to other layouts -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One exchange brings a list of arrays from the layouts that they have to those
// that are wanted. Views and numbers of ranks may differ: boxes are cut in the
// common refinement of the views (CommonView.h). A piece that several hold
// comes from one of them, which is chosen with a view to all arrays.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_PROGRAMFORMAT_EXCHANGE_H
#define WHALE_PROGRAMFORMAT_EXCHANGE_H

#include "whale/ProgramFormat/Layout.h"

#include <span>
#include <vector>

namespace whale::format {

/// An array that goes from one layout to another.
struct Move {
  int64_t elementBytes;
  const Layout &from, &to;
  /// By rank of each layout, its process; of `from` empty where every process
  /// has all shards.
  std::vector<int64_t> fromProcess, toProcess;
};

/// A part of a shard that becomes a part of another one, in elements.
struct MovedPiece {
  size_t move;
  /// A rank of each layout.
  size_t owner, receiver;
  /// Their processes.
  int64_t sender, taker;
  Shape size;
  /// Where it begins in each shard, and how far apart elements are there.
  int64_t fromOffset, toOffset;
  Shape fromStrides, toStrides;

  int64_t elements() const { return elementCount(size); }
  /// One behind its last element in the owner's shard.
  int64_t fromEnd() const;
  bool isLocal() const { return sender == taker; }
};

/// Returns what moves, by move, receiver, and the elements of its box. A piece
/// is taken from the rank itself, else from its process, else from its host,
/// else from the owner whose host, then whose process, sends the fewest bytes
/// so far over all moves, then from the lowest rank. `hostOf` is by process.
/// All processes must call it with the same values. Elements that nobody holds
/// are left out. Cost: the pieces, times the holders of each; a box of each
/// receiver is compared with those of all owners.
std::vector<MovedPiece> exchangeOf(std::span<const Move> moves,
                                   std::span<const unsigned> hostOf);

} // namespace whale::format

#endif // WHALE_PROGRAMFORMAT_EXCHANGE_H
