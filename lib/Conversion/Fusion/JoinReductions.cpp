//===- JoinReductions.cpp - Reductions of the same operands ---------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a block of linalg operations for a GPU, where a kernel takes as long as
// its operands are read. Out: reductions (and parallel operations of few
// points) over the same loops that share an operand are one operation with
// several results, as the sums of a batch norm and its gradient, and those for
// the scale and the bias of a layer norm. An operation moves to an earlier one
// if all that it reads is there before that, or is an initial value that can
// move, too.
//
// Cost: for each operation all that read one of its operands, or a result of
// what makes one, are tried: quadratic in the readers of a value. A join copies
// both bodies and looks through all linalg operations of the block.
//
//===----------------------------------------------------------------------===//

#include "Fusion/FuseKernels.h"

#include "LoopNest/LinalgToKernel.h"
#include "LoopNest/LoopNest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Step/FusionRule.h"

using namespace mlir;
using namespace whale;
using linalg::GenericOp;

/// Points of a parallel operation that has nothing to do but to be launched.
static constexpr int64_t kFewPoints = 64 * 1024;

/// Whether threads can share the operation out, also as a part of another one.
static bool canJoin(GenericOp op) {
  if (op.getNumReductionLoops() == 0) {
    int64_t points = 1;
    for (int64_t size : op.getStaticLoopRanges())
      if (llvm::MulOverflow(points, size, points))
        return false;
    return points <= kFewPoints && op.getNumDpsInputs() > 0 && isParallel(op) &&
           llvm::all_of(op->getResults(), [&](OpResult result) {
             return !findStore(op, result.getResultNumber());
           });
  }
  return llvm::all_of(op->getResults(), [&](OpResult result) {
    unsigned number = result.getResultNumber();
    return isAccumulated(op, number)
               ? LoopNest::findCombiner(op, number) != nullptr
               : !op.payloadUsesValueFromOperand(op.getDpsInitOperand(number));
  });
}

/// Whether `value` is computed before the operation `place`, or can be: it is
/// an initial value that needs nothing else. Those are added to `moved`, in
/// order.
static bool isBefore(Value value, Operation *place,
                     llvm::SetVector<Operation *> &moved) {
  if (isBefore(value, place))
    return true;
  Operation *maker = value.getDefiningOp();
  auto generic = dyn_cast<GenericOp>(maker);
  if ((!generic || generic.getNumDpsInputs() > 0) &&
      !isa<tensor::EmptyOp, stablehlo::ConstantOp>(maker))
    return false;
  for (Value operand : getReads(maker))
    if (!isBefore(operand, place, moved))
      return false;
  if (generic)
    for (Value init : generic.getOutputs())
      if (!isBefore(init, place, moved))
        return false;
  moved.insert(maker);
  return true;
}

/// Whether a result that could be written over an argument, as that of a
/// parameter that is updated, no longer could if `op` moved to the operation
/// `place`, as others read the argument later.
static bool losesItsPlace(GenericOp op, Operation *place) {
  auto isReturned = [&](OpResult result) {
    return llvm::any_of(result.getUsers(), [](Operation *user) {
      return user->hasTrait<OpTrait::IsTerminator>();
    });
  };
  return llvm::any_of(op.getDpsInputs(), [&](Value input) {
    return isa<BlockArgument>(input) &&
           llvm::any_of(op->getResults(),
                        [&](OpResult result) {
                          return result.getType() == input.getType() &&
                                 isReturned(result);
                        }) &&
           llvm::any_of(input.getUsers(), [&](Operation *user) {
             Operation *reader = op->getBlock()->findAncestorOpInBlock(*user);
             return reader && reader != op && place->isBeforeInBlock(reader);
           });
  });
}

/// Whether `op` can be a part of `to`, before it.
static bool canJoin(GenericOp to, GenericOp op,
                    llvm::SetVector<Operation *> &moved) {
  if (to->getBlock() != op->getBlock() || !to->isBeforeInBlock(op) ||
      !canJoin(to) || to.getStaticLoopRanges() != op.getStaticLoopRanges() ||
      to.getIteratorTypesArray() != op.getIteratorTypesArray() ||
      to->getNumOperands() + op->getNumOperands() > kMostFusedBuffers ||
      losesItsPlace(op, to))
    return false;
  for (Value value : getCaptures(op.getRegion()))
    if (value.getDefiningOp() == to || !isBefore(value, to, moved))
      return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    if (operand.get().getDefiningOp() != to)
      return isBefore(operand.get(), to, moved);
    auto made = cast<OpResult>(operand.get());
    return op.isDpsInput(&operand) &&
           (to.getNumReductionLoops() == 0 ||
            !isAccumulated(to, made.getResultNumber())) &&
           to.getIndexingMapMatchingResult(made) ==
               op.getMatchingIndexingMap(&operand);
  });
}

/// The first operation that `op` can be a part of.
static GenericOp findHost(GenericOp op, llvm::SetVector<Operation *> &moved) {
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    // What is far smaller than the loops is in a cache.
    if (!map.isPermutation())
      continue;
    SmallVector<GenericOp> candidates;
    SmallVector<Value> alike = {input->get()};
    if (auto maker = input->get().getDefiningOp<GenericOp>()) {
      candidates.push_back(maker);
      alike = maker.getResults();
    }
    for (Value value : alike)
      for (OpOperand &use : value.getUses()) {
        auto other = dyn_cast<GenericOp>(use.getOwner());
        if (other && other != op && other.isDpsInput(&use) &&
            other.getMatchingIndexingMap(&use) == map)
          candidates.push_back(other);
      }
    for (GenericOp to : candidates) {
      moved.clear();
      if (canJoin(to, op, moved))
        return to;
    }
  }
  return {};
}

void whale::joinReductions(RewriterBase &rewriter, Block &block) {
  SmallVector<GenericOp> generics(block.getOps<GenericOp>());
  for (GenericOp op : generics) {
    llvm::SetVector<Operation *> moved;
    if (!canJoin(op))
      continue;
    if (GenericOp to = findHost(op, moved)) {
      for (Operation *maker : moved)
        rewriter.moveOpBefore(maker, to);
      AffineMap same = rewriter.getMultiDimIdentityMap(op.getNumLoops());
      GenericOp joined = joinOperations(rewriter, to, op, same.getResults());
      llvm::replace(generics, to, joined);
    }
  }
}
