//===- StepAnalysis.cpp - Phases of a step --------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepAnalysis.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Dialect/Whale/IR/Reads.h"
#include "whale/Transforms/Feedback.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace whale {

Operation *ancestorInMain(Operation *op, Block *body) {
  return op ? body->findAncestorOpInBlock(*op) : nullptr;
}

bool movesData(Operation *op) {
  return isa<stablehlo::BroadcastInDimOp, stablehlo::ConvertOp,
             stablehlo::DynamicSliceOp, stablehlo::ReshapeOp,
             stablehlo::SliceOp, stablehlo::TransposeOp>(op);
}

void findConstants(Step &step) {
  for (auto &[op, info] : step) {
    if (op->getNumRegions() != 0 || !isMemoryEffectFree(op))
      continue;
    info.constant = (op->getNumOperands() == 0 || movesData(op)) &&
                    llvm::all_of(op->getOperands(), [&](Value operand) {
                      auto it = step.find(operand.getDefiningOp());
                      return it != step.end() && it->second.constant;
                    });
  }
}

namespace {

/// Where the results of an operation go.
struct Destinations {
  bool forward = false;
  bool backward = false;
  bool apply = false;
  bool otherResult = false;
};

class PhaseAnalysis {
public:
  PhaseAnalysis(Step &step, func::FuncOp main)
      : step(step), body(&main.front()) {
    for (std::optional<unsigned> result : findFeedback(main))
      if (result)
        stateResults.insert(*result);
    for (unsigned result = 0; result < main.getNumResults(); ++result)
      if (main.getResultAttr(result, kCallbackAttr))
        callbackResults.insert(result);
  }

  void run() {
    for (auto &[op, info] : step)
      if (!info.phase && dependsOnGradient(op))
        afterGradient.insert(op);
    for (auto &[op, info] : llvm::reverse(step))
      if (onlyObserves(op))
        observers.insert(op);
    for (auto &[op, info] : llvm::reverse(step))
      if (!info.phase && !follows(op))
        info.phase = decide(op, destinations(op));
    for (auto &[op, info] : step)
      if (!info.phase)
        info.phase = findLastRead(op);
  }

private:
  /// Whether callbacks alone get what it computes, as a check for NaNs or what
  /// is printed.
  bool onlyObserves(Operation *op) {
    return !op->use_empty() && llvm::all_of(op->getUses(), [&](OpOperand &use) {
      return isObservation(use);
    });
  }

  bool isObservation(OpOperand &use) {
    Operation *user = ancestorInMain(use.getOwner(), body);
    return user == body->getTerminator()
               ? callbackResults.contains(use.getOperandNumber())
               : observers.contains(user);
  }

  /// Whether it is computed where what it observes is.
  bool follows(Operation *op) {
    return observers.contains(op) && !afterGradient.contains(op) &&
           !step.find(op)->second.constant;
  }

  /// The last phase of what the operation reads.
  Phase findLastRead(Operation *op) {
    Phase last = Phase::Forward;
    forEachRead(op, [&](Value value) {
      auto it = step.find(ancestorInMain(value.getDefiningOp(), body));
      if (it != step.end() && !it->second.constant)
        last = std::max(last, *it->second.phase);
    });
    return last;
  }

  bool dependsOnGradient(Operation *op) {
    bool depends = false;
    forEachRead(op, [&](Value value) {
      Operation *producer = ancestorInMain(value.getDefiningOp(), body);
      if (!producer)
        return;
      auto it = step.find(producer);
      depends |= it != step.end() && (it->second.phase == Phase::Backward ||
                                      it->second.phase == Phase::Apply ||
                                      afterGradient.contains(producer));
    });
    return depends;
  }

  Destinations destinations(Operation *op) {
    Destinations to;
    bool isObserver = observers.contains(op);
    for (OpOperand &use : op->getUses()) {
      // Who looks at a value does not decide what it is for.
      if (!isObserver && isObservation(use))
        continue;
      Operation *user = ancestorInMain(use.getOwner(), body);
      if (user == body->getTerminator()) {
        bool isState = stateResults.contains(use.getOperandNumber());
        (isState ? to.apply : to.otherResult) = true;
        continue;
      }
      auto it = step.find(user);
      if (it == step.end() || !it->second.phase)
        continue;
      to.forward |= it->second.phase == Phase::Forward;
      to.backward |= it->second.phase == Phase::Backward;
      to.apply |= it->second.phase == Phase::Apply;
    }
    return to;
  }

  Phase decide(Operation *op, const Destinations &to) {
    if (afterGradient.contains(op)) {
      // Between two parts of the gradient, as the clipping of a cotangent.
      bool inside = to.backward && !to.forward && !to.apply;
      return inside ? Phase::Backward : Phase::Apply;
    }
    if (step.find(op)->second.constant) {
      if (to.forward)
        return Phase::Forward;
      if (to.backward)
        return Phase::Backward;
    }
    if (to.forward || to.backward)
      return Phase::Forward;
    return to.apply && !to.otherResult ? Phase::Apply : Phase::Forward;
  }

  Step &step;
  Block *body;
  DenseSet<unsigned> stateResults, callbackResults;
  DenseSet<Operation *> afterGradient, observers;
};

} // namespace

void assignPhases(Step &step, func::FuncOp main) {
  bool hasGradient = llvm::any_of(
      step, [](auto &entry) { return entry.second.phase == Phase::Backward; });
  if (!hasGradient) {
    for (auto &[op, info] : step)
      if (!info.phase)
        info.phase = Phase::Forward;
    return;
  }
  PhaseAnalysis(step, main).run();
}

} // namespace whale
