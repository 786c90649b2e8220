//===- BufferTurns.cpp - Results that take turns ----------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Large results also share a slot where their segments differ, if they have
// about one size. Linear in the results, but for a search among the slots of
// about one size.
//
//===----------------------------------------------------------------------===//

#include "BufferTurns.h"

#include "BufferArena.h"
#include "llvm/ADT/STLExtras.h"

#include <map>

namespace whale {

/// Values of more than one part in this many of the largest have places of
/// their own where large values take no turns.
static constexpr int64_t ownShare = 64;

/// A large value takes turns in a slot whose bytes differ from its own by at
/// most one part in this many; the slot grows where it must. With 2, small
/// shares wasted more in slots of large ones than this saves.
static constexpr int64_t slotTolerance = 4;

// Returns the classes of values that several calls of a segment, or
// instructions of a group, have, in the order in which they are born.
std::vector<std::pair<unsigned, BufferTurns::Family>>
BufferTurns::findRepeated() {
  std::vector<std::pair<unsigned, Family>> found;
  std::map<Family, size_t> counts;
  std::vector<bool> known(sharing.size());
  for (const BufferInstr &instr : function.body.instrs) {
    bool isCall = instr.kind == BufferInstr::Call;
    if (!isCall && !instr.group)
      continue;
    for (auto [k, result] : llvm::enumerate(instr.results)) {
      unsigned c = sharing.classOf(result);
      if (known[c] || sharing[c].space || sharing[c].intervals.empty() ||
          sharing[c].whole || !sharing[c].pieces.empty())
        continue;
      known[c] = true;
      Family family{isCall, isCall ? instr.callee : *instr.group, k};
      found.push_back({c, family});
      ++counts[family];
    }
  }
  llvm::erase_if(found, [&](auto &entry) { return counts[entry.second] == 1; });
  llvm::sort(found, [&](const auto &a, const auto &b) {
    return std::pair(birth(a.first), a.first) <
           std::pair(birth(b.first), b.first);
  });
  return found;
}

// The values of one result of a segment at different calls differ only in time:
// they share as few slots of the arena as their live ranges allow. A large one
// also takes turns with those of other segments: where a rank's share differs
// between micro-batches, their segments and sizes do too. It takes the free
// slot whose size is nearest to its own, which grows where it must.
void BufferTurns::run(bool largeTakeTurns) {
  if (function.segments.empty())
    return;
  std::vector<std::pair<unsigned, Family>> repeated = findRepeated();
  int64_t largest = 0;
  for (auto &[c, family] : repeated)
    largest = std::max(largest, sharing[c].bytes);
  // By family, and the bytes of the slot.
  using Sizes = std::multimap<int64_t, unsigned>;
  std::map<Family, Sizes> sizes;
  auto findFree = [&](unsigned c, int64_t tolerance, Sizes &bySize) {
    auto nearest = bySize.end();
    int64_t bytes = sharing[c].bytes;
    auto distance = [&](auto it) { return std::abs(it->first - bytes); };
    for (auto it = bySize.lower_bound(bytes - tolerance),
              last = bySize.upper_bound(bytes + tolerance);
         it != last; ++it) {
      if (slots[it->second].end <= birth(c) &&
          (nearest == bySize.end() || distance(it) < distance(nearest)))
        nearest = it;
    }
    return nearest;
  };
  slotNumbers.assign(sharing.size(), std::nullopt);
  for (auto [c, family] : repeated) {
    const int64_t bytes = sharing[c].bytes;
    bool canBeAlone = bytes > largest / ownShare;
    largeCount += canBeAlone;
    if (canBeAlone && !largeTakeTurns) {
      slots.push_back({bytes});
      addToSlot(slots.size() - 1, c);
      continue;
    }
    bool isLarge = whale::isLarge(bytes, largest);
    if (isLarge)
      family.number = std::nullopt;
    Sizes &bySize = sizes[family];
    auto free = findFree(c, isLarge ? bytes / slotTolerance : 0, bySize);
    if (free == bySize.end()) {
      free = bySize.insert({bytes, slots.size()});
      slots.push_back({bytes});
    } else if (free->first < bytes) {
      unsigned number = free->second;
      bySize.erase(free);
      free = bySize.insert({bytes, number});
      slots[number].bytes = bytes;
    }
    addToSlot(free->second, c);
  }
}

/// Values of one size and type in a slot have one buffer.
void BufferTurns::addToSlot(unsigned number, unsigned c) {
  TurnSlot &slot = slots[number];
  slot.end = sharing[c].times().back().second;
  auto same = llvm::find_if(slot.classes, [&](unsigned other) {
    return sharing[other].bytes == sharing[c].bytes &&
           sharing[other].type == sharing[c].type;
  });
  if (same != slot.classes.end()) {
    sharing.merge(*same, c, /*always=*/true);
    return;
  }
  slot.classes.push_back(c);
  slotNumbers[c] = number;
}

} // namespace whale
