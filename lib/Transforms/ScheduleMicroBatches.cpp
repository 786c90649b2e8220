//===- ScheduleMicroBatches.cpp - The order of a pipeline's work ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// TaskGraphs on the same devices are one stage. Where micro-batches run through
// several stages there and back, the order of each stage's work is chosen and
// written down; whale-partition unrolls the micro-batches in it.
//
//===----------------------------------------------------------------------===//

#include "DeviceRequests.h"
#include "ScheduleMicroBatches/Pipeline.h"
#include "ScheduleMicroBatches/SplitWeightGradients.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Planner/Schedule.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_SCHEDULEMICROBATCHES
#include "whale/Transforms/Passes.h.inc"

namespace {

std::string print(const std::vector<ScheduleStep> &steps, bool hasChunks) {
  std::string text;
  for (const ScheduleStep &step : steps) {
    text += text.empty() ? "" : " ";
    text += "FBW"[step.kind];
    if (hasChunks)
      text += std::to_string(step.chunk) + ".";
    text += std::to_string(step.microBatch);
  }
  return text;
}

struct ScheduleMicroBatchesPass
    : impl::ScheduleMicroBatchesBase<ScheduleMicroBatchesPass> {
  using ScheduleMicroBatchesBase::ScheduleMicroBatchesBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> main = getMainFunction(module);
    if (failed(main))
      return signalPassFailure();
    FailureOr<Cluster> cluster = getCluster(module);
    if (failed(cluster))
      return signalPassFailure();
    for (auto loop : main->getOps<MicroBatchesOp>())
      if (failed(schedule(loop, *cluster)))
        return signalPassFailure();
  }

  /// What the configuration asks for, if it does.
  FailureOr<std::optional<ScheduleKind>> wantedKind(MicroBatchesOp loop) {
    auto name = dyn_cast_or_null<StringAttr>(
        getConfig(getOperation(), "pipeline.strategy"));
    if (!name)
      return std::optional<ScheduleKind>();
    std::optional<ScheduleKind> kind = parseScheduleKind(name);
    if (!kind)
      return loop.emitError("pipeline.strategy: '")
             << name.getValue() << "' is none of "
             << llvm::join(scheduleKindNames(), ", ");
    return kind;
  }

  LogicalResult schedule(MicroBatchesOp loop, const Cluster &cluster) {
    FailureOr<std::optional<ScheduleKind>> wanted = wantedKind(loop);
    Pipeline pipeline(loop, cluster);
    if (failed(wanted))
      return failure();
    if (TaskGraphOp graph = pipeline.getRevisited())
      return emitError(graph.getLoc())
             << "pipeline: the samples come back to TaskGraph '"
             << graph.getName() << "' after another stage has computed with "
             << "what it made; give these operations a TaskGraph of their own";
    // One stage, or one direction: every stage takes the moments as they come.
    if (pipeline.getNumStages() < 2 || !pipeline.goesBack())
      return success();
    if (!pipeline.isRegular()) {
      if (!*wanted) {
        emitRemark(loop.getLoc())
            << "pipeline: the stages stand unequally often in line; each takes "
               "the micro-batches one after the other";
        return success();
      }
      return loop.emitError("pipeline.strategy: the stages stand unequally "
                            "often in line, so no schedule can be chosen");
    }
    if (*wanted == ScheduleKind::ZeroBubble)
      for (Region &body : loop.getBodies())
        splitWeightGradients(body.front());

    ScheduleProblem problem = pipeline.getProblem();
    // Without that split the gradients of weights aren't apart.
    SmallVector<ScheduleKind> among{ScheduleKind::GPipe,
                                    ScheduleKind::OneForwardOneBackward,
                                    ScheduleKind::BackwardOptimizer};
    if (problem.chunks > 1)
      among.push_back(ScheduleKind::Interleaved);
    if (*wanted)
      among = {**wanted};
    llvm::Expected<ScheduleChoice> choice = chooseSchedule(problem, among);
    if (!choice)
      return emitError(loop.getLoc())
             << "pipeline: " << llvm::toString(choice.takeError());
    emitRemark(loop.getLoc()) << "pipeline: " << choice->reason;

    Builder builder(loop.getContext());
    SmallVector<Attribute> stages;
    for (auto [devices, steps] :
         llvm::zip(pipeline.getDevices(), choice->schedule))
      stages.push_back(builder.getDictionaryAttr(
          {builder.getNamedAttr("devices",
                                builder.getDenseI64ArrayAttr(devices)),
           builder.getNamedAttr("steps", builder.getStringAttr(print(
                                             steps, problem.chunks > 1)))}));
    loop->setAttr(kScheduleAttr, builder.getArrayAttr(stages));
    if (problem.chunks > 1)
      for (Region &body : loop.getBodies())
        for (auto graph : body.getOps<TaskGraphOp>())
          if (std::optional<Pipeline::Place> place =
                  pipeline.getPlace(graph.getName()))
            graph->setAttr(kChunkAttr, builder.getI64IntegerAttr(place->chunk));
    return success();
  }
};

} // namespace
} // namespace whale
