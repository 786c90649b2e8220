//===- Turns.cpp - What rank classes compute alike ------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The code of a rank class depends on its local sizes alone (RankClasses.h). So
// that of a turn depends on those of the values that it touches, and on which
// of them were there before it, as what: RankClassBuilder::find records that.
//
//===----------------------------------------------------------------------===//

#include "Turns.h"

#include "whale/Sharding/PlacementAttrs.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

TurnKind::TurnKind(MicroBatchesOp loop, ArrayRef<Operation *> ops,
                   const ResolvedReshards &reshards) {
  auto addPlacement = [&](Value value) {
    if (PlacementAttr placement = getPlacement(value))
      sizes.addPlacement(placement);
  };
  auto addReshard = [&](ReshardOp reshard) {
    addPlacement(reshard.getInput());
    addPlacement(reshard.getResult());
    sizes.addSteps(reshards.at(reshard), loop.getContext());
  };
  auto visit = [&](Operation *op) {
    if (auto convolution = dyn_cast<hlo::ConvolutionOp>(op))
      sizes.addConvolution(convolution);
    llvm::for_each(op->getResults(), addPlacement);
    if (auto reshard = dyn_cast<ReshardOp>(op))
      addReshard(reshard);
    // Reducers have no placements.
    if (!hasPlacedRegions(op->getParentOp()))
      return;
    for (Value operand : op->getOperands()) {
      addPlacement(operand);
      if (auto reshard = operand.getDefiningOp<ReshardOp>())
        addReshard(reshard);
    }
  };
  for (Operation *op : ops)
    op->walk(visit);

  // The sums to which the turn may add: not those of other task graphs.
  Operation *yield = ops.front()->getBlock()->getTerminator();
  for (unsigned i = 0; i < loop.getNumReduced(); ++i) {
    auto graph = yield->getOperand(i).getDefiningOp<TaskGraphOp>();
    if (!graph || llvm::is_contained(ops, graph))
      addPlacement(loop.getResult(i));
  }
}

TurnVariant &TurnKind::getVariant(int64_t rank) {
  std::vector<int64_t> key = sizes.of(rank);
  std::lock_guard lock(mutex);
  return variants[std::move(key)];
}

TurnKind &TurnTable::getKind(MicroBatchesOp loop, ArrayRef<Operation *> ops) {
  std::lock_guard lock(mutex);
  std::unique_ptr<TurnKind> &kind = kinds[ops.vec()];
  if (!kind)
    kind = std::make_unique<TurnKind>(loop, ops, reshards);
  return *kind;
}

const Segment *TurnTable::add(std::unique_ptr<Segment> segment) {
  std::lock_guard lock(mutex);
  return segments.emplace_back(std::move(segment)).get();
}

} // namespace whale
