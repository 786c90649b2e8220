//===- KeepReceived.cpp - Keep what a stage has instead of sending anew ---===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main, with the TaskGraph and phase of each operation. Out: the same,
// where no backward needs what the backward of an earlier TaskGraph computes
// again: it takes what the forward of that one made.
//
// A layer under `jax.checkpoint` that is cut between two stages is computed
// again by both. The second half then waits for the first one, which its stage
// computes only when its own turn to go backward comes: in a pipeline no two
// stages would work at once. What crosses the cut was sent in the forward
// already; to keep it is what a stage's input costs anyway.
//
// Cost: linear in operations, but for comparing what hashes alike.
//
//===----------------------------------------------------------------------===//

#include "whale/Dialect/Whale/IR/WhaleDialect.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_KEEPRECEIVED
#include "whale/Transforms/Import/Passes.h.inc"

namespace {

class Keeper {
public:
  explicit Keeper(func::FuncOp main) : main(main) {}

  /// Returns how many uses have another value now.
  int64_t run();

private:
  static constexpr auto flags =
      OperationEquivalence::Flags(OperationEquivalence::IgnoreLocations |
                                  OperationEquivalence::IgnoreDiscardableAttrs);

  Value original(Value value) const {
    Value known = originals.lookup(value);
    return known ? known : value;
  }
  bool isSame(Operation *op, Operation *other) const;
  void findOriginal(Operation *op);
  void takeOriginals(Operation *op);

  func::FuncOp main;
  /// The places of TaskGraphs in the forward, by strategy.
  llvm::DenseMap<Attribute, int64_t> places;
  /// Operations of the forward by what they compute.
  llvm::DenseMap<llvm::hash_code, SmallVector<Operation *, 1>> known;
  /// Of results that the backward computes again.
  llvm::DenseMap<Value, Value> originals;
  int64_t count = 0;
};

} // namespace

bool Keeper::isSame(Operation *op, Operation *other) const {
  // Of the values in regions.
  llvm::DenseMap<Value, Value> inside;
  return OperationEquivalence::isEquivalentTo(
      op, other,
      [&](Value left, Value right) {
        return success(inside.lookup(left) == right ||
                       original(left) == original(right));
      },
      [&](Value left, Value right) { inside[left] = right; }, flags);
}

/// Notes what a forward operation computes, or which one did what a backward
/// operation computes again.
void Keeper::findOriginal(Operation *op) {
  if (!op->hasAttr(kPhaseAttr) || phaseOf(op) == Phase::Apply ||
      op->getNumResults() == 0 || !isMemoryEffectFree(op))
    return;
  llvm::hash_code hash = OperationEquivalence::computeHash(
      op, [&](Value value) { return hash_value(original(value)); },
      OperationEquivalence::ignoreHashValue, flags);
  SmallVector<Operation *, 1> &alike = known[hash];
  for (Operation *other : alike) {
    if (!isSame(op, other))
      continue;
    for (auto [result, first] :
         llvm::zip_equal(op->getResults(), other->getResults()))
      originals[result] = first;
    return;
  }
  if (phaseOf(op) == Phase::Forward)
    alike.push_back(op);
}

void Keeper::takeOriginals(Operation *op) {
  Attribute own = op->getAttr(kStrategyAttr);
  auto place = places.find(own);
  if (phaseOf(op) != Phase::Backward || place == places.end())
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    Value kept = originals.lookup(operand.get());
    Operation *maker = kept ? operand.get().getDefiningOp() : nullptr;
    if (!maker || phaseOf(maker) != Phase::Backward)
      continue;
    auto from = places.find(maker->getAttr(kStrategyAttr));
    if (from == places.end() || from->second >= place->second)
      continue;
    operand.set(kept);
    ++count;
  }
}

int64_t Keeper::run() {
  Block &body = main.front();
  for (Operation &op : body) {
    if (Attribute strategy = op.getAttr(kStrategyAttr);
        strategy && phaseOf(&op) == Phase::Forward)
      places.try_emplace(strategy, int64_t(places.size()));
    findOriginal(&op);
  }
  for (Operation &op : body)
    takeOriginals(&op);
  if (count > 0)
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (phaseOf(&op) == Phase::Backward && isOpTriviallyDead(&op))
        op.erase();
  return count;
}

namespace {

struct KeepReceivedPass : impl::KeepReceivedBase<KeepReceivedPass> {
  using KeepReceivedBase::KeepReceivedBase;

  void runOnOperation() final {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main || main.isExternal())
      return;
    if (int64_t count = Keeper(main).run())
      mlir::emitRemark(main.getLoc())
          << "stages keep " << count
          << " values from their forward that an earlier stage would have "
             "computed again";
  }
};

} // namespace
} // namespace whale
