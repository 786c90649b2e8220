//===- BufferPeak.cpp - What is held when most is ---------------*- C++ -*-===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a function and its buffer plan. Out: what is in the arena when it is
// fullest. The live ranges of all values, those of segments at each of their
// calls, are swept twice in the order of their begins: to find how many bytes
// are most, and to list them where they are reached first. Cost: sorting the
// ranges.
//
//===----------------------------------------------------------------------===//

#include "whale/Step/BufferPeak.h"

#include "BufferLiveness.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

namespace whale {
namespace {

/// A value in the arena, from one time to another.
struct Use {
  int64_t begin, end;
  /// The buffer that no other one is a range of, and the value's own; unique
  /// among the function and its segments.
  size_t whole, buffer;
  HeldValue held;
};

/// The arena at one time: by whole buffer what is in it.
class Arena {
public:
  void add(const Use &use) {
    change(use, [&](auto &uses) { uses.push_back(&use); });
  }
  void remove(const Use &use) {
    change(use, [&](auto &uses) { llvm::erase(uses, &use); });
  }
  int64_t getBytes() const { return bytes; }

  /// The last value of each buffer; ranges only where the whole is not there.
  std::vector<HeldValue> list() const {
    std::vector<HeldValue> values;
    for (const auto &[whole, uses] : inUse)
      forEachBuffer(whole, uses,
                    [&](const Use &use) { values.push_back(use.held); });
    return values;
  }

private:
  using Uses = std::vector<const Use *>;

  template <typename Fn>
  static void forEachBuffer(size_t whole, const Uses &uses, Fn fn) {
    std::map<size_t, const Use *> last;
    for (const Use *use : uses)
      last[use->buffer] = use;
    if (auto it = last.find(whole); it != last.end())
      return fn(*it->second);
    for (const auto &[buffer, use] : last)
      fn(*use);
  }

  template <typename Change>
  void change(const Use &use, Change apply) {
    Uses &uses = inUse[use.whole];
    auto sum = [&](int64_t sign) {
      forEachBuffer(use.whole, uses,
                    [&](const Use &one) { bytes += sign * one.held.bytes; });
    };
    sum(-1);
    apply(uses);
    sum(1);
  }

  std::map<size_t, Uses> inUse;
  int64_t bytes = 0;
};

/// Appends the uses of the arena by the values of a function or segment, whose
/// buffers have numbers from `first` on, for each of the times at which it
/// begins.
void addUses(const BufferFunction &function, const BufferPlan &plan,
             std::optional<unsigned> segment, llvm::ArrayRef<int64_t> begins,
             size_t first, std::vector<Use> &uses) {
  BufferLiveness liveness(function);
  for (unsigned value = 0; value < function.values.size(); ++value) {
    unsigned buffer = plan.bufferOf[value], whole = buffer;
    const PlannedBuffer &planned = plan.buffers[buffer];
    if (planned.space != BufferSpace::Arena || planned.bytes == 0 ||
        liveness.root(value) != value)
      continue;
    while (plan.buffers[whole].whole)
      whole = *plan.buffers[whole].whole;
    for (const LiveInterval &alive : liveness.intervals(value))
      for (auto [call, begin] : llvm::enumerate(begins))
        uses.push_back({begin + alive.begin,
                        begin + alive.end,
                        first + whole,
                        first + buffer,
                        {segment, value, planned.bytes, unsigned(call)}});
  }
}

} // namespace

std::vector<HeldValue> findPeak(const BufferFunction &function,
                                const BufferPlan &plan) {
  std::vector<Use> uses;
  addUses(function, plan, std::nullopt, 0, 0, uses);
  size_t first = plan.buffers.size();
  BufferLiveness liveness(function);
  for (auto [number, segment] : llvm::enumerate(function.segments)) {
    addUses(*segment->function, segment->plan, unsigned(number),
            liveness.calls[number], first, uses);
    first += segment->plan.buffers.size();
  }

  std::vector<const Use *> begins, ends;
  for (const Use &use : uses)
    if (use.begin < use.end) {
      begins.push_back(&use);
      ends.push_back(&use);
    }
  llvm::sort(begins, [](const Use *a, const Use *b) {
    return std::pair(a->begin, a) < std::pair(b->begin, b);
  });
  llvm::sort(ends, [](const Use *a, const Use *b) {
    return std::pair(a->end, a) < std::pair(b->end, b);
  });
  // Calls `found` where the bytes are as many as `most`, or more.
  auto sweep = [&](int64_t most, llvm::function_ref<bool(Arena &)> found) {
    Arena arena;
    auto end = ends.begin();
    for (const Use *use : begins) {
      for (; (*end)->end <= use->begin; ++end)
        arena.remove(**end);
      arena.add(*use);
      if (arena.getBytes() >= most && found(arena))
        return;
    }
  };
  int64_t most = 0;
  sweep(1, [&](Arena &arena) {
    most = std::max(most, arena.getBytes());
    return false;
  });
  std::vector<HeldValue> held;
  sweep(std::max<int64_t>(most, 1), [&](Arena &arena) {
    held = arena.list();
    return true;
  });
  return held;
}

} // namespace whale
