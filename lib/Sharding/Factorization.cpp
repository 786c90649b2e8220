//===- Factorization.cpp - The pieces that dimensions consist of ---------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values that are one and the same on both sides of a region, or of the step
// (results that feed arguments), are joined by union-find. Each set of them has
// one list of cuts for each dimension. A round refines these by the rule of
// each operation, forward and backward by turns, since cuts travel both ways,
// until one changes nothing. Cuts are only added, and those of a dimension
// divide one another, so it ends. Cost: a round is linear in the operations.
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/Factorization.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// Whether the operation takes a micro-batch from the mini-batch, or puts what
/// is made of it back, while others have another size. Where it is there says
/// nothing of how its samples are shared out.
static bool movesUnevenMoment(Operation *op) {
  auto differ = [](ValueRange values) {
    return !llvm::all_equal(values.getTypes());
  };
  if (isa<hlo::ConcatenateOp>(op))
    return differ(op->getOperands()) &&
           op->getOperand(0).getDefiningOp<MicroBatchesOp>();
  if (!isa<hlo::SliceOp>(op))
    return false;
  SmallVector<Value> values{op->getResult(0)};
  for (OpOperand &use : op->getUses())
    if (isa<YieldOp>(use.getOwner()))
      llvm::append_range(values, resultsOfYielded(use));
  for (Value value : values)
    for (OpOperand &use : value.getUses())
      if (auto loop = dyn_cast<MicroBatchesOp>(use.getOwner())) {
        unsigned moments = loop.getNumMoments();
        unsigned first = use.getOperandNumber() / moments * moments;
        if (differ(loop->getOperands().slice(first, moments)))
          return true;
      }
  return false;
}

Factorization::Factorization(func::FuncOp function, ArrayRef<int64_t> feeds,
                             RuleCache &ruleCache) {
  for (auto [result, argument] : llvm::enumerate(feeds))
    if (argument >= 0)
      link(function.front().getTerminator()->getOperand(result),
           function.getArgument(argument));

  std::vector<std::pair<Operation *, const OpRule &>> rules;
  function.walk([&](Operation *op) {
    linkRegions(op);
    const std::optional<OpRule> &rule = ruleCache.of(op);
    if (rule && !movesUnevenMoment(op))
      rules.push_back({op, *rule});
  });
  auto refineAll = [&](auto &&inOrder) {
    bool changed = false;
    for (auto &[op, rule] : inOrder)
      changed |= refine(op, rule);
    return changed;
  };
  while (refineAll(rules) && refineAll(llvm::reverse(rules)))
    ;
}

Value Factorization::leader(Value value) {
  auto parentOf = [&](Value child) {
    Value found = parent.lookup(child);
    return found ? found : child;
  };
  Value root = value;
  while (parentOf(root) != root)
    root = parentOf(root);
  while (value != root)
    value = std::exchange(parent[value], root);
  return root;
}

void Factorization::link(Value a, Value b) {
  if (a.getType() == b.getType())
    parent[leader(a)] = leader(b);
}

/// Values that are one and the same on both sides of a region.
void Factorization::linkRegions(Operation *op) {
  if (auto graph = dyn_cast<TaskGraphOp>(op)) {
    for (auto [result, yielded] :
         llvm::zip(op->getResults(),
                   graph.getBody().front().getTerminator()->getOperands()))
      link(result, yielded);
  } else if (auto loop = dyn_cast<hlo::WhileOp>(op)) {
    Block &body = loop.getBody().front();
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      link(op->getOperand(i), op->getResult(i));
      link(op->getOperand(i), body.getArgument(i));
      link(op->getOperand(i), body.getTerminator()->getOperand(i));
      link(op->getOperand(i), loop.getCond().front().getArgument(i));
    }
  } else if (auto loop = dyn_cast<MicroBatchesOp>(op)) {
    for (int64_t m = 0; m < loop.getNumMoments(); ++m)
      for (BlockArgument argument : loop.getBody(m).getArguments())
        link(loop.getSlice(argument.getArgNumber(), m).get(), argument);
    for (OpResult result : op->getResults()) {
      auto [index, moment] = loop.getYielded(result.getResultNumber());
      for (int64_t m = 0; m < loop.getNumMoments(); ++m)
        if (!moment || *moment == m)
          link(result, loop.getYield(m)->getOperand(index));
    }
  } else if (hlo::isBranch(op)) {
    for (Region &region : op->getRegions())
      for (auto [result, yielded] : llvm::zip(
               op->getResults(), region.front().getTerminator()->getOperands()))
        link(result, yielded);
  } else if (isa<hlo::OptimizationBarrierOp>(op)) {
    for (auto [operand, result] :
         llvm::zip(op->getOperands(), op->getResults()))
      link(operand, result);
  }
}

SmallVector<Factorization::Cuts> &Factorization::cutsOf(Value value) {
  Value root = leader(value);
  SmallVector<Cuts> &list = cuts[root];
  if (list.empty())
    list.resize(cast<RankedTensorType>(root.getType()).getRank());
  return list;
}

/// A cut that doesn't fit into the chain of divisors is left out: the
/// operation that needs it is not split there.
bool Factorization::addCut(Value value, unsigned dim, int64_t cut) {
  int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(dim);
  if (cut <= 1 || cut >= size || size % cut != 0)
    return false;
  Cuts &chain = cutsOf(value)[dim];
  auto *it = llvm::lower_bound(chain, cut);
  if (it != chain.end() && (*it == cut || *it % cut != 0))
    return false;
  if (it != chain.begin() && cut % *std::prev(it) != 0)
    return false;
  chain.insert(it, cut);
  return true;
}

/// Makes each factor's boundaries cuts of the dimensions that it occurs in, and
/// each cut inside one occurrence a cut of the others.
bool Factorization::refine(Operation *op, const OpRule &rule) {
  struct Place {
    Value value;
    unsigned dim;
    int64_t minor;
  };
  SmallVector<SmallVector<Place>> places(rule.factors.size());
  auto collect = [&](Value value, const DimFactors &dims) {
    for (auto [dim, factors] : llvm::enumerate(dims)) {
      int64_t minor = 1;
      for (unsigned factor : llvm::reverse(factors)) {
        places[factor].push_back({value, unsigned(dim), minor});
        minor *= rule.factors[factor].extent;
      }
    }
  };
  for (auto [value, dims] : llvm::zip(op->getOperands(), rule.operands))
    collect(value, dims);
  for (auto [value, dims] : llvm::zip(op->getResults(), rule.results))
    collect(value, dims);

  bool changed = false;
  for (auto [factor, occurrences] : llvm::enumerate(places)) {
    int64_t extent = rule.factors[factor].extent;
    if (extent == 0)
      continue;
    llvm::SmallSetVector<int64_t, 4> inside;
    for (const Place &place : occurrences)
      for (int64_t cut : cutsOf(place.value)[place.dim])
        if (cut > place.minor && cut < place.minor * extent &&
            cut % place.minor == 0 && extent % (cut / place.minor) == 0)
          inside.insert(cut / place.minor);
    bool isShared = rule.factors[factor].kind != FactorKind::Blocked;
    for (const Place &place : occurrences) {
      changed |= addCut(place.value, place.dim, place.minor);
      changed |= addCut(place.value, place.dim, place.minor * extent);
      if (isShared)
        for (int64_t cut : inside)
          changed |= addCut(place.value, place.dim, place.minor * cut);
    }
  }
  return changed;
}

SmallVector<DimPiece> Factorization::getPieces(Value value) {
  SmallVector<DimPiece> pieces;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  for (auto [dim, chain] : llvm::enumerate(cutsOf(value))) {
    SmallVector<int64_t> bounds{1};
    llvm::append_range(bounds, chain);
    bounds.push_back(shape[dim]);
    for (size_t i = bounds.size() - 1; i > 0; --i)
      if (bounds[i] > bounds[i - 1])
        pieces.push_back(
            {unsigned(dim), bounds[i] / bounds[i - 1], bounds[i - 1]});
  }
  return pieces;
}

} // namespace whale
