//===- ApplyGradients.cpp - Updates as gradients come ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a rank class whose updates of the state stand behind its backward. Out:
// the same with each update where its gradient is there, so that gradients need
// not all be kept.
//
// An update is what only results that feed arguments need, up to the products,
// loops, calls and reductions that gradients come from. It stands at the
// earliest where its gradient is reduced by then, as far as the model of the
// step says, so that the backward does not wait for the network, and behind the
// last instruction that reads the old value, whose buffer the new one takes.
// What it computes of the state alone stands with what it computes of the
// gradient. Among themselves updates, and the exchanges in them, keep the order
// in which their gradients come, which is the same in all rank classes.
//
// Cost: linear in instructions and uses, times the rounds in which updates that
// read one another's state settle, of which there are at most kMostRounds.
//
//===----------------------------------------------------------------------===//

#include "ApplyGradients.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Transforms/Attributes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace whale {

/// Updates that read one another's state in longer chains stay where they are.
constexpr unsigned kMostRounds = 8;

/// A value of at most so many bytes is no gradient that matters.
constexpr int64_t kSmallBytes = 64;

static Operation *findMaker(Value value) {
  Operation *op = value.getDefiningOp();
  while (auto reshape = dyn_cast_or_null<stablehlo::ReshapeOp>(op))
    op = reshape.getOperand().getDefiningOp();
  return op;
}

static bool isReducing(Operation *op) {
  return isa_and_nonnull<AllReduceOp, ReduceScatterOp>(op);
}

/// Whether an update may consist of such instructions, beside reductions.
static bool isOfUpdates(Operation *op) {
  if (isReducing(op) || isa<SendRecvOp>(op) || op->getNumRegions() > 0 ||
      op->getNumOperands() == 0)
    return false;
  return isa<LaunchOp, PackOp, UnpackOp, ViewOp, CollectiveOp>(op) ||
         isa<stablehlo::StablehloDialect>(op->getDialect());
}

GradientApplication::GradientApplication(ScheduleOp schedule,
                                         ProgramCosts &costs, Options options)
    : schedule(schedule), block(&schedule.front()), options(options) {
  for (Operation &op : block->without_terminator()) {
    numbers[&op] = ops.size();
    ops.push_back(&op);
  }
  isUpdate.resize(ops.size());
  isReduction.resize(ops.size());
  ready.resize(ops.size());
  findUpdates();
  findReady(costs);
  findPositions();
}

/// The arguments that results feed, by result.
static llvm::DenseMap<unsigned, BlockArgument> findFed(ScheduleOp schedule) {
  llvm::DenseMap<unsigned, BlockArgument> fed;
  for (BlockArgument argument : schedule.front().getArguments())
    if (auto result = schedule.getArgAttrOfType<IntegerAttr>(
            argument.getArgNumber(), kFedByAttr))
      fed[result.getInt()] = argument;
  return fed;
}

void GradientApplication::findUpdates() {
  // What is computed of a reduction's result by what updates consist of: a
  // reduction of that is no gradient's, but a part of the update.
  llvm::SmallPtrSet<Operation *, 16> isBehind;
  for (Operation *op : ops)
    if (isOfUpdates(op) || isReducing(op))
      for (Value operand : op->getOperands())
        if (Operation *maker = operand.getDefiningOp();
            isReducing(maker) || isBehind.contains(maker))
          isBehind.insert(op);
  llvm::DenseMap<unsigned, BlockArgument> fed = findFed(schedule);
  Operation *end = block->getTerminator();
  auto isOnlyOfUpdates = [&](OpOperand &use) {
    if (use.getOwner() == end)
      return fed.contains(use.getOperandNumber());
    auto user = numbers.find(use.getOwner());
    return user != numbers.end() && isUpdate[user->second];
  };
  for (size_t number = ops.size(); number-- > 0;) {
    Operation *op = ops[number];
    if (op->use_empty() || !llvm::all_of(op->getUses(), isOnlyOfUpdates))
      continue;
    if (isOfUpdates(op) || isBehind.contains(op)) {
      isUpdate[number] = true;
      continue;
    }
    // It is over when updates read it, and begins when its operand is there.
    if (!isReducing(op))
      continue;
    Operation *producer = findMaker(op->getOperand(0));
    isReduction[number] = producer && producer->getBlock() == block &&
                          llvm::all_of(producer->getUses(), [](OpOperand &use) {
                            return use.get().hasOneUse();
                          });
  }
  // What is computed neither of the state nor of what was reduced makes a
  // gradient, however it is computed.
  llvm::SmallPtrSet<Value, 16> state;
  for (auto [result, argument] : fed)
    state.insert(argument);
  for (auto [number, op] : llvm::enumerate(ops))
    if (isUpdate[number]) {
      isUpdate[number] =
          isReducing(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
            Operation *maker = operand.getDefiningOp();
            auto it = numbers.find(maker);
            return state.contains(operand) || isReducing(maker) ||
                   (it != numbers.end() && isUpdate[it->second]);
          });
    }
}

/// The first instruction from `from` on that begins when a transfer is over.
size_t GradientApplication::overAt(double time, size_t from) const {
  if (options.late)
    return from;
  size_t over = llvm::lower_bound(begins, time) - begins.begin();
  return std::clamp(over, from, ops.size());
}

/// Finds behind which instructions gradients are there: computation in order,
/// and one transfer after the other beside it.
void GradientApplication::findReady(ProgramCosts &program) {
  InstructionCosts costs(program, schedule.getRanks().front());
  std::vector<SmallVector<size_t, 1>> reduced(ops.size() + 1);
  begins.resize(ops.size() + 1);
  SmallVector<CollectiveOp> transfers;
  seconds.resize(ops.size());
  SmallVector<size_t> transferred;
  double clock = 0;
  for (auto [number, op] : llvm::enumerate(ops)) {
    if (auto transfer = dyn_cast<CollectiveOp>(op)) {
      transfers.push_back(transfer);
      transferred.push_back(number);
    }
    if (isReduction[number]) {
      Operation *producer = op->getOperand(0).getDefiningOp();
      ready[number] = numbers.at(producer) + 1;
      reduced[ready[number]].push_back(number);
    }
    begins[number] = clock;
    if (!isUpdate[number])
      clock += costs.secondsOf(op);
  }
  begins[ops.size()] = clock;
  for (auto [number, time] :
       llvm::zip_equal(transferred, program.secondsOf(transfers)))
    seconds[number] = time;
  double isFree = 0;
  place.assign(ops.size(), 0);
  auto transfer = [&](size_t number, size_t from) {
    isFree = std::max(isFree, begins[from]) + seconds[number];
  };
  for (size_t number = 0; number <= ops.size(); ++number) {
    for (size_t reduction : reduced[number]) {
      transfer(reduction, number);
      place[reduction] = overAt(isFree, number);
    }
    if (number < ops.size() && !isReduction[number] && !isUpdate[number] &&
        isa<CollectiveOp>(ops[number]))
      transfer(number, number);
  }
}

/// The instruction before which a value is there.
size_t GradientApplication::thereAt(Value value) const {
  auto maker = numbers.find(value.getDefiningOp());
  if (maker == numbers.end())
    return 0;
  size_t number = maker->second;
  // Constants go where they are used.
  if (ops[number]->getNumOperands() == 0 && ops[number]->getNumRegions() == 0 &&
      !isa<func::CallOp, CollectiveOp>(ops[number]))
    return 0;
  if (isReduction[number])
    return place[number];
  if (!isUpdate[number])
    return number + 1;
  if (!isReducing(ops[number]))
    return ready[number];
  return overAt(begins[ready[number]] + seconds[number], ready[number]);
}

/// Finds before which instruction each part of an update stands. Until then
/// `place` has, of reductions, where they are over.
void GradientApplication::findPositions() {
  size_t end = ops.size();
  // What takes the buffer of a value is behind its readers.
  SmallVector<std::pair<size_t, Value>> takers;
  for (auto [result, argument] : findFed(schedule)) {
    if (result >= block->getTerminator()->getNumOperands())
      continue;
    Operation *maker = findMaker(block->getTerminator()->getOperand(result));
    auto number = numbers.find(maker);
    if (number != numbers.end() && isUpdate[number->second])
      takers.push_back({number->second, argument});
  }
  for (auto [number, op] : llvm::enumerate(ops))
    if (auto inPlace = dyn_cast<InPlaceOp>(op); inPlace && isUpdate[number])
      for (const InPlacePair &pair : inPlace.getInPlacePairs())
        if (pair.required)
          takers.push_back({number, op->getOperand(pair.operand)});
  SmallVector<size_t> least(ops.size());
  auto placeAll = [&] {
    for (auto [number, op] : llvm::enumerate(ops)) {
      if (!isUpdate[number])
        continue;
      ready[number] = least[number];
      for (Value operand : op->getOperands())
        ready[number] = std::max(ready[number], thereAt(operand));
    }
    form(options.groups);
    for (size_t number = end; number-- > 0;) {
      if (!isUpdate[number])
        continue;
      // What is exchanged is exchanged early, all else computed late.
      place[number] = end;
      bool isEarly = false;
      for (Operation *user : ops[number]->getUsers()) {
        auto it = numbers.find(user);
        isEarly |= it == numbers.end() || isReducing(user);
        if (it != numbers.end())
          place[number] = std::min(place[number], place[it->second]);
      }
      if (isEarly && (ready[number] > 0 || place[number] == end))
        place[number] = std::min(place[number], ready[number]);
    }
  };
  bool isSettled = false;
  for (unsigned round = 0; !isSettled && round < kMostRounds; ++round) {
    placeAll();
    isSettled = true;
    for (auto [taker, value] : takers)
      for (Operation *user : value.getUsers()) {
        Operation *reader = block->findAncestorOpInBlock(*user);
        auto it = numbers.find(reader);
        if (it == numbers.end() || it->second == taker)
          continue;
        size_t from = it->second;
        size_t behind = isUpdate[from]      ? place[from]
                        : isReduction[from] ? ready[from] + 1
                                            : from + 1;
        if (behind <= place[taker])
          continue;
        least[taker] = std::max(least[taker], behind);
        isSettled = false;
      }
  }
  if (!isSettled)
    for (size_t number = 0; number < end; ++number)
      if (isUpdate[number])
        place[number] = end;
  findHeld();
}

/// Has updates of about as many bytes stand together, where the last of their
/// gradients is there.
void GradientApplication::form(int64_t groups) {
  if (groups == 0)
    return;
  llvm::MapVector<size_t, int64_t> bytes;
  int64_t all = 0;
  for (Value result : block->getTerminator()->getOperands())
    if (auto maker = numbers.find(result.getDefiningOp());
        maker != numbers.end() && isUpdate[maker->second]) {
      bytes[maker->second] += getTensorBytes(result.getType());
      all += getTensorBytes(result.getType());
    }
  SmallVector<std::pair<size_t, int64_t>> updates(bytes.begin(), bytes.end());
  llvm::stable_sort(updates, [&](const auto &a, const auto &b) {
    return ready[a.first] < ready[b.first];
  });
  int64_t before = 0;
  for (size_t first = 0, i = 0, group = 1; i < updates.size(); ++i) {
    before += updates[i].second;
    if (before * groups < all * int64_t(group) && i + 1 < updates.size())
      continue;
    for (size_t j = first; j <= i; ++j)
      ready[updates[j].first] = ready[updates[i].first];
    first = i + 1;
    while (before * groups >= all * int64_t(group))
      ++group;
  }
}

/// Adds up the gradients that wait for a small value which is computed of
/// others too.
void GradientApplication::findHeld() {
  // Of what each part of an update is computed beside the state: nothing, one
  // instruction's results, or several ones'.
  constexpr size_t none = -1, several = -2;
  SmallVector<size_t> source(ops.size(), none);
  auto sourceOf = [&](Value value) {
    auto maker = numbers.find(value.getDefiningOp());
    if (maker == numbers.end())
      return none;
    return isUpdate[maker->second] ? source[maker->second] : maker->second;
  };
  llvm::DenseSet<Value> held;
  for (auto [number, op] : llvm::enumerate(ops)) {
    if (!isUpdate[number])
      continue;
    size_t large = none, there = 0, late = 0;
    for (Value operand : op->getOperands()) {
      size_t from = sourceOf(operand);
      if (from == none)
        continue;
      source[number] =
          source[number] == none || source[number] == from ? from : several;
      if (getTensorBytes(operand.getType()) > kSmallBytes) {
        large = from;
        there = std::max(there, thereAt(operand));
      } else if (from == several) {
        late = std::max(late, thereAt(operand));
      }
    }
    if (large == none || late <= there)
      continue;
    for (Value operand : op->getOperands())
      if (sourceOf(operand) != none &&
          getTensorBytes(operand.getType()) > kSmallBytes &&
          held.insert(operand).second)
        heldBytes += getTensorBytes(operand.getType());
  }
}

void GradientApplication::apply() {
  using Key = std::tuple<size_t, unsigned, size_t>;
  SmallVector<std::pair<Key, Operation *>> order;
  for (auto [number, op] : llvm::enumerate(ops)) {
    Key key = {number, 2, number};
    if (isReduction[number])
      key = {ready[number], 0, number};
    else if (isUpdate[number])
      key = {place[number], 1, number};
    order.push_back({key, op});
  }
  llvm::sort(order, llvm::less_first());
  for (auto [key, op] : order)
    op->moveBefore(block->getTerminator());
  // Constants are there before their first use.
  for (Operation *op : ops)
    if (op->getNumOperands() == 0)
      for (Operation *user : op->getUsers())
        if (Operation *here = block->findAncestorOpInBlock(*user);
            here->isBeforeInBlock(op))
          op->moveBefore(here);
}

void GradientApplication::undo() {
  for (Operation *op : ops)
    op->moveBefore(block->getTerminator());
}

} // namespace whale
