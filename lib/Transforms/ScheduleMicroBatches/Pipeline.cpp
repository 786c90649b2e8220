//===- Pipeline.cpp - The stages that micro-batches run through -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pipeline.h"

#include "../DeviceRequests.h"
#include "StageCosts.h"
#include "whale/Transforms/Attributes.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;

namespace whale {

Pipeline::Pipeline(MicroBatchesOp loop, const Cluster &cluster)
    : loop(loop), cluster(cluster) {
  joinDevices();
  llvm::DenseMap<int64_t, int64_t> chunks;
  std::optional<int64_t> current;
  for (TaskGraphOp graph : graphs()) {
    if (graph.getPhase() != Phase::Forward || devicesOf(graph).empty())
      continue;
    int64_t stage = stageOf(graph);
    if (!current || *current != stage) {
      virtualStages.push_back({stage, chunks[stage]++});
      current = stage;
    }
    auto [it, isNew] =
        placeOf.try_emplace(graph.getName(), virtualStages.back());
    if (!isNew && it->second.chunk != virtualStages.back().chunk && !revisited)
      revisited = graph;
  }
  for (const Place &place : virtualStages)
    numStages = std::max(numStages, place.stage + 1);
}

SmallVector<TaskGraphOp> Pipeline::graphs() {
  return llvm::to_vector(loop.getBody(0).getOps<TaskGraphOp>());
}

bool Pipeline::goesBack() {
  return llvm::any_of(graphs(), [](TaskGraphOp graph) {
    return graph.getPhase() == Phase::Backward;
  });
}

bool Pipeline::isRegular() const {
  for (auto [index, place] : llvm::enumerate(virtualStages))
    if (place.stage != int64_t(index) % numStages)
      return false;
  return virtualStages.size() % numStages == 0;
}

std::optional<Pipeline::Place> Pipeline::getPlace(StringRef graph) const {
  auto it = placeOf.find(graph);
  if (it == placeOf.end())
    return std::nullopt;
  return it->second;
}

SmallVector<SmallVector<int64_t>> Pipeline::getDevices() const {
  SmallVector<SmallVector<int64_t>> devices(numStages);
  for (auto [device, stage] : stageOfDevice)
    if (stage < numStages)
      devices[stage].push_back(device);
  for (SmallVector<int64_t> &list : devices)
    llvm::sort(list);
  return devices;
}

SmallVector<int64_t> Pipeline::devicesOf(TaskGraphOp graph) {
  if (!graph.getVirtualDeviceAttr())
    return {};
  auto device = SymbolTable::lookupNearestSymbolFrom<VirtualDeviceOp>(
      graph, graph.getVirtualDeviceAttr());
  return device ? device.getDevices() : SmallVector<int64_t>();
}

/// Virtual devices that share a device are one stage; stages are numbered in
/// the order of the forward pass.
void Pipeline::joinDevices() {
  llvm::EquivalenceClasses<int64_t> classes;
  for (TaskGraphOp graph : graphs()) {
    SmallVector<int64_t> devices = devicesOf(graph);
    for (int64_t device : devices)
      classes.unionSets(devices.front(), device);
  }
  llvm::DenseMap<int64_t, int64_t> numbers;
  for (TaskGraphOp graph : graphs())
    for (int64_t device : devicesOf(graph)) {
      int64_t leader = classes.getLeaderValue(device);
      auto it = numbers.try_emplace(leader, numbers.size()).first;
      stageOfDevice[device] = it->second;
    }
}

int64_t Pipeline::stageOf(TaskGraphOp graph) {
  return stageOfDevice.lookup(devicesOf(graph).front());
}

ScheduleProblem Pipeline::emptyProblem() {
  ScheduleProblem problem;
  problem.stages = numStages;
  problem.chunks = virtualStages.size() / numStages;
  problem.microBatches = loop.getNumMoments();
  problem.costs.resize(virtualStages.size());
  return problem;
}

int64_t Pipeline::getInFlight(StringRef graph) {
  std::optional<Place> place = getPlace(graph);
  if (!place || revisited || numStages < 2 || !goesBack() || !isRegular())
    return 1;
  if (inFlight.empty()) {
    ScheduleProblem problem = emptyProblem();
    for (StageCost &cost : problem.costs)
      cost.forward = cost.backward = cost.weight = 1;
    auto name = dyn_cast_or_null<StringAttr>(
        getConfig(loop->getParentOfType<ModuleOp>(), "pipeline.strategy"));
    std::optional<ScheduleKind> kind =
        name ? parseScheduleKind(name) : std::nullopt;
    llvm::Expected<ScheduleChoice> choice = chooseSchedule(
        problem, kind.value_or(ScheduleKind::OneForwardOneBackward));
    if (choice) {
      inFlight = choice->timeline.peakMicroBatches;
    } else { // whale-schedule-micro-batches says what is wrong.
      llvm::consumeError(choice.takeError());
      inFlight.assign(numStages, problem.microBatches);
    }
  }
  int64_t chunks = virtualStages.size() / numStages;
  return (inFlight[place->stage] + chunks - 1) / chunks;
}

ScheduleProblem Pipeline::getProblem() {
  ScheduleProblem problem = emptyProblem();
  StageCosts costs(loop, cluster);
  SmallVector<SmallVector<int64_t>> devices = getDevices();
  auto costOf = [&](const Place &place) -> StageCost & {
    return problem.costs[place.chunk * numStages + place.stage];
  };
  for (TaskGraphOp graph : graphs()) {
    std::optional<Place> place = getPlace(graph.getName());
    if (!place)
      continue;
    double seconds = costs.secondsOf(graph, devices[place->stage]);
    StageCost &cost = costOf(*place);
    if (graph.getPhase() == Phase::Forward)
      cost.forward += seconds;
    else if (graph->hasAttr(kWeightGradientAttr))
      cost.weight += seconds;
    else
      cost.backward += seconds;
  }
  for (const Place &place : virtualStages) {
    StageCost &cost = costOf(place);
    auto isHere = [&](TaskGraphOp graph) {
      std::optional<Place> other = getPlace(graph.getName());
      return other && other->stage == place.stage &&
             other->chunk == place.chunk;
    };
    cost.send = costs.sendSeconds(isHere);
    // The device that has the least room for it.
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int64_t device : devices[place.stage]) {
      int64_t fixed = place.chunk == 0 ? costs.fixedBytes(device) : 0;
      int64_t kept = costs.keptBytes(device, isHere);
      int64_t memory = cluster.kindOf(device).memoryBytes;
      int64_t room = memory - fixed - kept;
      if (room >= least)
        continue;
      least = room;
      cost.fixedBytes = fixed;
      cost.activationBytes = kept;
      cost.memoryBytes = memory;
    }
  }
  return problem;
}

} // namespace whale
