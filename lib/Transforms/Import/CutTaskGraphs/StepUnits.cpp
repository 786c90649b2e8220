//===- StepUnits.cpp - Which operations are together ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the operations of a step with their phases. Out: units in topological
// order, and the units of each operation, by the rules of findUnits. First it
// finds what each operation depends on: nothing, parameters, or data. Forward
// operations on data become units. Those on parameters go from the last to the
// first, so that their users have units; backward ones from the first to the
// last; all others from the last to the first. Cost: for each value that an
// operation reads, a walk over the users of the value.
//
//===----------------------------------------------------------------------===//

#include "StepUnits.h"
#include "SplitLoop.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Dialect/Whale/IR/WhaleRecomputeOps.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Feedback.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace whale {

std::optional<UnitRange> forwardUsers(const Step &step, const StepUnits &units,
                                      Value value) {
  std::optional<UnitRange> range;
  Block *body = value.getParentBlock();
  for (Operation *user : value.getUsers()) {
    Operation *ancestor = ancestorInMain(user, body);
    auto it = step.find(ancestor);
    auto unit = units.unitOf.find(ancestor);
    if (it == step.end() || it->second.phase != Phase::Forward ||
        unit == units.unitOf.end())
      continue;
    auto [first, last] = unit->second;
    range = range ? UnitRange{std::min(range->first, first),
                              std::max(range->last, last)}
                  : UnitRange{first, last};
  }
  return range;
}

namespace {

/// What an operation depends on.
enum Source : unsigned { None = 0, State = 1, Data = 2 };

class UnitFinder {
public:
  UnitFinder(const Step &step, func::FuncOp main)
      : step(step), main(main), body(&main.front()) {}

  StepUnits run() {
    findSources();
    placeForward();
    for (auto &[op, info] : step)
      if (info.phase == Phase::Backward && !units.free.contains(op)) {
        if (Operation *partner = partnerOf(op))
          units.unitOf[op] = units.unitOf[partner];
        else if (std::optional<int64_t> unit = unitOfBackward(op))
          units.unitOf[op] = {*unit, *unit};
      }
    placeRest();
    return std::move(units);
  }

private:
  void findSources() {
    SmallVector<std::optional<unsigned>> next = findFeedback(main);
    bool hasBatch = false;
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      hasBatch |= bool(main.getArgAttr(i, kBatchDimAttr));
    for (BlockArgument argument : main.getArguments()) {
      unsigned i = argument.getArgNumber();
      bool isData = hasBatch ? bool(main.getArgAttr(i, kBatchDimAttr))
                             : !next[i].has_value();
      sources[argument] = isData ? Data : State;
    }
    for (auto &[op, info] : step) {
      unsigned &from = sourceOf[op];
      forEachRead(op, [&](Value value) {
        if (isa<BlockArgument>(value))
          from |= sources.lookup(value);
        else
          from |= sourceOf.lookup(ancestorInMain(value.getDefiningOp(), body));
      });
      if (from == None && isMemoryEffectFree(op))
        units.free.insert(op);
      hasData |= (from & Data) != 0;
    }
  }

  void placeForward() {
    for (auto &[op, info] : step)
      if (info.phase == Phase::Forward && !units.free.contains(op) &&
          (!hasData || (sourceOf[op] & Data))) {
        int64_t first = units.operations.size(), size = 1;
        if (auto loop = dyn_cast<stablehlo::WhileOp>(op);
            loop && LoopSplitter::canSplit(loop))
          size = *tripCount(loop);
        units.operations.append(size, op);
        units.unitOf[op] = {first, first + size - 1};
      }
    // On parameters alone.
    for (auto &[op, info] : llvm::reverse(step)) {
      if (info.phase != Phase::Forward || units.free.contains(op) ||
          units.unitOf.contains(op))
        continue;
      std::optional<int64_t> first;
      for (Value result : op->getResults())
        if (auto users = forwardUsers(step, units, result))
          first = first ? std::min(*first, users->first) : users->first;
      if (first)
        units.unitOf[op] = {*first, *first};
    }
  }

  /// The forward loop whose iterations a backward loop goes back over.
  Operation *partnerOf(Operation *op) {
    auto loop = dyn_cast<stablehlo::WhileOp>(op);
    if (!loop || !LoopSplitter::canSplit(loop))
      return nullptr;
    llvm::MapVector<Operation *, unsigned> shared;
    forEachRead(op, [&](Value value) {
      auto count = [&](Operation *candidate) {
        auto other = dyn_cast_or_null<stablehlo::WhileOp>(candidate);
        auto range = units.unitOf.find(candidate);
        if (other && other != op && range != units.unitOf.end() &&
            step.find(other)->second.phase == Phase::Forward &&
            LoopSplitter::canSplit(other) &&
            tripCount(other) == tripCount(loop))
          ++shared[other];
      };
      count(value.getDefiningOp());
      llvm::SmallPtrSet<Operation *, 4> users;
      for (Operation *user : value.getUsers())
        if (Operation *ancestor = ancestorInMain(user, body);
            users.insert(ancestor).second)
          count(ancestor);
    });
    auto *best = llvm::max_element(
        shared, [](auto &a, auto &b) { return a.second < b.second; });
    return best == shared.end() ? nullptr : best->first;
  }

  std::optional<int64_t> unitOfBackward(Operation *op) {
    bool isAgain = isRematerialized(op);
    std::optional<int64_t> unit;
    forEachRead(op, [&](Value value) {
      Operation *producer = ancestorInMain(value.getDefiningOp(), body);
      if (producer && units.free.contains(producer))
        return;
      std::optional<int64_t> at;
      auto from = step.find(producer);
      bool isForward =
          from == step.end() || from->second.phase == Phase::Forward;
      if (auto it = units.unitOf.find(producer); it != units.unitOf.end())
        at = isForward ? it->second.last : it->second.first;
      if (isForward)
        if (auto users = forwardUsers(step, units, value)) {
          int64_t user = isAgain ? users->first : users->last;
          at = at ? std::max(*at, user) : user;
        }
      if (at)
        unit = !unit     ? *at
               : isAgain ? std::max(*unit, *at)
                         : std::min(*unit, *at);
    });
    return unit;
  }

  /// What serves only later phases, or depends on nothing that has a unit.
  void placeRest() {
    for (auto &[op, info] : llvm::reverse(step)) {
      if (info.phase == Phase::Apply || units.free.contains(op) ||
          units.unitOf.contains(op))
        continue;
      int64_t last = -1;
      for (Operation *user : op->getUsers())
        if (auto it = units.unitOf.find(ancestorInMain(user, body));
            it != units.unitOf.end())
          last = std::max(last, it->second.last);
      if (last < 0)
        last = int64_t(units.operations.size()) - 1;
      units.unitOf[op] = {last, last};
    }
  }

  const Step &step;
  func::FuncOp main;
  Block *body;
  DenseMap<Value, unsigned> sources;
  DenseMap<Operation *, unsigned> sourceOf;
  /// Whether any operation depends on data; else parameters are the data.
  bool hasData = false;
  StepUnits units;
};

} // namespace

StepUnits findUnits(const Step &step, func::FuncOp main) {
  return UnitFinder(step, main).run();
}

} // namespace whale
