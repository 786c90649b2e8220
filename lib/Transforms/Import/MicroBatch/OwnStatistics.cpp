//===- OwnStatistics.cpp - Statistics of each micro-batch -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a step in whose forward pass layers follow on statistics of the
// mini-batch, as on those of a batch norm, and batch_norm = "micro" in
// whale.config. Out: the same step with statistics of each micro-batch.
//
// A sum over samples [N, ...] becomes one over [M, N/M, ...], times M, since
// the program divides by N. All that is computed of it has the leading
// dimension M then, up to where it is spread over the samples again; in the
// backward pass, too, where the sums are the gradients of the statistics. What
// leaves for the optimizer or the caller is the mean over the micro-batches.
// The outcome is a program like any other, which the axis of time can cut.
//
// Forward and backward must agree. What jax.checkpoint computes again is as the
// equal operation of the forward pass is. A gradient that has passed a layer is
// that of a statistic of each micro-batch, and so is any if there are no
// others. Else one that is multiplied later on by what depends on each of those
// statistics can't be one of theirs, whose factors were there before them; what
// else may be either is an error.
//
// Cost: linear in the operations of @main, times the statistics.
//
//===----------------------------------------------------------------------===//

#include "../CarryAttributes.h"
#include "Lifting.h"
#include "TimeAxis.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Dialect/Whale/IR/WhaleRecomputeOps.h"
#include "whale/Sharding/Reducers.h"
#include "whale/Transforms/Attributes.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {
namespace {

/// Whether an operation of the optimizer, or one that just collects results,
/// takes a statistic as it leaves the step.
bool takesMean(Operation *op) {
  return phaseOf(op) == Phase::Apply ||
         isa<func::ReturnOp, hlo::ConcatenateOp, hlo::TransposeOp, hlo::SliceOp,
             hlo::PadOp, hlo::DynamicUpdateSliceOp>(op);
}

/// Whether jax.checkpoint computes an operation again, before its gradients.
bool isRecomputed(Operation *op) {
  return phaseOf(op) == Phase::Backward && isRematerialized(op);
}

/// What the forward pass computed of values that are computed again.
class Originals {
public:
  explicit Originals(ArrayRef<Operation *> ops);

  /// The equal operations of the forward pass; several if it has copies.
  ArrayRef<Operation *> get(Operation *again) const {
    auto it = copies.find(again->getResult(0));
    return it == copies.end()
               ? ArrayRef<Operation *>()
               : copies.find(it->second.front()->getResult(0))->second;
  }

private:
  Value getFirst(Value value) const {
    auto it = copies.find(value);
    return it == copies.end() ? value : it->second.front()->getResult(0);
  }
  bool areEqual(Operation *op, Operation *other) const;

  /// Of the first of equal operations all of the forward pass, of the others
  /// the first one.
  llvm::DenseMap<Value, SmallVector<Operation *, 1>> copies;
};

Originals::Originals(ArrayRef<Operation *> ops) {
  llvm::DenseMap<llvm::hash_code, SmallVector<Operation *, 1>> firsts;
  for (Operation *op : ops) {
    bool isForward =
        phaseOf(op) == Phase::Forward || op->hasTrait<OpTrait::ConstantLike>();
    if (op->getNumResults() != 1 || !(isForward || isRecomputed(op)))
      continue;
    llvm::hash_code key = hash_value(op->getName());
    for (Value operand : op->getOperands())
      key = llvm::hash_combine(key, getFirst(operand));
    SmallVector<Operation *, 1> &candidates = firsts[key];
    auto *first = llvm::find_if(candidates, [&](Operation *candidate) {
      return areEqual(candidate, op);
    });
    if (first != candidates.end()) {
      copies[op->getResult(0)] = {*first};
      if (isForward)
        copies[(*first)->getResult(0)].push_back(op);
    } else if (isForward) {
      candidates.push_back(op);
      copies[op->getResult(0)] = {op};
    }
  }
}

bool Originals::areEqual(Operation *op, Operation *other) const {
  llvm::DenseMap<Value, Value> inside;
  using Equivalence = OperationEquivalence;
  return Equivalence::isEquivalentTo(
      op, other,
      [&](Value a, Value b) {
        return success(inside.lookup(a) == b || getFirst(a) == getFirst(b));
      },
      [&](Value a, Value b) { inside[a] = b; },
      Equivalence::Flags(Equivalence::IgnoreLocations |
                         Equivalence::IgnoreDiscardableAttrs));
}

/// On which statistics of each micro-batch values of the forward pass depend.
class Dependences {
public:
  Dependences(Block &block, ArrayRef<Value> spreads, const Originals &originals)
      : block(block), originals(originals), numSpreads(spreads.size()) {
    for (auto [i, spread] : llvm::enumerate(spreads))
      spreadsOf.try_emplace(spread, numSpreads).first->second.set(i);
    for (Operation &op : block) {
      if (phaseOf(&op) != Phase::Forward)
        continue;
      llvm::BitVector found(numSpreads);
      for (Value read : getReads(&op))
        if (auto it = spreadsOf.find(read); it != spreadsOf.end())
          found |= it->second;
      if (found.any())
        for (Value result : op.getResults())
          spreadsOf.try_emplace(result, numSpreads).first->second |= found;
    }
  }

  /// Whether what the backward pass computes of a gradient takes, for each of
  /// the statistics, something that depends on it.
  bool isBehindAll(Value gradient) const;

private:
  Block &block;
  const Originals &originals;
  unsigned numSpreads;
  llvm::DenseMap<Value, llvm::BitVector> spreadsOf;
};

bool Dependences::isBehindAll(Value gradient) const {
  llvm::BitVector found(numSpreads);
  llvm::SetVector<Value> values;
  values.insert(gradient);
  for (unsigned i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      user = block.findAncestorOpInBlock(*user);
      if (phaseOf(user) != Phase::Backward)
        continue;
      // Its results may have nothing to do with the gradient.
      if (user->getNumResults() != 1)
        return false;
      values.insert(user->getResult(0));
      for (Value read : getReads(user)) {
        Operation *producer = read.getDefiningOp();
        if (producer && isRecomputed(producer) &&
            producer->getNumResults() == 1 &&
            originals.get(producer).size() == 1)
          read = originals.get(producer).front()->getResult(0);
        if (auto it = spreadsOf.find(read); it != spreadsOf.end())
          found |= it->second;
      }
    }
  return found.all();
}

} // namespace

FailureOr<bool> TimeAxis::takeOwnStatistics() {
  SmallVector<Operation *> ops =
      llvm::map_to_vector(main.front(), [](Operation &op) { return &op; });
  // What depends on samples, and what is behind a layer: in the forward pass
  // those before which one comes, in the backward pass gradients behind one.
  llvm::DenseSet<Value> ofSamples;
  llvm::DenseSet<Operation *> hasLayer;
  for (BlockArgument argument : main.getArguments())
    if (getState(argument).isCut())
      ofSamples.insert(argument);
  auto isLayer = [&](Operation *op) {
    return isInLoop(op) && usesParameters(op);
  };
  for (Operation *op : ops) {
    llvm::SetVector<Value> reads = getReads(op);
    if (llvm::any_of(reads, [&](Value v) { return ofSamples.contains(v); }))
      ofSamples.insert_range(op->getResults());
    if (phaseOf(op) == Phase::Backward && !isRecomputed(op) &&
        (isLayer(op) || llvm::any_of(reads, [&](Value v) {
           return v.getDefiningOp() && hasLayer.contains(v.getDefiningOp()) &&
                  phaseOf(v.getDefiningOp()) == Phase::Backward;
         })))
      hasLayer.insert(op);
  }
  for (Operation *op : llvm::reverse(ops))
    if (phaseOf(op) == Phase::Forward)
      for (Operation *user : op->getUsers()) {
        user = main.front().findAncestorOpInBlock(*user);
        if (phaseOf(user) == Phase::Forward &&
            (isLayer(user) || hasLayer.contains(user)))
          hasLayer.insert(op);
      }

  auto isCutThere = [&](const AxisState &state, Value value) {
    return state.isSplit() && state.piece.dim == 0 &&
           state.piece.extent * state.piece.minor ==
               cast<RankedTensorType>(value.getType()).getDimSize(0);
  };
  auto dependsOnSamples = [&](Value value) {
    return ofSamples.contains(value);
  };
  // What was a statistic of all samples for each of them.
  llvm::DenseSet<Value> ownValues;
  auto isOfSamples = [&](Value value) {
    return ownValues.contains(value) ||
           (ofSamples.contains(value) && isCutThere(getState(value), value));
  };
  // Not what is computed once for the whole mini-batch, as of arguments alone.
  llvm::DenseSet<Operation *> ownGradients;
  auto mayBeOwn = [&](Operation *op) {
    return !wholeOps.contains(op) &&
           (phaseOf(op) == Phase::Forward || ownGradients.contains(op));
  };
  Lifting lifting(moments, dependsOnSamples, isOfSamples, mayBeOwn);

  // Spreads a statistic of each micro-batch over its samples, if it is one.
  llvm::SetVector<Operation *> spreads;
  SmallVector<Value> ownSpreads;
  auto grows = [](hlo::BroadcastInDimOp spread) {
    ArrayRef<int64_t> dims = spread.getBroadcastDimensions();
    const auto *dim = llvm::find(dims, 0);
    return dim == dims.end() ||
           spread.getOperand().getType().getDimSize(dim - dims.begin()) <
               spread.getType().getDimSize(0);
  };
  auto findSpread = [&](Operation *op) {
    auto spread = dyn_cast<hlo::BroadcastInDimOp>(op);
    bool isSpread = spread && ofSamples.contains(spread) &&
                    !spreads.contains(op) && spread.getType().getRank() > 0 &&
                    grows(spread) &&
                    (isCutThere(getState(spread), spread) ||
                     llvm::any_of(spread->getUses(), [&](OpOperand &use) {
                       return isCutThere(getRequired(use), spread);
                     }));
    return isSpread ? spread : hlo::BroadcastInDimOp();
  };
  auto spreadOwn = [&](hlo::BroadcastInDimOp spread) -> LogicalResult {
    for (BlockArgument argument : main.getArguments())
      if (AxisState state = getState(argument);
          state.isSplit() && state.piece.extent % moments != 0)
        return spread->emitError("batch_norm: 'micro' takes micro-batches of "
                                 "one size, and ")
               << moments << " of them don't divide " << state.piece.extent
               << " samples; use a number of micro-batches that does";
    Value own = lifting.spread(spread);
    ofSamples.insert(own);
    ownValues.insert(own);
    ownSpreads.push_back(own);
    spread.replaceAllUsesWith(own);
    spreads.insert(spread);
    return success();
  };

  // Computes for each micro-batch what else an operation makes of these.
  auto follow = [&](Operation *op) -> LogicalResult {
    bool isOwn = op->getNumResults() == 1 && lifting.lookup(op->getResult(0));
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (isOwn || spreads.contains(op) || !ofSamples.contains(value) ||
          !lifting.lookup(value))
        continue;
      if (hlo::BroadcastInDimOp spread = findSpread(op))
        return spreadOwn(spread);
      if (op->getNumResults() == 1 && phaseOf(op) != Phase::Apply &&
          lifting.canLift(op->getResult(0), phaseOf(op))) {
        lifting.lift(op->getResult(0));
        return success();
      }
      if (!takesMean(op))
        return op->emitError("batch_norm: 'micro' can't compute this of the "
                             "statistics of each micro-batch; use one "
                             "micro-batch, or sums and elementwise operations");
      if (!lifting.canJoin(value))
        return value.getDefiningOp()->emitError(
            "batch_norm: 'micro' can't return this of the statistics of each "
            "micro-batch, since their mean is no integer or boolean; use one "
            "micro-batch, or return it as a floating-point number");
      operand.set(lifting.getJoined(value));
    }
    return success();
  };

  Originals originals(ops);
  for (Operation *op : ops)
    if (phaseOf(op) == Phase::Forward && hasLayer.contains(op))
      if (hlo::BroadcastInDimOp spread = findSpread(op);
          spread && lifting.canLift(spread.getOperand(), Phase::Forward) &&
          failed(spreadOwn(spread)))
        return failure();
  auto isSampled = [&](Value value) {
    return ownValues.contains(value) || getState(value).isSplit();
  };
  // The sums of the backward pass that a value is computed of.
  auto findSums = [&](Value value) {
    llvm::SetVector<Value> values;
    SmallVector<Operation *> sums;
    values.insert(value);
    for (unsigned i = 0; i < values.size(); ++i) {
      Operation *op = values[i].getDefiningOp();
      if (!op || !ofSamples.contains(values[i]) || isSampled(values[i]) ||
          phaseOf(op) == Phase::Forward)
        continue;
      llvm::SetVector<Value> reads = getReads(op);
      if (wholeOps.contains(op) || llvm::any_of(reads, isSampled))
        sums.push_back(op);
      else
        values.insert_range(reads);
    }
    return sums;
  };
  auto getOriginals = [&](Operation *sum) {
    return sum->getNumResults() == 1 ? originals.get(sum)
                                     : ArrayRef<Operation *>();
  };
  // Layers that follow on what is computed again may be missing there.
  for (Operation *op : ops)
    if (hlo::BroadcastInDimOp spread = findSpread(op);
        !hasOwnStatistics && spread && phaseOf(op) == Phase::Backward)
      for (Operation *sum : findSums(spread.getOperand()))
        if (isRecomputed(sum) && getOriginals(sum).empty() &&
            !dependsOnBatchAlone(sum->getResult(0)))
          return sum->emitError(
              "batch_norm: 'micro' can't tell what follows on a statistic that "
              "jax.checkpoint computes, and the forward pass does not; use one "
              "micro-batch, or return the loss, as jax.value_and_grad does");
  if (spreads.empty())
    return false;
  hasOwnStatistics = true;
  for (Operation *op : ops)
    if (phaseOf(op) == Phase::Forward && failed(follow(op)))
      return failure();

  // Whether gradients may be those of a statistic of all samples.
  bool hasWhole = llvm::any_of(ops, [&](Operation *op) {
    auto spread = dyn_cast<hlo::BroadcastInDimOp>(op);
    return spread && phaseOf(op) == Phase::Forward && !spreads.contains(op) &&
           ofSamples.contains(spread) && !lifting.lookup(spread) &&
           !isSampled(spread.getOperand()) &&
           spread.getType().getNumElements() >
               spread.getOperand().getType().getNumElements() &&
           !dependsOnBatchAlone(spread.getOperand());
  });
  Dependences dependences(main.front(), ownSpreads, originals);

  // Spreads a sum of the backward pass as that of each micro-batch, unless it
  // is one of all samples.
  auto takeGradient = [&](hlo::BroadcastInDimOp spread) -> LogicalResult {
    if (lifting.lookup(spread.getOperand()))
      return spreadOwn(spread);
    bool isOwn = false, isOpen = false, isCopied = false;
    SmallVector<Operation *> sums = findSums(spread.getOperand());
    for (Operation *sum : sums) {
      if (!isRecomputed(sum)) {
        isOwn |= hasLayer.contains(sum);
        isOpen |= !hasLayer.contains(sum);
        continue;
      }
      ArrayRef<Operation *> forward = getOriginals(sum);
      int64_t numOwn = llvm::count_if(forward, [&](Operation *original) {
        return bool(lifting.lookup(original->getResult(0)));
      });
      isOwn |= numOwn > 0 && numOwn == int64_t(forward.size());
      isCopied |= numOwn > 0 && numOwn < int64_t(forward.size());
    }
    if (!isOwn && (isOpen || isCopied)) {
      if (hasWhole && !isCopied && dependences.isBehindAll(spread))
        return success();
      if (hasWhole)
        return spread->emitError(
            "batch_norm: 'micro' can't tell whether this belongs to a "
            "statistic of each micro-batch or to one of all samples, on which "
            "no layer follows; use one micro-batch, or compute the latter of "
            "what a layer makes of the former, and outside of jax.checkpoint");
      isOwn = true;
    }
    if (!isOwn)
      return success();
    ownGradients.insert_range(sums);
    if (!lifting.canLift(spread.getOperand(), Phase::Backward))
      return spread->emitError(
          "batch_norm: 'micro' can't compute this gradient of the statistics "
          "of each micro-batch; use one micro-batch, or sums and elementwise "
          "operations of what parameters make of samples");
    return spreadOwn(spread);
  };
  for (Operation *op : ops)
    if (phaseOf(op) == Phase::Backward)
      if (hlo::BroadcastInDimOp spread = findSpread(op);
          spread && !isSampled(spread.getOperand()) &&
          failed(takeGradient(spread)))
        return failure();
  for (Operation *op : ops)
    if (failed(follow(op)))
      return failure();
  return true;
}

} // namespace whale
