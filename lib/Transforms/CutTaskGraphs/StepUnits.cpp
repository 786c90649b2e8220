//===- StepUnits.cpp - Which operations stand together --------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepUnits.h"
#include "whale/Transforms/Feedback.h"
#include "whale/Transforms/ScopePath.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace whale {

std::optional<std::pair<int64_t, int64_t>>
forwardUsers(const Step &step, const StepUnits &units, Value value) {
  std::optional<std::pair<int64_t, int64_t>> range;
  Block *body = value.getParentBlock();
  for (Operation *user : value.getUsers()) {
    Operation *ancestor = ancestorInMain(user, body);
    auto it = step.find(ancestor);
    auto unit = units.unitOf.find(ancestor);
    if (it == step.end() || it->second.phase != Phase::Forward ||
        unit == units.unitOf.end())
      continue;
    int64_t at = unit->second;
    range = range ? std::pair(std::min(range->first, at),
                              std::max(range->second, at))
                  : std::pair(at, at);
  }
  return range;
}

namespace {

/// What an operation depends on.
enum Source : unsigned { None = 0, State = 1, Data = 2 };

class Finder {
public:
  Finder(const Step &step, func::FuncOp main)
      : step(step), main(main), body(&main.front()) {}

  StepUnits run() {
    findSources();
    placeForward();
    for (auto &[op, info] : step)
      if (info.phase == Phase::Backward && !units.free.contains(op))
        if (std::optional<int64_t> unit = unitOfBackward(op))
          units.unitOf[op] = *unit;
    placeRest();
    return std::move(units);
  }

private:
  void findSources() {
    SmallVector<std::optional<unsigned>> next = findFeedback(main);
    bool hasBatch = false;
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      hasBatch |= bool(main.getArgAttr(i, "whale.batch_dim"));
    for (BlockArgument argument : main.getArguments()) {
      unsigned i = argument.getArgNumber();
      bool isData = hasBatch ? bool(main.getArgAttr(i, "whale.batch_dim"))
                             : !next[i].has_value();
      sources[argument] = isData ? Data : State;
    }
    for (auto &[op, info] : step) {
      unsigned &from = sourceOf[op];
      forEachOperand(op, [&](Value value) {
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
        units.unitOf[op] = units.operations.size();
        units.operations.push_back(op);
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
        units.unitOf[op] = *first;
    }
  }

  std::optional<int64_t> unitOfBackward(Operation *op) {
    bool isAgain =
        StringRef(namePath(op->getLoc())).contains("rematted_computation");
    std::optional<int64_t> unit;
    forEachOperand(op, [&](Value value) {
      Operation *producer = ancestorInMain(value.getDefiningOp(), body);
      if (producer && units.free.contains(producer))
        return;
      std::optional<int64_t> at;
      if (auto it = units.unitOf.find(producer); it != units.unitOf.end())
        at = it->second;
      auto from = step.find(producer);
      if (from == step.end() || from->second.phase == Phase::Forward)
        if (auto users = forwardUsers(step, units, value)) {
          int64_t user = isAgain ? users->first : users->second;
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
          last = std::max(last, it->second);
      units.unitOf[op] =
          last >= 0 ? last : int64_t(units.operations.size()) - 1;
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
  return Finder(step, main).run();
}

} // namespace whale
