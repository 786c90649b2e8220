//===- BufferTurns.h - Results that take turns ------------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the buffer plan: the results of several calls of a segment, or of
// instructions of a group, take turns in a few slots of the arena.
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_STEP_BUFFERTURNS_H
#define WHALE_LIB_STEP_BUFFERTURNS_H

#include "BufferSharing.h"

namespace whale {

/// Bytes of the arena in which values take turns. Those of one size and type
/// are one class.
struct TurnSlot {
  int64_t bytes = 0;
  /// When its last value dies.
  int64_t end = 0;
  llvm::SmallVector<unsigned, 1> classes = {};
  /// The number of its request for a place.
  std::optional<size_t> request = std::nullopt;
};

class BufferTurns {
public:
  BufferTurns(const BufferFunction &function, BufferSharing &sharing)
      : function(function), sharing(sharing) {}

  /// Gives repeated results slots, and merges the classes of those that have
  /// one slot, size and type. Without `largeTakeTurns`, each large result has
  /// one of its own.
  void run(bool largeTakeTurns);

  llvm::ArrayRef<TurnSlot> getSlots() const { return slots; }
  /// Returns null if the class has none.
  TurnSlot *slotOf(unsigned number) {
    return slotNumbers.empty() || !slotNumbers[number]
               ? nullptr
               : &slots[*slotNumbers[number]];
  }
  size_t getLargeCount() const { return largeCount; }

private:
  /// Values that take turns are results with one index of calls, or of
  /// instructions of a group. If they are small, also of one segment or group.
  struct Family {
    bool isCall;
    std::optional<unsigned> number;
    size_t result;
    auto operator<=>(const Family &) const = default;
  };
  std::vector<std::pair<unsigned, Family>> findRepeated();
  int64_t birth(unsigned number) const {
    return sharing[number].intervals.front().begin;
  }
  void addToSlot(unsigned number, unsigned c);

  const BufferFunction &function;
  BufferSharing &sharing;
  std::vector<TurnSlot> slots;
  size_t largeCount = 0;
  /// By class: its slot.
  std::vector<std::optional<unsigned>> slotNumbers;
};

} // namespace whale

#endif // WHALE_LIB_STEP_BUFFERTURNS_H
