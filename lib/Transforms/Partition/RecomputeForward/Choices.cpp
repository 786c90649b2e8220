//===- Choices.cpp - Ways to have what a backward needs -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a chain of forward operations. Out: its pieces, and choices for them with
// their bytes and seconds.
//
// A piece has a product, or several, and ends where the forward holds little:
// between the blocks of a model, and not inside of attention. What the rest of
// the forward uses of a piece is never computed again by it. Choices of a piece
// compute again what is element-wise, also the cheapest products one by one,
// and all of it; those of several pieces all of them. Cost: each choice looks
// at the operations of its pieces, and there are at most kMostPieces of these,
// so kLongestRun squared times operations for those of several.
//
//===----------------------------------------------------------------------===//

#include "Choices.h"

#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/FusedLoops.h"
#include "whale/Transforms/OpCost.h"
#include <cmath>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// Of more, neighbours are joined.
static constexpr size_t kMostPieces = 64;
/// Of more pieces in a row, all is not computed again at once: what that keeps
/// is least with about the root of the number of pieces.
static constexpr int64_t kLongestRun = 16;
/// Products of a piece that are weighed one by one.
static constexpr size_t kMostProducts = 6;
/// A piece does not end where the forward holds more than so many times what
/// it holds at one of the next places.
static constexpr double kFarMore = 1.9;
static constexpr int64_t kNextPlaces = 4;

Choices::Choices(const ForwardChain &chain, const CostModel &model,
                 int64_t moments)
    : chain(chain), model(model), moments(double(moments)) {
  findPieces();
  for (int64_t piece = 0; piece < getNumPieces(); ++piece) {
    addPiece(piece);
    int64_t last = std::min(getNumPieces(), piece + kLongestRun);
    for (int64_t end = piece + 2; end <= last; ++end)
      addRun(piece, end);
  }
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

/// By operation: what the forward holds behind it, for operations that follow.
std::vector<int64_t> Choices::findCrossingBytes() const {
  std::vector<int64_t> changes(chain.getOps().size() + 1, 0);
  for (auto [number, op] : llvm::enumerate(chain.getOps())) {
    if (isMadeOfNothing(op))
      continue;
    for (Value result : op->getResults()) {
      unsigned last = chain.usesOf(result).lastForward.value_or(number);
      changes[number] += chain.bytesOf(result);
      changes[last] -= chain.bytesOf(result);
    }
  }
  for (size_t i = 1; i < changes.size(); ++i)
    changes[i] += changes[i - 1];
  return changes;
}

void Choices::findPieces() {
  ArrayRef<Operation *> ops = chain.getOps();
  if (ops.empty())
    return;
  std::vector<int64_t> bytes = findCrossingBytes();
  // Between two products, where the forward holds least.
  std::vector<unsigned> places;
  std::optional<unsigned> best;
  bool hasProduct = false;
  for (auto [number, op] : llvm::enumerate(ops)) {
    if (!isLight(op) && !isMadeOfNothing(op)) {
      if (hasProduct && best)
        places.push_back(*best);
      hasProduct = true;
      best.reset();
    }
    if (!best || bytes[number] <= bytes[*best])
      best = number;
  }
  auto isNarrow = [&](int64_t place) {
    auto count = int64_t(places.size());
    int64_t least = bytes[places[place]];
    for (int64_t next = std::max<int64_t>(0, place - kNextPlaces);
         next < std::min(count, place + kNextPlaces + 1); ++next)
      least = std::min(least, bytes[places[next]]);
    return double(bytes[places[place]]) <= kFarMore * double(least);
  };
  for (int64_t place = 0; place < int64_t(places.size()); ++place)
    if (isNarrow(place))
      ends.push_back(places[place] + 1);
  ends.push_back(ops.size());
  while (ends.size() > kMostPieces) {
    std::vector<unsigned> fewer;
    for (size_t i = ends.size() % 2 ? 0 : 1; i < ends.size(); i += 2)
      fewer.push_back(ends[i]);
    ends = std::move(fewer);
  }
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// Whether an operation is part of the kernels around it.
static bool isInKernel(Operation *op) {
  return isLight(op) && !isMadeOfNothing(op);
}

/// Whether one of these operations reads a value from memory: what is not
/// element-wise, such as a product.
template <typename Among>
static bool isReadByProduct(Value value, Among isAmong) {
  return llvm::any_of(findUses(value), [&](OpOperand *use) {
    Operation *user = use->getOwner();
    return !isLight(user) && !isa<ReshardOp>(user) && isAmong(user);
  });
}

/// Whether a product of the backward reads what the operation makes.
bool Choices::isReadByBackward(Operation *op) const {
  return llvm::any_of(op->getResults(), [&](Value result) {
    return isReadByProduct(
        result, [&](Operation *user) { return chain.isBackward(user); });
  });
}

/// Whether kernels of the backward compute what the operation makes again in
/// any case, instead of reading it.
bool Choices::isCheap(Operation *op) const {
  auto [it, isNew] = cheap.try_emplace(op, false);
  if (isNew)
    it->second = op->getNumResults() == 1 &&
                 CheapExpression::find(op->getResult(0)) &&
                 !isReadByBackward(op);
  return it->second;
}

/// Has a value that operations from `first` on need, or their backward, and
/// that is made before them. Arguments are there, and what belongs to a piece
/// before them has been kept if its backward needs it.
void Choices::keepBefore(Value value, Again &again) const {
  Operation *maker = lookThroughTaskGraph(value).getDefiningOp();
  if (maker && !isMadeOfNothing(maker) && !chain.isNeeded(value) &&
      !chain.isGatheredAgain(maker))
    again.keptBytes += chain.bytesOf(value);
}

/// Whether the backward of the operations up to `end` must find the results of
/// one of them kept.
bool Choices::isLeaf(Operation *op, unsigned end, IsAgain isAgain) const {
  if (isMadeOfNothing(op) || chain.isGatheredAgain(op))
    return false;
  return !chain.isRecomputable(op) || !isAgain(op) ||
         llvm::any_of(op->getResults(), [&](Value result) {
           const ForwardChain::Uses &uses = chain.usesOf(result);
           return uses.isPinned || uses.lastForward.value_or(0) >= end;
         });
}

/// The seconds of an operation on the device, for all micro-batches, without
/// those that kernels take for its bytes.
double Choices::secondsOf(Operation *op) const {
  auto [it, isNew] = seconds.try_emplace(op, 0);
  if (isNew)
    it->second =
        moments * chain.partOf(op) * fusedSeconds(op, model, chain.getDevice());
  return it->second;
}

Again Choices::evaluate(unsigned first, unsigned end, IsAgain isAgain) const {
  Again again;
  llvm::DenseSet<Value> needed;
  int64_t largest = 0, products = 0;
  // Last to first: what needs an operation's results comes behind it.
  for (unsigned number = end; number-- > first;) {
    Operation *op = chain.getOps()[number];
    auto isNeeded = [&](Value result) {
      return chain.isNeeded(result) || needed.contains(result);
    };
    if (llvm::none_of(op->getResults(), isNeeded))
      continue;
    if (isLeaf(op, end, isAgain)) {
      for (Value result : llvm::make_filter_range(op->getResults(), isNeeded)) {
        again.kept.insert(result);
        again.keptBytes += chain.bytesOf(result);
      }
      continue;
    }
    again.ops.insert(op);
    if (!isa<ReshardOp>(op))
      for (Value operand : op->getOperands()) {
        std::optional<unsigned> maker = chain.find(operand);
        if (needed.insert(operand).second && (!maker || *maker < first))
          keepBefore(operand, again);
      }
    for (Value result : op->getResults())
      if (chain.isNeeded(result) && !isCheap(op)) {
        largest = std::max(largest, chain.bytesOf(result));
        products += chain.bytesOf(result);
      }
  }
  bool hasProducts = llvm::any_of(again.ops, isProductLike);
  // What is element-wise is computed where it is used, and what products need
  // or make for all of these operations together.
  again.againBytes = hasProducts ? products : std::min(products, 2 * largest);
  again.seconds = secondsOf(again);
  return again;
}

/// The bytes of memory that kernels move for what is computed again besides
/// products: what is element-wise, or reduced, becomes part of the kernels that
/// use it. Negative where kernels read less than the values that are no longer
/// kept.
int64_t Choices::findMovedBytes(const Again &again) const {
  llvm::DenseSet<Value> read;
  int64_t readBytes = 0, bytes = 0;
  bool isWritten = false;
  for (Operation *op : again.ops) {
    if (!isInKernel(op))
      continue;
    for (Value operand : op->getOperands()) {
      Value value = lookThroughTaskGraph(operand);
      Operation *maker = value.getDefiningOp();
      if (maker && again.ops.contains(maker) && isInKernel(maker)) {
        // What follows a reduction goes through its operand once more.
        if (opClassOf(op) == OpClass::Reduction)
          bytes += chain.bytesOf(value);
      } else if (!(maker && isMadeOfNothing(maker)) &&
                 read.insert(value).second) {
        readBytes += chain.bytesOf(value);
      }
    }
    for (Value result : op->getResults()) {
      int64_t own = chain.bytesOf(result);
      if (isReadByProduct(result, [&](Operation *user) {
            return again.ops.contains(user) || chain.isBackward(user);
          })) {
        bytes += own;
        isWritten = true;
      } else if (chain.isNeeded(result) && !isCheap(op)) {
        bytes -= own;
        if (!isReadByProduct(
                result, [&](Operation *user) { return chain.isForward(user); }))
          bytes -= own;
      }
    }
  }
  // The kernels that write what products read are others than those of what the
  // backward computes element by element.
  return bytes + (isWritten ? 2 : 1) * readBytes;
}

/// The seconds of all micro-batches that computing again takes.
double Choices::secondsOf(const Again &again) const {
  int64_t bytes = findMovedBytes(again);
  OpCost moved;
  moved.opClass = OpClass::Elementwise;
  moved.bytes = double(std::abs(bytes));
  moved.startsKernel = false;
  double sum = std::copysign(
      moments * model.opSeconds(moved, chain.getDevice()), double(bytes));
  for (Operation *op : again.ops)
    if (!isMadeOfNothing(op) && !isa<ReshardOp>(op))
      sum += secondsOf(op);
  return sum;
}

void Choices::add(int64_t first, int64_t end, Again again) {
  list.push_back(
      {first, end, again.keptBytes, again.againBytes, again.seconds});
  agains.push_back(std::move(again));
}

void Choices::addPiece(int64_t piece) {
  unsigned first = beginOf(piece), end = ends[piece];
  Again none = evaluate(first, end, [&](Operation *op) { return isCheap(op); });
  none.ops.clear();
  none.seconds = 0;
  none.againBytes = 0;
  int64_t keptBytes = none.keptBytes;
  add(piece, piece + 1, std::move(none));
  auto offer = [&](IsAgain isAgain) {
    Again again = evaluate(first, end, isAgain);
    if (again.keptBytes < keptBytes)
      add(piece, piece + 1, std::move(again));
  };
  // What products read has to be written to memory again.
  offer([&](Operation *op) { return isLight(op) && !isReadByBackward(op); });
  offer(isLight);
  std::vector<std::pair<double, Operation *>> products;
  for (Operation *op : chain.getOps().slice(first, end - first))
    if (isProductLike(op) && chain.isRecomputable(op)) {
      int64_t bytes = 0;
      for (Value result : op->getResults())
        bytes += chain.bytesOf(result);
      products.emplace_back(secondsOf(op) / double(std::max<int64_t>(1, bytes)),
                            op);
    }
  llvm::stable_sort(products, llvm::less_first());
  llvm::DenseSet<Operation *> cheapest;
  for (auto [price, op] : ArrayRef(products).take_front(
           std::min(kMostProducts, products.size()))) {
    cheapest.insert(op);
    offer([&](Operation *op) { return isLight(op) || cheapest.contains(op); });
  }
  if (products.size() > kMostProducts)
    offer([](Operation *) { return true; });
}

void Choices::addRun(int64_t first, int64_t end) {
  add(first, end, evaluate(beginOf(first), ends[end - 1], [](Operation *) {
        return true;
      }));
}

Again Choices::computeBetween(IsAgain isKept) const {
  return evaluate(0, chain.getOps().size(),
                  [&](Operation *op) { return !isKept(op); });
}

int64_t Choices::getKeptBytes() const {
  int64_t bytes = 0;
  for (const auto &[choice, again] : llvm::zip_equal(list, agains))
    if (again.ops.empty() && choice.end == choice.first + 1)
      bytes += choice.keptBytes;
  return bytes;
}

} // namespace whale
