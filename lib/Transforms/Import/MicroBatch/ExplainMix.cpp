//===- ExplainMix.cpp - What joins the samples of micro-batches -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: an operand of which a micro-batch would need all samples. Out: the error
// that names the operation, the cause as users know it, and a remedy.
//
//===----------------------------------------------------------------------===//

#include "TimeAxis.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/Attention.h"
#include "whale/Transforms/Attributes.h"

using namespace mlir;
namespace hlo = mlir::stablehlo;

namespace whale {

/// The operand that needs all moments of a value, on the way to this one.
OpOperand &TimeAxis::findMix(OpOperand &operand) const {
  OpOperand *mix = &operand;
  while (Operation *producer = mix->get().getDefiningOp()) {
    if (producer->getParentOp() != main || getLoop(producer))
      break;
    OpOperand *next = nullptr;
    producer->walk([&](Operation *inner) {
      for (OpOperand &read : inner->getOpOperands())
        if (Operation *op = read.get().getDefiningOp())
          if (getLoop(op) || turns.lookup(op) > 0)
            next = &read;
    });
    if (!next)
      break;
    mix = next;
  }
  return *mix;
}

/// The operation that sums over samples for a partial value, or null.
Operation *TimeAxis::findSum(Value value) const {
  while (Operation *op = value.getDefiningOp()) {
    auto partial = llvm::find_if(op->getOperands(), [&](Value operand) {
      return getState(operand).isPartial();
    });
    if (partial == op->operand_end())
      return op;
    value = *partial;
  }
  return nullptr;
}

/// Names the use that needs all moments, and a remedy.
std::pair<StringRef, StringRef> TimeAxis::explainMix(OpOperand &mix) const {
  Operation *op = mix.getOwner();
  std::pair<StringRef, StringRef> lookup = {
      "what is looked up among all samples",
      "samples in the order in which they come"};
  auto loop = op->getParentOfType<hlo::WhileOp>();
  if (loop && loop.getCond().isAncestor(op->getParentRegion()))
    return {"the condition of a loop, which all samples decide together",
            "a loop of a fixed number of rounds, as lax.fori_loop, that leaves "
            "a sample as it is once its own condition is false; jax.vmap of a "
            "plain lax.while_loop over one sample does that, a library's own "
            "loop may not"};
  if (getState(mix.get()).isPartial()) {
    Operation *sum = findSum(mix.get());
    if (isa_and_nonnull<hlo::GatherOp, hlo::DynamicSliceOp>(sum))
      return lookup;
    if (sum && phaseOf(sum) == Phase::Backward)
      return {"a gradient of all samples in a loop or branch, as for an update "
              "there",
              "a Python loop in its place"};
    if (sum && sum->getParentOfType<hlo::WhileOp>())
      return {"a statistic of all samples in a loop, as the loss in a line "
              "search",
              "an optimizer that evaluates the loss once, or the statistic "
              "behind the loop, of what each of its rounds returns"};
    if (getState(mix.get()) != AxisState::partial(Reduction::Sum))
      return {"an extreme of all samples, as a maximum over the mini-batch",
              "that of each sample, or that of all without a gradient "
              "(jax.lax.stop_gradient)"};
    return {"a statistic of all samples, as a mean over the mini-batch",
            ownStatistics
                ? "statistics of each sample, or without a gradient "
                  "(jax.lax.stop_gradient)"
                : "statistics of each sample, or without a gradient "
                  "(jax.lax.stop_gradient), or those of each micro-batch for a "
                  "batch norm (wh.Config({\"batch_norm\": \"micro\"}))"};
  }
  bool isInLoop = isa<hlo::WhileOp>(op) || loop;
  if (isInLoop && isa<hlo::WhileOp, hlo::DynamicSliceOp,
                      hlo::DynamicUpdateSliceOp, hlo::GatherOp>(op))
    return {"a loop that reads all samples, as lax.map or lax.scan over them",
            "jax.vmap in the place of the loop"};
  if (isInLoop || hlo::isBranch(op) || isa<hlo::ReturnOp>(op))
    return {"something in a loop or branch that needs all samples, where no "
            "micro-batch can wait for the others",
            "the same outside of the loop or branch"};
  if (isa<hlo::GatherOp, hlo::DynamicSliceOp>(op))
    return lookup;
  if (isa<hlo::DotGeneralOp, hlo::ConvolutionOp>(op) || isAttention(op))
    return {"a product that joins samples, as logits of every one with every "
            "other",
            "products of each sample alone"};
  return {"an operation that joins samples", "the same for each sample alone"};
}

InFlightDiagnostic TimeAxis::emitMixes(OpOperand &operand) const {
  OpOperand &mix = findMix(operand);
  auto [cause, help] = explainMix(mix);
  InFlightDiagnostic diagnostic =
      operand.getOwner()->emitError("micro-batches: '")
      << operand.getOwner()->getName() << "' needs operand #"
      << operand.getOperandNumber() << " of the whole mini-batch, for " << cause
      << ": with " << moments
      << " micro-batches that would be another result; use one micro-batch, or "
      << help;
  diagnostic.attachNote(operand.get().getLoc())
      << "the operand comes from here";
  if (auto loop = operand.getOwner()->getParentOfType<hlo::WhileOp>())
    diagnostic.attachNote(loop.getLoc()) << "this is the loop";
  return diagnostic;
}

} // namespace whale
