//===- BufferSharing.h - Values that share a buffer -------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the buffer plan: classes of values that share a buffer, and which
// classes are ranges of another one. Whoever plans says in which order values
// are merged.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_STEP_BUFFERSHARING_H
#define WHALE_LIB_STEP_BUFFERSHARING_H

#include "BufferLiveness.h"
#include "whale/Step/BufferPlan.h"

namespace whale {

/// Roots that share a buffer; `intervals` ascend.
struct SharedBuffer {
  std::vector<LiveInterval> intervals;
  int64_t bytes = 0;
  unsigned type = 0;
  bool readOnly = false;
  std::optional<BufferSpace> space;
  unsigned index = 0;
  int64_t offset = 0;
  /// Whether a result of the function is here.
  bool isResult = false;
  /// The class that this one is a range of, from byte `offset` on.
  std::optional<unsigned> whole;
  /// The classes that are ranges of this one.
  std::vector<unsigned> pieces;

  /// The intervals, shortened where one member passes the buffer to the next.
  TimeIntervals times() const;
};

/// A value that is a range of another one, in a pack or unpack.
struct Piece {
  unsigned value;
  unsigned whole;
  int64_t offset;
};

/// The parts of one instruction; none if it is neither a pack nor an unpack.
std::vector<Piece> piecesOf(const BufferFunction &function,
                            const BufferInstr &instr);

class BufferSharing {
public:
  /// Each root is a class. The buffers of the arguments in `written` may be
  /// written.
  BufferSharing(const BufferFunction &function, const BufferLiveness &liveness,
                llvm::ArrayRef<unsigned> written);

  unsigned classOf(unsigned value) const {
    return classes[liveness.root(value)];
  }
  SharedBuffer &operator[](unsigned number) { return shared[number]; }
  size_t size() const { return shared.size(); }

  /// Merges the classes of two values. Returns false if that is impossible;
  /// with `always`, the caller knows that it is possible.
  bool merge(unsigned a, unsigned b, bool always = false);
  /// Merges where it is possible, in inner loops first: their copies would run
  /// most often.
  void merge(const std::vector<BufferLiveness::Wish> &wishes);
  /// Makes values of packs and unpacks ranges of the whole's buffer, where
  /// neither has a place already and nothing else needs the range.
  void placePieces();

private:
  bool conflict(const SharedBuffer &a, const SharedBuffer &b) const;
  bool canJoin(const SharedBuffer &other, unsigned piece) const;
  void placePiece(const Piece &piece);

  const BufferFunction &function;
  const BufferLiveness &liveness;
  /// By root: its class; by class: its buffer and its roots.
  std::vector<unsigned> classes;
  std::vector<SharedBuffer> shared;
  std::vector<std::vector<unsigned>> members;
};

} // namespace whale

#endif // WHALE_LIB_STEP_BUFFERSHARING_H
