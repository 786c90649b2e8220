//===- JoinSamples.cpp - What is computed of all samples at once ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: operands of which the forward pass needs all samples, as for the logits
// of every one with every other. Out: what is computed once, behind the
// forwards of all micro-batches and before their backwards.
//
// These are all forward operations that depend on such an operand. Backward
// ones are those of their gradients: all that they read of samples has been
// joined for the forward. Where the model goes on behind, with parameters in
// products, it would be computed with all samples at once, and micro-batches
// were for nothing: an error. Cost: a walk over @main, and for each product
// behind one back through all that its operands are computed from.
//
//===----------------------------------------------------------------------===//

#include "TimeAxis.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/Attention.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Transforms/Attributes.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

static bool isProduct(Operation *op) {
  return isa<hlo::DotGeneralOp, hlo::ConvolutionOp>(op) || isAttention(op);
}

/// Whether a value is computed from parameters, and from no sample.
bool TimeAxis::dependsOnParameters(Value value) const {
  llvm::SetVector<Value> values;
  values.insert(value);
  bool found = false;
  for (unsigned i = 0; i < values.size(); ++i) {
    auto argument = dyn_cast<BlockArgument>(values[i]);
    if (!argument) {
      values.insert_range(getReads(values[i].getDefiningOp()));
      continue;
    }
    if (getState(argument).isCut())
      return false;
    found |= cast<ShapedType>(argument.getType()).getNumElements() > 1;
  }
  return found;
}

/// Whether an operation multiplies by parameters, as a layer of a model does.
bool TimeAxis::usesParameters(Operation *op) const {
  bool hasProduct = op->walk([](Operation *inner) {
                        return isProduct(inner) ? WalkResult::interrupt()
                                                : WalkResult::advance();
                      }).wasInterrupted();
  return hasProduct && llvm::any_of(getReads(op), [&](Value read) {
           return dependsOnParameters(read);
         });
}

hlo::BroadcastInDimOp TimeAxis::toSpread(Operation *op) {
  auto spread = dyn_cast_or_null<hlo::BroadcastInDimOp>(op);
  bool grows = spread && spread.getType().getNumElements() >
                             spread.getOperand().getType().getNumElements();
  return grows ? spread : hlo::BroadcastInDimOp();
}

/// Leaves an operation until after the moments. So is what is computed of sums
/// alone for it, and samples are joined before they are spread: less is kept.
void TimeAxis::takeWhole(Operation *top) {
  SmallVector<Operation *> worklist{top};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    op->walk([&](Operation *inner) { wholeOps.insert(inner); });
    for (OpOperand &operand : op->getOpOperands())
      if (hlo::BroadcastInDimOp spread =
              toSpread(operand.get().getDefiningOp());
          spread && getState(operand.get()).isSplit()) {
        auto copy = cast<hlo::BroadcastInDimOp>(OpBuilder(op).clone(*spread));
        operand.set(copy);
        worklist.push_back(copy);
      }
    for (Value read : getReads(op)) {
      Operation *producer = read.getDefiningOp();
      if (producer && getState(read).isPartial() && isOfSums(producer) &&
          !hlo::isControlFlow(producer) && !wholeOps.contains(producer))
        worklist.push_back(producer);
    }
  }
}

/// The operand for which the samples that an operation of the forward pass
/// depends on have met, if they have; fails with an error where the model would
/// go on behind.
FailureOr<OpOperand *>
TimeAxis::findMeeting(Operation *op, OpOperand *mix,
                      const llvm::DenseMap<Value, OpOperand *> &metBy) {
  OpOperand *cause = meetings.lookup(op);
  for (Value read : getReads(op))
    if (OpOperand *met = metBy.lookup(read))
      cause = met;
  if (!cause && mix) {
    // A loop over all samples may hold the model.
    Operation *origin =
        main.front().findAncestorOpInBlock(*findMix(*mix).getOwner());
    if (usesParameters(origin))
      return emitMixes(*mix);
    meetings[op] = cause = mix;
  }
  if (cause && isInLoop(op) && usesParameters(op))
    return emitMixes(*cause);
  return cause;
}

LogicalResult TimeAxis::joinSamples(ArrayRef<OpOperand *> mixes) {
  llvm::DenseMap<Operation *, OpOperand *> mixOf;
  for (OpOperand *mix : mixes)
    mixOf[main.front().findAncestorOpInBlock(*mix->getOwner())] = mix;
  // Values of the forward pass that depend on samples that have met.
  llvm::DenseMap<Value, OpOperand *> metBy;
  // Values that depend on samples: all of them, those of the forward pass that
  // are whole behind the loop anyway, what the backward pass computes of these
  // alone, and what depends on what was computed behind the loop.
  llvm::DenseSet<Value> ofSamples, whole, gradients, behind;
  for (BlockArgument argument : main.getArguments())
    if (getState(argument).isCut())
      ofSamples.insert(argument);
  for (Operation &op : main.front().without_terminator()) {
    llvm::SetVector<Value> reads = getReads(&op);
    reads.remove_if([&](Value read) { return !ofSamples.contains(read); });
    OpOperand *mix = mixOf.lookup(&op);
    if (reads.empty() && !mix)
      continue;
    Operation::result_range results = op.getResults();
    ofSamples.insert_range(results);
    auto readsAny = [&](const llvm::DenseSet<Value> &values) {
      return llvm::any_of(reads,
                          [&](Value read) { return values.contains(read); });
    };
    bool isWhole = false;
    if (phaseOf(&op) == Phase::Forward) {
      FailureOr<OpOperand *> met = findMeeting(&op, mix, metBy);
      if (failed(met))
        return failure();
      isWhole = *met;
      for (Value result : results) {
        if (*met)
          metBy[result] = *met;
        if (getState(result).isPartial())
          whole.insert(result);
      }
      if (isWhole || !isInLoop(&op)) {
        whole.insert_range(reads);
        whole.insert_range(results);
        behind.insert_range(results);
      }
    } else if (phaseOf(&op) == Phase::Backward &&
               llvm::all_of(reads, [&](Value read) {
                 return whole.contains(read) || gradients.contains(read);
               })) {
      gradients.insert_range(results);
      isWhole = mix || (readsAny(whole) && readsAny(behind));
      if (isWhole || readsAny(behind))
        behind.insert_range(results);
    }
    if (mix && (!isWhole || wholeOps.contains(mix->getOwner())))
      return emitMixes(*mix);
    if (isWhole)
      takeWhole(&op);
  }
  return success();
}

} // namespace whale
