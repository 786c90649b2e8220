//===- UnreadInits.cpp - Stacks that need no initial value ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop that counts from 0 to n and stores slice i of n in its i-th iteration,
// reading nothing else of the tensor, leaves nothing of its initial value: that
// one needs no more than memory.
//
//===----------------------------------------------------------------------===//

#include "Kernel/KernelBuilder.h"
#include "StableHLO/Patterns.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Transforms/OpCost.h"

using namespace mlir;
using namespace whale;

/// Whether every element of carried value `number` is stored, none read.
static bool isOnlyStored(stablehlo::WhileOp loop, unsigned number) {
  Block &cond = loop.getCond().front(), &body = loop.getBody().front();
  BlockArgument stack = body.getArgument(number);
  if (!cond.getArgument(number).use_empty() || !stack.hasOneUse())
    return false;
  auto store =
      dyn_cast<stablehlo::DynamicUpdateSliceOp>(*stack.getUsers().begin());
  if (!store || store->getBlock() != &body || store.getOperand() != stack ||
      !store->hasOneUse() ||
      body.getTerminator()->getOperand(number) != store.getResult())
    return false;
  auto whole = cast<RankedTensorType>(store.getType());
  auto slice = cast<RankedTensorType>(store.getUpdate().getType());
  std::optional<int64_t> counted;
  for (int64_t dim = 0; dim < whole.getRank(); ++dim) {
    if (slice.getDimSize(dim) == whole.getDimSize(dim))
      continue;
    if (counted || slice.getDimSize(dim) != 1)
      return false;
    counted = dim;
  }
  if (!counted)
    return false;
  auto counter = dyn_cast<BlockArgument>(store.getStartIndices()[*counted]);
  std::optional<whale::CountedLoop> rounds = whale::countedLoop(loop);
  return counter && counter.getOwner() == &body && rounds &&
         rounds->counter == counter.getArgNumber() && rounds->start == 0 &&
         rounds->step == 1 && rounds->trips >= whole.getDimSize(*counted);
}

void whale::dropUnreadInits(PatternRewriter &rewriter,
                            stablehlo::WhileOp loop) {
  rewriter.setInsertionPoint(loop);
  for (unsigned number = 0; number < loop->getNumOperands(); ++number) {
    Value init = loop->getOperand(number);
    RankedTensorType type =
        getStorageType(cast<RankedTensorType>(init.getType()));
    // Only what would have to be filled.
    if (!type || !matchSplat(init) || !isOnlyStored(loop, number))
      continue;
    // A kernel that does nothing.
    auto kernel =
        makeKernel(rewriter, loop.getLoc(), /*blocks=*/false, type,
                   ValueRange(), [](KernelBuilder &) { return success(); });
    Value memory = kernel->getResult(0);
    if (type != init.getType())
      memory = UnrealizedConversionCastOp::create(rewriter, loop.getLoc(),
                                                  init.getType(), memory)
                   .getResult(0);
    rewriter.modifyOpInPlace(loop, [&] { loop->setOperand(number, memory); });
  }
}
