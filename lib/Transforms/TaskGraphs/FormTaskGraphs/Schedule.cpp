//===- Schedule.cpp - Order operations into few pieces --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace mlir;

namespace whale {

namespace {

class Scheduler {
public:
  Scheduler(ArrayRef<Operation *> ops, ArrayRef<TaskGraphKey> keys)
      : users(ops.size()), producers(ops.size()), missing(ops.size()),
        keyOf(ops.size()), isDone(ops.size()) {
    number(keys);
    connect(ops);
  }

  SmallVector<size_t> run() {
    for (size_t i = 0; i < users.size(); ++i)
      if (missing[i] == 0)
        ready[keyOf[i]].insert(i);
    SmallVector<size_t> order;
    while (order.size() < users.size()) {
      size_t key = nextKey();
      while (!ready[key].empty()) {
        size_t op = *ready[key].begin();
        ready[key].erase(ready[key].begin());
        order.push_back(op);
        isDone[op] = true;
        for (size_t user : users[op])
          if (--missing[user] == 0)
            ready[keyOf[user]].insert(user);
      }
    }
    return order;
  }

private:
  void number(ArrayRef<TaskGraphKey> keys) {
    DenseMap<std::pair<Attribute, unsigned>, size_t> numbers;
    for (auto [i, key] : llvm::enumerate(keys)) {
      auto [it, isNew] = numbers.try_emplace(
          {key.strategy, static_cast<unsigned>(key.phase)}, phases.size());
      if (isNew) {
        phases.push_back(key.phase);
        members.emplace_back();
      }
      keyOf[i] = it->second;
      members[it->second].push_back(i);
    }
    ready.resize(phases.size());
  }

  void connect(ArrayRef<Operation *> ops) {
    DenseMap<Operation *, size_t> index;
    for (auto [i, op] : llvm::enumerate(ops))
      index[op] = i;
    std::optional<size_t> lastEffect;
    for (auto [i, op] : llvm::enumerate(ops)) {
      llvm::SmallSetVector<size_t, 8> before;
      forEachRead(op, [&](Value value) {
        auto it = index.find(value.getDefiningOp());
        if (it != index.end())
          before.insert(it->second);
      });
      if (!isMemoryEffectFree(op)) {
        if (lastEffect)
          before.insert(*lastEffect);
        lastEffect = i;
      }
      missing[i] = before.size();
      producers[i].assign(before.begin(), before.end());
      for (size_t producer : before)
        users[producer].push_back(i);
    }
  }

  size_t nextKey() {
    std::optional<size_t> best;
    std::tuple<Phase, bool, size_t> bestRank;
    for (size_t key = 0; key < ready.size(); ++key) {
      if (ready[key].empty())
        continue;
      std::tuple<Phase, bool, size_t> rank = {phases[key], !completes(key),
                                              *ready[key].begin()};
      if (!best || rank < bestRank) {
        best = key;
        bestRank = rank;
      }
    }
    assert(best && "operations of a block can't depend on each other");
    return *best;
  }

  /// Whether nothing that is left of `key` waits for another key.
  bool completes(size_t key) {
    return llvm::all_of(members[key], [&](size_t op) {
      return isDone[op] || llvm::all_of(producers[op], [&](size_t producer) {
               return isDone[producer] || keyOf[producer] == key;
             });
    });
  }

  SmallVector<SmallVector<size_t>> users;
  SmallVector<SmallVector<size_t>> producers;
  /// For each operation, how many producers are to come.
  SmallVector<size_t> missing;
  SmallVector<size_t> keyOf;
  SmallVector<bool> isDone;
  /// For each key: its phase, its operations, which of them
  /// are ready.
  SmallVector<Phase> phases;
  SmallVector<SmallVector<size_t>> members;
  std::vector<std::set<size_t>> ready;
};

} // namespace

SmallVector<size_t> scheduleByKey(ArrayRef<Operation *> ops,
                                  ArrayRef<TaskGraphKey> keys) {
  return Scheduler(ops, keys).run();
}

} // namespace whale
