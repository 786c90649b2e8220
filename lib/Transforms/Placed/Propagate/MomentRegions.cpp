//===- MomentRegions.cpp - Regions of unlike micro-batches ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: loops over micro-batches, and for each micro-batch the first one that has
// the same shares. Out: loops in which micro-batches that differ have regions
// of their own.
//
// A loop becomes another one, with a copy of a region for each kind of
// micro-batch that uses it. The FLOPs and bytes of its task graphs are shared
// out by the number of micro-batches. countVariants says how many kinds there
// may be, by the size of the program.
//
// Cost: each loop that changes is copied: its operations times the kinds.
// Finding the first micro-batch of a region is linear in the micro-batches.
//
//===----------------------------------------------------------------------===//

#include "MomentRegions.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace whale;

int64_t whale::countVariants(func::FuncOp function) {
  // All later passes work on each kind's copy of the loops' operations. So the
  // first bounds their number in all copies together: a larger one makes large
  // programs slow to compile, a smaller one lets fewer of them rotate shares.
  // The second bounds the kinds of small programs, and with them the period of
  // a rotation: over 32 micro-batches together, shares are right to one sample.
  // It is generous. From 625 operations on the first is the tighter bound.
  constexpr int64_t kMostOperations = 20000, kMostVariants = 32;
  int64_t operations = 0;
  for (auto loop : function.getOps<MicroBatchesOp>())
    loop.getBody(0).walk([&](Operation *) { ++operations; });
  return std::min(kMostVariants, kMostOperations / (operations + 1));
}

/// Leaves the task graphs of a region what they cost for `moments` of the
/// micro-batches, instead of `all` that it was for.
static void shareCosts(Region &region, int64_t moments, int64_t all) {
  auto share = [&](int64_t cost) {
    return cost / all * moments + cost % all * moments / all;
  };
  for (auto graph : region.getOps<TaskGraphOp>()) {
    if (std::optional<int64_t> flops = graph.getFlops())
      graph.setFlops(share(*flops));
    if (std::optional<int64_t> bytes = graph.getBytes())
      graph.setBytes(share(*bytes));
  }
}

bool whale::multiplyRegions(
    func::FuncOp function, ArrayRef<int64_t> firstAlike,
    llvm::function_ref<void(MicroBatchesOp, MicroBatchesOp)> onCopy) {
  bool hasChanged = false;
  for (auto loop :
       llvm::make_early_inc_range(function.getOps<MicroBatchesOp>())) {
    std::map<std::pair<int64_t, int64_t>, int64_t> numbers;
    SmallVector<int64_t> variants;
    for (auto [moment, variant] : llvm::enumerate(loop.getVariants()))
      variants.push_back(
          numbers.try_emplace({variant, firstAlike[moment]}, numbers.size())
              .first->second);
    if (numbers.size() == loop.getBodies().size())
      continue;
    hasChanged = true;
    OpBuilder builder(loop);
    OperationState state(loop.getLoc(), MicroBatchesOp::getOperationName());
    state.addOperands(loop->getOperands());
    state.addTypes(loop->getResultTypes());
    state.addAttributes(loop->getAttrs());
    for (size_t i = 0; i < numbers.size(); ++i) {
      int64_t moment = llvm::find(variants, int64_t(i)) - variants.begin();
      Region &body = loop.getBodies()[loop.getVariants()[moment]];
      Region *clone = state.addRegion();
      IRMapping mapping;
      body.cloneInto(clone, mapping);
      shareCosts(*clone, llvm::count(variants, int64_t(i)),
                 loop.getNumMoments(&body));
    }
    auto copy = cast<MicroBatchesOp>(builder.create(state));
    copy.setVariants(variants);
    onCopy(loop, copy);
    loop->replaceAllUsesWith(copy);
    loop->erase();
  }
  return hasChanged;
}

/// The first of the micro-batches with this region.
static int64_t firstWith(MicroBatchesOp loop, int64_t region) {
  return llvm::find(loop.getVariants(), region) - loop.getVariants().begin();
}

std::optional<int64_t> whale::momentOf(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto loop = dyn_cast_or_null<MicroBatchesOp>(op->getParentOp()))
      return firstWith(loop, op->getParentRegion()->getRegionNumber());
  return std::nullopt;
}

std::optional<int64_t> whale::momentOf(OpOperand &piece) {
  auto loop = cast<MicroBatchesOp>(piece.getOwner());
  int64_t moment = piece.getOperandNumber() % loop.getNumMoments();
  return firstWith(loop, loop.getVariants()[moment]);
}

std::optional<int64_t> whale::momentOf(OpResult result) {
  auto loop = cast<MicroBatchesOp>(result.getOwner());
  auto [index, moment] = loop.getYielded(result.getResultNumber());
  if (!moment)
    return std::nullopt;
  return firstWith(loop, loop.getVariants()[*moment]);
}
