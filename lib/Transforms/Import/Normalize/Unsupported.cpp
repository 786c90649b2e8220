//===- Unsupported.cpp - What Whale refuses -------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "whale/Dialect/StableHLO/IR/CustomCalls.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace whale::normalize {

/// Operands that a region reads together, element by element: the time to
/// compile its kernel grows with their square.
static constexpr unsigned kMostTogether = 1024;

static unsigned readTogether(Operation *op) {
  if (isa<stablehlo::SortOp>(op))
    return op->getNumOperands();
  if (isa<stablehlo::ReduceOp, stablehlo::ReduceWindowOp, stablehlo::ScatterOp>(
          op))
    return op->getNumResults();
  return 0;
}

LogicalResult verifySupported(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    if (auto call = dyn_cast<stablehlo::CustomCallOp>(op)) {
      StringRef target = call.getCallTargetName();
      // whale-lift-callbacks has looked at those of Python.
      if (getLapackRoutine(target) || isPythonCallback(target))
        return WalkResult::advance();
      op->emitError("custom_call @") << target << " is not supported";
      return WalkResult::interrupt();
    }
    if (isa<stablehlo::AllGatherOp, stablehlo::AllReduceOp,
            stablehlo::AllToAllOp, stablehlo::CollectiveBroadcastOp,
            stablehlo::CollectivePermuteOp, stablehlo::PartitionIdOp,
            stablehlo::ReduceScatterOp, stablehlo::ReplicaIdOp>(op)) {
      op->emitOpError("is not supported: Whale partitions the program itself");
      return WalkResult::interrupt();
    }
    if (isa<stablehlo::RngOp>(op)) {
      op->emitOpError("is not supported: it draws from a hardware generator; "
                      "jax.random draws from keys");
      return WalkResult::interrupt();
    }
    if (unsigned count = readTogether(op); count > kMostTogether) {
      op->emitOpError("has ")
          << count << " tensors side by side; at most " << kMostTogether
          << " are supported: use several operations";
      return WalkResult::interrupt();
    }
    StringRef name = op->getName().stripDialect();
    if (isa<stablehlo::StablehloDialect>(op->getDialect()) &&
        (name == "infeed" || name == "outfeed" || name == "send" ||
         name == "recv")) {
      op->emitOpError("is not supported: a step can't talk to its host");
      return WalkResult::interrupt();
    }
    for (Type type : op->getResultTypes())
      if (auto shaped = dyn_cast<ShapedType>(type);
          shaped && !shaped.hasStaticShape()) {
        op->emitOpError("has a result of dynamic shape ")
            << type << "; only static shapes are supported";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult verifyCallsAreUsed(ModuleOp module) {
  WalkResult result = module.walk([](stablehlo::CustomCallOp call) {
    StringRef target = call.getCallTargetName();
    if (!isPythonCallback(target) || !call.getHasSideEffect() ||
        !call->use_empty())
      return WalkResult::advance();
    call->emitError(
        "a call of a Python function (jax.debug.print, jax.pure_callback, ...) "
        "is not supported where nothing depends on its result in the end, as "
        "in a product with zero or a choice by a constant; have the function "
        "return nothing, and it is called when the step has ended");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

} // namespace whale::normalize
