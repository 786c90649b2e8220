//===- VerifyTaskGraphs.cpp - The invariant of level 2 -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Passes.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_VERIFYTASKGRAPHS
#include "whale/Transforms/TaskGraphs/Passes.h.inc"

namespace {

struct VerifyTaskGraphsPass : impl::VerifyTaskGraphsBase<VerifyTaskGraphsPass> {
  using VerifyTaskGraphsBase::VerifyTaskGraphsBase;

  void runOnOperation() final {
    markAllAnalysesPreserved();
    FailureOr<func::FuncOp> main = getMainFunction(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (failed(verifyBlock(main->front())))
      return signalPassFailure();
  }

private:
  LogicalResult verifyBlock(Block &block) {
    for (Operation &op : block.without_terminator()) {
      if (auto loop = dyn_cast<MicroBatchesOp>(op)) {
        for (Region &body : loop.getBodies())
          if (failed(verifyBlock(body.front())))
            return failure();
        continue;
      }
      // Where a micro-batch starts is a number that no TaskGraph computes.
      if (op.hasTrait<OpTrait::ConstantLike>() &&
          llvm::all_of(op.getUsers(), llvm::IsaPred<MicroBatchesOp>))
        continue;
      auto graph = dyn_cast<TaskGraphOp>(op);
      if (!graph)
        return op.emitOpError("is in no task graph");
      TaskGraphOp first =
          firstOf.try_emplace(graph.getName(), graph).first->second;
      if (failed(verifySame(first, graph)))
        return failure();
    }
    return success();
  }

  /// Task graphs of one name are pieces of one TaskGraph.
  static LogicalResult verifySame(TaskGraphOp first, TaskGraphOp graph) {
    StringRef what;
    if (first.getStrategyAttr() != graph.getStrategyAttr())
      what = "strategy";
    else if (first.getVirtualDeviceAttr() != graph.getVirtualDeviceAttr())
      what = "virtual device";
    else
      return success();
    InFlightDiagnostic diagnostic = graph.emitOpError("has another ");
    diagnostic << what << " than an earlier one named \"" << graph.getName()
               << "\"";
    diagnostic.attachNote(first.getLoc()) << "the earlier one";
    return diagnostic;
  }

  llvm::StringMap<TaskGraphOp> firstOf;
};

} // namespace
} // namespace whale
