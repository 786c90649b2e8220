//===- UpdateOrder.cpp - Where a step updates its state -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a step's operations in the order in which they are written, all updates
// of parameters behind the backward. Out: the order in which the program will
// run them. Cost: linear in operations and uses, and sorting them.
//
//===----------------------------------------------------------------------===//

#include "StepLoads.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/Feedback.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;

namespace whale {

/// Whether an operation updates parameters by itself, inside of no loop.
static bool isUpdate(Operation *op) {
  TaskGraphOp graph = graphOf(op);
  return graph && graph.getPhase() == Phase::Apply &&
         op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() &&
         isa<TaskGraphOp>(op->getParentOp());
}

/// By operation: its number or, of an update, that of the last operation that
/// is no such update and whose results it depends on, directly or through other
/// updates, and the number of that result, if micro-batches sum it up. What
/// reads arguments alone has those of its first reader.
std::vector<StepLoads::Maker> StepLoads::findLastMakers() const {
  llvm::DenseMap<Operation *, unsigned> numbers;
  for (auto [number, op] : llvm::enumerate(ops))
    numbers[op] = number;
  // The last operation in the regions of each one.
  std::vector<unsigned> lasts(ops.size());
  for (size_t number = ops.size(); number-- > 0;) {
    lasts[number] = std::max(lasts[number], unsigned(number));
    auto outer = numbers.find(ops[number]->getParentOp());
    if (outer != numbers.end())
      lasts[outer->second] = std::max(lasts[outer->second], lasts[number]);
  }
  std::vector<Maker> makers(ops.size());
  llvm::BitVector readsArgumentsAlone(ops.size());
  for (auto [number, op] : llvm::enumerate(ops)) {
    makers[number] = {unsigned(number), 0};
    if (!isUpdate(op))
      continue;
    std::optional<Maker> latest;
    for (Value operand : op->getOperands()) {
      Value value = lookThroughTaskGraph(operand);
      auto found = numbers.find(value.getDefiningOp());
      if (found == numbers.end() || readsArgumentsAlone[found->second])
        continue;
      unsigned before = found->second;
      Maker maker = {lasts[before], 0};
      if (isUpdate(ops[before]))
        maker = makers[before];
      else if (isa<MicroBatchesOp>(ops[before]))
        maker.second = cast<OpResult>(value).getResultNumber();
      latest = std::max(latest.value_or(Maker()), maker);
    }
    if (latest)
      makers[number] = *latest;
    else
      readsArgumentsAlone.set(number);
  }
  for (size_t number = ops.size(); number-- > 0;)
    if (readsArgumentsAlone[number])
      for (Operation *user : ops[number]->getUsers())
        if (auto found = numbers.find(user); found != numbers.end())
          makers[number] = std::min(makers[number], makers[found->second]);
  return makers;
}

/// Has updates wait for the last instruction that reads the old value.
void StepLoads::waitForReaders(MutableArrayRef<Maker> makers) const {
  llvm::DenseMap<Operation *, unsigned> numbers;
  for (auto [number, op] : llvm::enumerate(ops))
    numbers[op] = number;
  func::FuncOp main = function;
  Operation *end = main.front().getTerminator();
  for (auto [argument, result] : llvm::enumerate(findFeedback(main))) {
    if (!result || !isDonated(main, argument))
      continue;
    Value next = lookThroughTaskGraph(end->getOperand(*result));
    auto update = numbers.find(next.getDefiningOp());
    if (update == numbers.end() || !isUpdate(update->first))
      continue;
    for (Operation *user : main.getArgument(argument).getUsers())
      if (auto reader = numbers.find(user);
          reader != numbers.end() && !isUpdate(user))
        makers[update->second] =
            std::max(makers[update->second], Maker(reader->second, 0));
  }
}

/// Whether a library computes it: to whale-start-transfers it makes gradients,
/// and what follows of it updates.
static bool isCall(Operation *op) {
  return isa<stablehlo::DotGeneralOp, stablehlo::ConvolutionOp,
             stablehlo::FftOp, stablehlo::CholeskyOp,
             stablehlo::TriangularSolveOp, stablehlo::CustomCallOp>(op);
}

/// Has updates that call libraries, as those that orthogonalize a gradient, and
/// what depends on them wait for the whole backward, behind which they are
/// written.
void StepLoads::waitForBackward(MutableArrayRef<Maker> makers) const {
  unsigned lastBackward = 0;
  for (auto [number, op] : llvm::enumerate(ops))
    if (TaskGraphOp graph = graphOf(op);
        graph && graph.getPhase() != Phase::Apply)
      lastBackward = number;
  llvm::SmallPtrSet<Operation *, 16> waiting;
  for (auto [number, op] : llvm::enumerate(ops)) {
    if (!isUpdate(op))
      continue;
    if (isCall(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
          return waiting.contains(
              lookThroughTaskGraph(operand).getDefiningOp());
        })) {
      waiting.insert(op);
      makers[number].first = std::max(makers[number].first, lastBackward);
    }
  }
}

/// Orders updates of parameters by when their gradients are there, as
/// whale-start-transfers does: behind the gradient, and one parameter after the
/// other, so that what an update needs is gone when the next one begins.
void StepLoads::orderUpdates() {
  std::vector<Maker> makers = findLastMakers();
  waitForReaders(makers);
  std::vector<Maker> gradients = makers;
  waitForBackward(makers);
  // Twice the number of the operation that it is at, plus one if behind that;
  // then the maker.
  using Key = std::tuple<unsigned, Maker, unsigned>;
  std::vector<std::pair<Key, Operation *>> ordered;
  for (auto [number, op] : llvm::enumerate(ops)) {
    Key key = {unsigned(2 * number), {}, unsigned(number)};
    if (unsigned last = makers[number].first; last != number)
      key = {2 * last + 1, gradients[number], unsigned(number)};
    ordered.push_back({key, op});
  }
  llvm::sort(ordered, llvm::less_first());
  for (auto [place, entry] : llvm::enumerate(ordered))
    ops[place] = entry.second;
}

} // namespace whale
