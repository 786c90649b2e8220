//===- StepAnalysis.cpp - Phases of a step --------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepAnalysis.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
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
  }

  void run() {
    for (auto &[op, info] : step)
      if (!info.phase && dependsOnGradient(op))
        afterGradient.insert(op);
    for (auto &[op, info] : llvm::reverse(step))
      if (!info.phase)
        info.phase = decide(op, destinations(op));
  }

private:
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
    for (OpOperand &use : op->getUses()) {
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
  DenseSet<unsigned> stateResults;
  DenseSet<Operation *> afterGradient;
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
