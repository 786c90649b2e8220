//===- ScheduleMicroBatches.cpp - The order of a pipeline's work ----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: loops over micro-batches, whose task graphs have devices. Out: for each
// set of devices the order of its forwards, backwards and gradients of weights.
//
// TaskGraphs on the same devices are one stage. Where micro-batches run through
// several stages there and back, the order of each stage's work is chosen and
// stored in the loop; whale-partition calls the segments in it. Where
// samples come back to a TaskGraph, an error or remark names the operations on
// their way. Cost: a simulation of each kind of schedule (chooseSchedule), on a
// copy of the loop; the order's steps times the sets of devices; and for each
// forward task graph a walk back through those that it depends on, with all
// their operations.
//
//===----------------------------------------------------------------------===//

#include "ScheduleMicroBatches/SplitWeightGradients.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Planner/Schedule.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/DeviceRequests.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/Passes.h"
#include "whale/Transforms/Placed/Pipeline.h"
#include "whale/Transforms/Plans.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <utility>

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_SCHEDULEMICROBATCHES
#include "whale/Transforms/Partition/Passes.h.inc"

namespace {

/// The operation of `graph` that uses what `producer` makes.
Operation *findUser(TaskGraphOp graph, TaskGraphOp producer) {
  Operation *user = nullptr;
  graph.walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      if (lookThroughReshards(operand).getDefiningOp() == producer) {
        user = op;
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return user;
}

/// The way from a forward of a TaskGraph over other stages to a later one of
/// the same TaskGraph, which is last; empty if there is none.
SmallVector<TaskGraphOp> findCycle(const Pipeline &pipeline,
                                   MicroBatchesOp loop) {
  for (auto end : loop.getBody(0).getOps<TaskGraphOp>()) {
    if (end.getPhase() != Phase::Forward)
      continue;
    llvm::DenseMap<Operation *, TaskGraphOp> next;
    SmallVector<TaskGraphOp> waiting = {end};
    for (size_t i = 0; i < waiting.size(); ++i)
      for (TaskGraphOp producer : findProducers(waiting[i])) {
        bool isSame = producer.getName() == end.getName();
        if ((isSame && waiting[i].getName() == end.getName()) ||
            !next.try_emplace(producer, waiting[i]).second)
          continue;
        waiting.push_back(producer);
        if (!isSame || pipeline.getSlot(producer) == pipeline.getSlot(end))
          continue;
        SmallVector<TaskGraphOp> cycle = {producer};
        while (cycle.back() != end)
          cycle.push_back(next.lookup(cycle.back()));
        return cycle;
      }
  }
  return {};
}

/// Whether somebody has drawn its bounds, where the default strategy takes what
/// is left.
bool isScope(TaskGraphOp graph) {
  StrategyAttr strategy = graph.getStrategyAttr();
  return strategy && (strategy.getScope() || !strategy.getName().empty());
}

void noteCycle(Diagnostic &diagnostic, ArrayRef<TaskGraphOp> cycle) {
  for (size_t i = 0; i + 1 < cycle.size(); ++i) {
    TaskGraphOp from = cycle[i], to = cycle[i + 1];
    if (Operation *user = findUser(to, from))
      diagnostic.attachNote(user->getLoc())
          << "'" << user->getName() << "' in TaskGraph '" << to.getName()
          << "' uses what '" << from.getName() << "' makes";
  }
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
    auto loops = llvm::to_vector(main->getOps<MicroBatchesOp>());
    std::optional<ScheduleKind> wanted = Config(module).getSchedule();
    if (wanted && !loops.empty() &&
        llvm::all_of(loops, [&](MicroBatchesOp loop) {
          return Pipeline(loop, *cluster).getNumStages() < 2;
        })) {
      loops.front().emitError("pipeline.strategy: '")
          << stringifyScheduleKind(*wanted)
          << "' orders the stages of a pipeline, but all that is computed with "
             "micro-batches is on the same devices; give task graphs devices "
             "of their own, or leave pipeline.strategy out";
      return signalPassFailure();
    }
    number = 0;
    for (MicroBatchesOp loop : loops)
      if (failed(schedule(loop, *cluster, wanted)))
        return signalPassFailure();
    if (std::optional<Plan> given = getGivenPlan(module);
        given && given->pipelines.size() > number) {
      emitPlanError(module, given->pipelines[number].place)
          << "decisions.pipelines: the step has " << number
          << " whose order is decided";
      return signalPassFailure();
    }
  }

  /// The kinds but for those whose buffers have turned out too large; says
  /// which these are.
  std::string leaveOutMisfits(SmallVectorImpl<ScheduleKind> &among) {
    ArrayRef<std::string> names = getMemoryFit(getOperation()).misfitSchedules;
    if (names.empty())
      return "";
    for (StringRef name : scheduleKindNames())
      if (!llvm::is_contained(names, name))
        among.push_back(*parseScheduleKind(name));
    return "; the buffers of " + llvm::join(names, ", ") + " don't fit";
  }

  /// The order of a plan: the steps that its kind has, in any order in which
  /// micro-batches pass each TaskGraph in ascending order.
  static llvm::Expected<ScheduleChoice>
  takeSchedule(const ScheduleProblem &problem, const Plan::Pipeline &planned) {
    llvm::Expected<Schedule> usual = makeSchedule(planned.kind, problem);
    if (!usual)
      return usual.takeError();
    if (planned.steps.size() != usual->size())
      return llvm::createStringError("has " + Twine(planned.steps.size()) +
                                     " stages, and the step has " +
                                     Twine(usual->size()));
    for (auto [stage, lists] :
         llvm::enumerate(llvm::zip_equal(planned.steps, *usual))) {
      auto [steps, expected] = lists;
      std::map<std::pair<int, int64_t>, int64_t> last;
      for (const ScheduleStep &step : steps) {
        auto [it, isNew] = last.try_emplace({step.kind, step.chunk}, -1);
        if (std::exchange(it->second, step.microBatch) >= step.microBatch)
          return llvm::createStringError(
              "stage " + Twine(stage) +
              ": micro-batches must pass in ascending order, and " +
              Twine(step.microBatch) + " comes late");
      }
      auto sorted = steps;
      llvm::sort(sorted);
      llvm::sort(expected);
      if (sorted != expected)
        return llvm::createStringError(
            "stage " + Twine(stage) + ": the steps of '" +
            stringifyScheduleKind(planned.kind) +
            "' are others; each micro-batch has a step F and B on each task "
            "graph, and with zero-bubble W where weights have gradients");
    }
    llvm::Expected<Timeline> timeline = simulate(problem, planned.steps);
    if (!timeline)
      return timeline.takeError();
    return ScheduleChoice{planned.kind, planned.steps, std::move(*timeline),
                          "as the plan says",
                          /*isReplaceable=*/false};
  }

  LogicalResult schedule(MicroBatchesOp loop, const Cluster &cluster,
                         std::optional<ScheduleKind> wanted) {
    Pipeline pipeline(loop, cluster);
    // One stage, or one direction: every stage takes the moments as they come.
    if (pipeline.getNumStages() < 2)
      return success();
    if (!pipeline.goesBack()) {
      if (wanted)
        emitRemark(loop.getLoc())
            << "pipeline: schedule '" << stringifyScheduleKind(*wanted)
            << "' says when backwards come, and there are none: each stage "
               "takes the micro-batches in their order";
      return success();
    }

    SmallVector<TaskGraphOp> cycle = findCycle(pipeline, loop);
    if (!cycle.empty()) {
      TaskGraphOp end = cycle.back();
      InFlightDiagnostic diagnostic =
          isScope(end) ? emitError(end.getLoc()) : emitRemark(end.getLoc());
      diagnostic << "pipeline: the samples come back to TaskGraph '"
                 << end.getName()
                 << "' after another stage has computed with what it made";
      if (isScope(end))
        diagnostic << "; give these operations a TaskGraph of their own";
      else
        diagnostic << ", so that its stage joins the chain of stages again";
      noteCycle(*diagnostic.getUnderlyingDiagnostic(), cycle);
      if (isScope(end))
        return failure();
    }

    // Zero bubble, if it is chosen, needs the gradients of weights apart.
    auto apart = cast<MicroBatchesOp>(OpBuilder(loop).clone(*loop));
    for (Region &body : apart.getBodies())
      splitWeightGradients(body.front());
    Pipeline pipelineApart(apart, cluster);
    ScheduleProblem problem = pipelineApart.getProblem();
    SmallVector<ScheduleKind> among;
    std::string misfits;
    if (wanted)
      among = {*wanted};
    else
      misfits = leaveOutMisfits(among);
    std::optional<Plan> given = getGivenPlan(getOperation());
    const Plan::Pipeline *planned = given && number < given->pipelines.size()
                                        ? &given->pipelines[number]
                                        : nullptr;
    llvm::Expected<ScheduleChoice> choice =
        planned ? takeSchedule(problem, *planned)
                : chooseSchedule(problem, among);
    if (!choice && planned) {
      apart.erase();
      return emitPlanError(getOperation(), planned->place)
             << "decisions.pipelines: " << llvm::toString(choice.takeError());
    }
    ++number;
    if (!choice) {
      apart.erase();
      InFlightDiagnostic error = emitError(loop.getLoc());
      error << "pipeline: " << llvm::toString(choice.takeError());
      noteCycle(*error.getUnderlyingDiagnostic(), cycle);
      return error;
    }
    emitRemark(loop.getLoc()) << "pipeline: " << choice->reason << misfits;
    addToPlan(getOperation(), [&](Plan &plan) {
      plan.pipelines.push_back({choice->kind, choice->schedule});
    });
    MemoryFit &fit = getMemoryFit(getOperation());
    if (choice->isReplaceable)
      fit.replaceableSchedule = stringifyScheduleKind(choice->kind).str();
    bool isApart = choice->kind == ScheduleKind::ZeroBubble;
    if (!fit.shares.bytes.empty())
      (isApart ? pipelineApart : pipeline)
          .correctBytes(choice->schedule, fit.shares.bytes);
    loop->removeAttr(kLoopBytesAttr);
    apart->removeAttr(kLoopBytesAttr);
    if (choice->kind == ScheduleKind::ZeroBubble) {
      write(apart, pipelineApart, problem, *choice);
      loop.replaceAllUsesWith(apart);
      loop.erase();
    } else {
      apart.erase();
      write(loop, pipeline, problem, *choice);
    }
    return success();
  }

  /// How many pipelines have an order.
  size_t number = 0;

  /// Writes down the steps of all devices that have the same slots.
  void write(MicroBatchesOp loop, const Pipeline &pipeline,
             const ScheduleProblem &problem, const ScheduleChoice &choice) {
    ArrayRef<Pipeline::Slot> slots = pipeline.getSlots();
    llvm::MapVector<int64_t, SmallVector<int64_t>> slotsOf;
    bool hasChunks = false;
    for (auto [index, slot] : llvm::enumerate(slots)) {
      hasChunks |= slot.chunk > 0;
      for (int64_t device : slot.devices)
        slotsOf[device].push_back(index);
    }
    llvm::MapVector<Attribute, SmallVector<int64_t>> devicesAt;
    Builder builder(loop.getContext());
    for (auto &[device, indices] : slotsOf)
      devicesAt[builder.getDenseI64ArrayAttr(indices)].push_back(device);

    std::vector<std::vector<int64_t>> slotsOfStage;
    for (int64_t stage = 0; stage < problem.stages; ++stage)
      slotsOfStage.push_back(problem.taskGraphsOf(stage));
    SmallVector<Attribute> lists;
    for (auto &[attribute, devices] : devicesAt) {
      ArrayRef<int64_t> indices = cast<DenseI64ArrayAttr>(attribute);
      SmallVector<ScheduleStep> steps;
      for (const Timeline::Position &at : choice.timeline.order) {
        const ScheduleStep &step = choice.schedule[at.stage][at.step];
        int64_t slot = slotsOfStage[at.stage][step.chunk];
        if (llvm::is_contained(indices, slot))
          steps.push_back({step.kind, slots[slot].chunk, step.microBatch});
      }
      llvm::sort(devices);
      lists.push_back(OrderAttr::get(loop.getContext(), devices, steps));
    }
    loop.setOrderAttr(builder.getArrayAttr(lists));
    if (!hasChunks)
      return;
    for (Region &body : loop.getBodies())
      for (auto graph : body.getOps<TaskGraphOp>())
        if (int64_t slot = pipeline.getSlot(graph); slot >= 0)
          graph->setAttr(kChunkAttr,
                         builder.getI64IntegerAttr(slots[slot].chunk));
  }
};

} // namespace
} // namespace whale
