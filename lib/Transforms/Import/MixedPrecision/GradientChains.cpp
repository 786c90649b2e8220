//===- GradientChains.cpp - What gradients are linear in ------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: @main, with phases. Out: the chains of its backward (GradientChains.h).
//
// From each gradient that is read outside of the backward, chains are followed
// back: through all operands of an operation that is linear in them together,
// and through one factor of a product, up to what is no part of the backward, a
// constant, or an operation that is not linear. Of two factors it is the one
// with the longer way back, as the other is what the forward has left, or
// computes a part of it again; either would be right. Then what reads a value
// of a chain must be linear in it, too, and belongs to a chain with its other
// terms. Loops carry chains in what they carry. Cost: linear in operations and
// uses.
//
//===----------------------------------------------------------------------===//

#include "GradientChains.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/WhaleRecomputeOps.h"
#include "whale/Sharding/OpRule.h"
#include "whale/Sharding/Reducers.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/ScopePath.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <map>

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

namespace {

using Operands = SmallVector<unsigned, 2>;

bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value));
}

class ChainFinder {
public:
  explicit ChainFinder(func::FuncOp main) : main(main) {}

  FailureOr<GradientChains> run();

private:
  ArrayRef<Operands> linearIn(Operation *op);
  bool isSource(Value value);
  void measure(Operation *op);
  bool isRounded(Operation *op);
  unsigned lengthOf(ArrayRef<unsigned> operands, Operation *op);
  void follow(OpOperand &use);
  void follow(Value value);
  void refuse(Operation *op, StringRef what);
  void followCarried(hlo::WhileOp loop, unsigned index);
  void followBack(Value value);
  void choose(Operation *op, ArrayRef<unsigned> operands);
  void checkUse(OpOperand &use);
  bool isEnd(Operation *user);

  func::FuncOp main;
  GradientChains chains;
  /// Sets that an operation is linear in; references stay valid.
  std::map<Operation *, SmallVector<Operands, 2>> linear;
  /// How many operations a chain has behind a value at most.
  DenseMap<Value, unsigned> lengths;
  /// What depends on a product of the backward, which may leave its range.
  DenseSet<Value> rounded;
  bool isRefused = false;
  /// The operands by which an operation is part of a chain.
  DenseMap<Operation *, Operands> chosen;
};

} // namespace

/// Sets of operands that an operation is linear in. Powers of two scale what is
/// rounded, too, as long as they stay in range.
ArrayRef<Operands> ChainFinder::linearIn(Operation *op) {
  auto [it, isNew] = linear.try_emplace(op);
  if (!isNew)
    return it->second;
  SmallVector<Operands, 2> sets;
  if (llvm::all_of(op->getResults(), isFloat) && op->getNumResults() != 0) {
    if (isa<hlo::ConvertOp, hlo::ReducePrecisionOp>(op)) {
      if (isFloat(op->getOperand(0)))
        sets.push_back({0});
    } else if (auto scatter = dyn_cast<hlo::SelectAndScatterOp>(op)) {
      // The gradient of pooling; its rule has no sums.
      if (getReductionKind(scatter.getScatter()) == Reduction::Sum)
        sets.push_back({1, 2});
    } else if (std::optional<OpRule> rule = getOpRule(op)) {
      for (const Operands &set : rule->linear)
        if (!set.empty())
          sets.push_back(set);
    }
  }
  return it->second = std::move(sets);
}

/// Whether a value is no part of a chain.
bool ChainFinder::isSource(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return !isa<hlo::WhileOp>(value.getParentBlock()->getParentOp());
  if (matchPattern(op, m_Constant()) || phaseOf(op) != Phase::Backward)
    return true;
  return !hlo::isControlFlow(op) &&
         (isRematerialized(op) || linearIn(op).empty());
}

unsigned ChainFinder::lengthOf(ArrayRef<unsigned> operands, Operation *op) {
  unsigned longest = 0;
  for (unsigned operand : operands)
    longest = std::max(longest, lengths.lookup(op->getOperand(operand)));
  return longest;
}

/// Whether a result may come from one of the backward's products.
bool ChainFinder::isRounded(Operation *op) {
  if (hlo::isControlFlow(op) || phaseOf(op) != Phase::Backward ||
      isRematerialized(op))
    return false;
  return isa<hlo::DotGeneralOp, hlo::ConvolutionOp>(op) ||
         llvm::any_of(op->getOperands(),
                      [&](Value value) { return rounded.contains(value); });
}

/// Notes what is known of an operation's results by its operands'.
void ChainFinder::measure(Operation *op) {
  auto join = [&](Value to, Value from) {
    lengths[to] = std::max(lengths.lookup(to), lengths.lookup(from));
    if (rounded.contains(from))
      rounded.insert(to);
  };
  auto loop = dyn_cast<hlo::WhileOp>(op);
  if (!hlo::isControlFlow(op)) {
    bool isOwnRounded = isRounded(op);
    for (Value result : op->getResults()) {
      for (const Operands &set : linearIn(op))
        if (!isSource(result))
          lengths[result] =
              std::max(lengths.lookup(result), lengthOf(set, op) + 1);
      if (isOwnRounded)
        rounded.insert(result);
    }
    return;
  }
  // A second round of a loop knows what the first one has left.
  for (int round = 0; round < (loop ? 2 : 1); ++round) {
    if (loop)
      for (auto [argument, value] :
           llvm::zip_equal(loop.getBody().getArguments(), op->getOperands()))
        join(argument, value);
    for (Region &region : op->getRegions()) {
      for (Operation &nested : region.front().without_terminator())
        measure(&nested);
      if (loop && &region == &loop.getCond())
        continue;
      for (auto [result, value] : llvm::zip_equal(
               op->getResults(), region.front().getTerminator()->getOperands()))
        join(result, value);
      if (loop)
        for (auto [argument, result] :
             llvm::zip_equal(loop.getBody().getArguments(), op->getResults()))
          if (rounded.contains(result))
            rounded.insert(argument);
    }
  }
}

/// An error at an operation that no loss scale goes through.
void ChainFinder::refuse(Operation *op, StringRef what) {
  if (!isRefused)
    op->emitError("amp.level: f16 needs gradients that are proportional to "
                  "the loss, and this ")
        << what << "; take \"bf16\", which needs no loss scale";
  isRefused = true;
}

void ChainFinder::follow(OpOperand &use) {
  Value value = use.get();
  if (isZero(value))
    return;
  if (!isSource(value)) {
    follow(value);
    return;
  }
  // What a product has made infinite might not be seen behind it.
  if (rounded.contains(value))
    return refuse(value.getDefiningOp(), "computes of one what is not");
  chains.begins.insert(&use);
}

void ChainFinder::follow(Value value) { chains.values.insert(value); }

void ChainFinder::followCarried(hlo::WhileOp loop, unsigned index) {
  follow(loop->getResult(index));
  follow(loop.getBody().getArgument(index));
  follow(loop.getCond().getArgument(index));
  follow(loop->getOpOperand(index));
  follow(loop.getBody().front().getTerminator()->getOpOperand(index));
}

void ChainFinder::choose(Operation *op, ArrayRef<unsigned> operands) {
  chosen[op].assign(operands.begin(), operands.end());
  for (Value result : op->getResults())
    follow(result);
  for (unsigned operand : operands)
    follow(op->getOpOperand(operand));
}

/// Follows a value that is part of a chain to what it is made of.
void ChainFinder::followBack(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return followCarried(
        cast<hlo::WhileOp>(value.getParentBlock()->getParentOp()),
        cast<BlockArgument>(value).getArgNumber());
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (auto loop = dyn_cast<hlo::WhileOp>(op))
    return followCarried(loop, index);
  if (hlo::isControlFlow(op)) {
    for (Region &region : op->getRegions())
      follow(region.front().getTerminator()->getOpOperand(index));
    return;
  }
  if (chosen.contains(op))
    return;
  ArrayRef<Operands> sets = linearIn(op);
  auto rank = [&](const Operands &set) {
    bool isOwnRounded = false, isOfBackward = false, isConstant = true;
    for (unsigned operand : set) {
      Value value = op->getOperand(operand);
      Operation *maker = value.getDefiningOp();
      isOwnRounded |= rounded.contains(value);
      isOfBackward |= maker && phaseOf(maker) == Phase::Backward &&
                      !isRematerialized(maker);
      isConstant &= matchPattern(value, m_Constant());
    }
    return std::tuple(lengthOf(set, op), isOwnRounded, isOfBackward,
                      isConstant);
  };
  choose(op,
         *llvm::max_element(sets, [&](const Operands &a, const Operands &b) {
           return rank(a) < rank(b);
         }));
}

/// Whether an operation reads gradients behind the backward.
bool ChainFinder::isEnd(Operation *user) {
  return isa<func::ReturnOp>(user) || phaseOf(user) != Phase::Backward;
}

/// What reads a value of a chain must be part of one, or its end.
void ChainFinder::checkUse(OpOperand &use) {
  Operation *user = use.getOwner();
  unsigned index = use.getOperandNumber();
  if (isEnd(user)) {
    if (user->getBlock() != &main.front())
      return refuse(user, "reads one in a loop or branch");
    chains.ends.insert(&use);
    return;
  }
  if (auto loop = dyn_cast<hlo::WhileOp>(user))
    return followCarried(loop, index);
  Operation *parent = user->getParentOp();
  if (user->hasTrait<OpTrait::IsTerminator>() && hlo::isControlFlow(parent)) {
    if (auto loop = dyn_cast<hlo::WhileOp>(parent))
      followCarried(loop, index);
    else
      follow(parent->getResult(index));
    return;
  }
  if (auto it = chosen.find(user); it != chosen.end()) {
    if (!llvm::is_contained(it->second, index))
      refuse(user, "multiplies two");
    return;
  }
  if (user->use_empty() && isMemoryEffectFree(user))
    return;
  for (const Operands &set : linearIn(user))
    if (llvm::is_contained(set, index))
      return choose(user, set);
  refuse(user, "computes of one what is not");
}

FailureOr<GradientChains> ChainFinder::run() {
  Block &body = main.front();
  for (Operation &op : body)
    measure(&op);
  auto isRead = [&](Operation *user) { return isEnd(user); };
  for (Operation &op : body) {
    if (phaseOf(&op) != Phase::Backward)
      continue;
    for (OpResult result : op.getResults()) {
      if (!isFloat(result) || isZero(result) ||
          llvm::none_of(result.getUsers(), isRead))
        continue;
      if (isSource(result) && rounded.contains(result))
        refuse(&op, "computes of one what is not");
      if (!isSource(result) && lengths.lookup(result) != 0)
        follow(result);
    }
  }
  for (size_t i = 0; i < chains.values.size() && !isRefused; ++i) {
    Value value = chains.values[i];
    followBack(value);
    for (OpOperand &use : value.getUses())
      checkUse(use);
  }
  if (isRefused)
    return failure();
  return std::move(chains);
}

FailureOr<GradientChains> findGradientChains(func::FuncOp main) {
  return ChainFinder(main).run();
}

} // namespace whale
