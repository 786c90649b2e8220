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
#include "ScheduleMicroBatches/SplitWeightGradients.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Planner/Schedule.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/Passes.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_SCHEDULEMICROBATCHES
#include "whale/Transforms/Passes.h.inc"

namespace {

/// Where a task graph stands in the pipeline.
struct Place {
  int64_t stage, chunk;
};

/// The pipeline that the task graphs of one `whale.micro_batches` make.
class Pipeline {
public:
  Pipeline(MicroBatchesOp loop, const Cluster &cluster)
      : loop(loop), cluster(cluster) {}

  /// Finds the stages. Fails with an error at a TaskGraph that the samples
  /// come back to from another stage.
  LogicalResult find() {
    joinDevices();
    llvm::DenseMap<int64_t, int64_t> chunks;
    std::optional<int64_t> current;
    for (TaskGraphOp graph : graphsOf(0)) {
      if (graph.getPhase() != Phase::Forward || !graph.getVirtualDevice())
        continue;
      int64_t stage = stageOf(graph);
      if (!current || *current != stage) {
        virtualStages.push_back({stage, chunks[stage]++});
        current = stage;
      }
      auto [it, isNew] =
          placeOf.try_emplace(graph.getName(), virtualStages.back());
      if (!isNew && it->second.chunk != virtualStages.back().chunk) {
        InFlightDiagnostic diagnostic =
            emitError(graph.getLoc())
            << "pipeline: the samples come back to TaskGraph '"
            << graph.getName() << "' after another stage has computed with "
            << "what it made; give these operations a TaskGraph of their own";
        return diagnostic;
      }
    }
    for (const Place &place : virtualStages)
      numStages = std::max(numStages, place.stage + 1);
    return success();
  }

  int64_t getNumStages() const { return numStages; }
  bool goesBack() {
    return llvm::any_of(graphsOf(0), [](TaskGraphOp graph) {
      return graph.getPhase() == Phase::Backward;
    });
  }
  /// Whether every stage is as often in line, in the same order.
  bool isRegular() const {
    for (auto [index, place] : llvm::enumerate(virtualStages))
      if (place.stage != int64_t(index) % numStages)
        return false;
    return virtualStages.size() % numStages == 0;
  }

  std::optional<Place> getPlace(TaskGraphOp graph) const {
    auto it = placeOf.find(graph.getName());
    if (it == placeOf.end())
      return std::nullopt;
    return it->second;
  }

  /// By FLOPs and the speeds of the devices. What the forward of a stage leaves
  /// to other task graphs is kept until its backward.
  ScheduleProblem getProblem() {
    ScheduleProblem problem;
    problem.stages = numStages;
    problem.chunks = virtualStages.size() / numStages;
    problem.microBatches = loop.getNumMoments();
    problem.costs.resize(virtualStages.size());
    for (TaskGraphOp graph : graphsOf(0)) {
      std::optional<Place> place = getPlace(graph);
      if (!place)
        continue;
      StageCost &cost = problem.costs[place->chunk * numStages + place->stage];
      double seconds = double(graph.getFlops().value_or(0)) /
                       double(loop.getNumMoments()) /
                       flopsPerSecond(place->stage);
      cost.memoryBytes = memoryBytes(place->stage);
      if (graph.getPhase() == Phase::Forward) {
        cost.forward += seconds;
        for (Value result : graph.getResults())
          cost.activationBytes +=
              double(tensorBytes(result.getType())) / numDevices(place->stage);
      } else if (graph->hasAttr(kWeightGradientAttr)) {
        cost.weight += seconds;
      } else {
        cost.backward += seconds;
      }
    }
    return problem;
  }

  /// The devices of each stage.
  SmallVector<SmallVector<int64_t>> getDevices() const {
    SmallVector<SmallVector<int64_t>> devices(numStages);
    for (auto [device, stage] : stageOfDevice)
      if (stage < numStages)
        devices[stage].push_back(device);
    for (SmallVector<int64_t> &list : devices)
      llvm::sort(list);
    return devices;
  }

  SmallVector<TaskGraphOp> graphsOf(int64_t moment) {
    return llvm::to_vector(loop.getBody(moment).getOps<TaskGraphOp>());
  }

private:
  SmallVector<int64_t> devicesOf(TaskGraphOp graph) {
    if (!graph.getVirtualDeviceAttr())
      return {};
    auto device = SymbolTable::lookupNearestSymbolFrom<VirtualDeviceOp>(
        graph, graph.getVirtualDeviceAttr());
    return device ? device.getDevices() : SmallVector<int64_t>();
  }

  /// Virtual devices that share a device are one stage; stages are numbered in
  /// the order of the forward pass.
  void joinDevices() {
    llvm::EquivalenceClasses<int64_t> classes;
    for (TaskGraphOp graph : graphsOf(0)) {
      SmallVector<int64_t> devices = devicesOf(graph);
      for (int64_t device : devices)
        classes.unionSets(devices.front(), device);
    }
    llvm::DenseMap<int64_t, int64_t> numbers;
    for (TaskGraphOp graph : graphsOf(0))
      for (int64_t device : devicesOf(graph)) {
        int64_t leader = classes.getLeaderValue(device);
        auto it = numbers.try_emplace(leader, numbers.size()).first;
        stageOfDevice[device] = it->second;
      }
  }

  int64_t stageOf(TaskGraphOp graph) {
    return stageOfDevice.lookup(devicesOf(graph).front());
  }
  double numDevices(int64_t stage) const {
    return double(llvm::count_if(
        stageOfDevice, [&](auto &entry) { return entry.second == stage; }));
  }
  double flopsPerSecond(int64_t stage) const {
    double sum = 0;
    for (auto [device, of] : stageOfDevice)
      if (of == stage)
        sum += cluster.kindOf(device).peakFlops("f32") /
               cluster.devices[device].slowdown;
    return sum;
  }
  int64_t memoryBytes(int64_t stage) const {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (auto [device, of] : stageOfDevice)
      if (of == stage)
        least = std::min(least, cluster.kindOf(device).memoryBytes);
    return least;
  }

  MicroBatchesOp loop;
  const Cluster &cluster;
  llvm::DenseMap<int64_t, int64_t> stageOfDevice;
  SmallVector<Place> virtualStages;
  llvm::StringMap<Place> placeOf;
  int64_t numStages = 0;
};

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
    if (failed(wanted) || failed(pipeline.find()))
      return failure();
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
          if (std::optional<Place> place = pipeline.getPlace(graph))
            graph->setAttr(kChunkAttr, builder.getI64IntegerAttr(place->chunk));
    return success();
  }
};

} // namespace
} // namespace whale
