//===- Pipeline.cpp - The stages that micro-batches run through -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pipeline.h"

#include "StageCosts.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/OpCost.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;

namespace whale {

VirtualDeviceOp devicesOf(TaskGraphOp graph) {
  if (!graph.getVirtualDeviceAttr())
    return {};
  return SymbolTable::lookupNearestSymbolFrom<VirtualDeviceOp>(
      graph, graph.getVirtualDeviceAttr());
}

Value lookThroughReshards(Value value) {
  while (auto moved = value.getDefiningOp<ReshardOp>())
    value = moved.getInput();
  return value;
}

SmallVector<TaskGraphOp> findProducers(TaskGraphOp graph) {
  llvm::SetVector<TaskGraphOp> producers;
  graph.walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      auto producer = lookThroughReshards(operand).getDefiningOp<TaskGraphOp>();
      if (producer && producer->getBlock() == graph->getBlock())
        producers.insert(producer);
    }
  });
  return producers.takeVector();
}

Pipeline::Pipeline(MicroBatchesOp loop, const Cluster &cluster)
    : loop(loop), cluster(cluster) {
  joinDevices();
  for (Region &body : loop.getBodies())
    for (auto graph : body.getOps<TaskGraphOp>())
      if (graph.getPhase() == Phase::Forward)
        addForward(graph);
  for (Region &body : loop.getBodies())
    for (auto graph : body.getOps<TaskGraphOp>())
      if (graph.getPhase() != Phase::Forward && stageOf(graph)) {
        hasBackward = true;
        placeOf[graph] = placeBackward(graph);
      }
  // Stages are numbered in the order of the line.
  llvm::DenseMap<int64_t, int64_t> numbers;
  for (Place &place : line)
    place.stage =
        numbers.try_emplace(place.stage, numbers.size()).first->second;
  numStages = numbers.size();
  for (auto [op, place] : placeOf)
    for (int64_t device : devicesOf(cast<TaskGraphOp>(op)).getDevices())
      if (!llvm::is_contained(line[place].devices, device))
        line[place].devices.push_back(device);
  numberChunks();
}

/// Forwards stand at the first place of their stage that isn't before what they
/// use.
void Pipeline::addForward(TaskGraphOp graph) {
  std::optional<int64_t> stage = stageOf(graph);
  if (!stage)
    return;
  int64_t place = 0;
  for (TaskGraphOp producer : findProducers(graph))
    place = std::max(place, getPlace(producer));
  while (place < int64_t(line.size()) && line[place].stage != *stage)
    ++place;
  if (place == int64_t(line.size()))
    line.push_back({*stage});
  placeOf[graph] = place;
  SmallVector<int64_t> &places = placesOfName[graph.getName()];
  if (!llvm::is_contained(places, place))
    places.push_back(place);
}

/// Backwards go along the line from its end: one stands with the forward of its
/// name, the last one that isn't behind what it uses of other backwards.
int64_t Pipeline::placeBackward(TaskGraphOp graph) {
  SmallVector<int64_t> places = placesOfName.lookup(graph.getName());
  int64_t last = line.size() - 1;
  for (TaskGraphOp producer : findProducers(graph))
    if (producer.getPhase() != Phase::Forward && placeOf.contains(producer))
      last = std::min(last, getPlace(producer));
  if (places.empty())
    for (auto [index, place] : llvm::enumerate(line))
      if (place.stage == *stageOf(graph))
        places.push_back(index);
  // Where the forwards stand in a loop of their own, the line grows from its
  // end.
  if (places.empty()) {
    for (auto &entry : placeOf)
      ++entry.second;
    for (auto &entry : placesOfName)
      for (int64_t &place : entry.second)
        ++place;
    line.insert(line.begin(), {*stageOf(graph)});
    return 0;
  }
  int64_t best = *llvm::max_element(places);
  for (int64_t place : places)
    if (place <= last && (best > last || place > best))
      best = place;
  return best;
}

void Pipeline::numberChunks() {
  for (size_t i = 0; i < line.size(); ++i) {
    llvm::sort(line[i].devices);
    for (size_t j = 0; j < i; ++j)
      if (llvm::any_of(line[i].devices, [&](int64_t device) {
            return llvm::is_contained(line[j].devices, device);
          }))
        line[i].chunk = std::max(line[i].chunk, line[j].chunk + 1);
  }
}

SmallVector<TaskGraphOp> Pipeline::graphs() {
  return llvm::to_vector(loop.getBody(0).getOps<TaskGraphOp>());
}

int64_t Pipeline::getPlace(TaskGraphOp graph) const {
  auto it = placeOf.find(graph);
  return it == placeOf.end() ? -1 : it->second;
}

void Pipeline::joinDevices() {
  llvm::EquivalenceClasses<int64_t> classes;
  SmallVector<ArrayRef<int64_t>> lists;
  for (TaskGraphOp graph : graphs())
    if (VirtualDeviceOp devices = devicesOf(graph))
      lists.push_back(devices.getGroup(0));
  for (ArrayRef<int64_t> list : lists)
    for (int64_t device : list)
      classes.unionSets(list.front(), device);
  llvm::DenseMap<int64_t, int64_t> numbers;
  for (ArrayRef<int64_t> list : lists)
    for (int64_t device : list) {
      int64_t leader = classes.getLeaderValue(device);
      auto it = numbers.try_emplace(leader, numbers.size()).first;
      stageOfDevice[device] = it->second;
    }
}

std::optional<int64_t> Pipeline::stageOf(TaskGraphOp graph) {
  VirtualDeviceOp devices = devicesOf(graph);
  if (!devices)
    return std::nullopt;
  return stageOfDevice.lookup(devices.getGroup(0).front());
}

ScheduleProblem Pipeline::emptyProblem() {
  ScheduleProblem problem;
  problem.stages = numStages;
  problem.microBatches = loop.getNumMoments();
  problem.costs.resize(line.size());
  bool isRegular = line.size() % numStages == 0;
  for (auto [index, place] : llvm::enumerate(line)) {
    problem.line.push_back(place.stage);
    isRegular &= place.stage == int64_t(index) % numStages;
  }
  if (isRegular) {
    problem.chunks = line.size() / numStages;
    problem.line.clear();
  }
  return problem;
}

int64_t Pipeline::getInFlight(StringRef graph) {
  SmallVector<int64_t> places = placesOfName.lookup(graph);
  if (places.empty() || numStages < 2 || !goesBack())
    return 1;
  ScheduleProblem problem = emptyProblem();
  if (inFlight.empty()) {
    for (StageCost &cost : problem.costs)
      cost.forward = cost.backward = cost.weight = 1;
    Config config(loop->getParentOfType<ModuleOp>());
    llvm::Expected<ScheduleChoice> choice = chooseSchedule(
        problem,
        config.getSchedule().value_or(ScheduleKind::OneForwardOneBackward));
    if (choice) {
      inFlight = choice->timeline.peakMicroBatches;
    } else { // whale-schedule-micro-batches says what is wrong.
      llvm::consumeError(choice.takeError());
      inFlight.assign(numStages, problem.microBatches);
    }
  }
  int64_t most = 1;
  for (int64_t place : places) {
    int64_t stage = line[place].stage;
    most = std::max<int64_t>(
        most,
        llvm::divideCeil(inFlight[stage], problem.taskGraphsOf(stage).size()));
  }
  return most;
}

ScheduleProblem Pipeline::getProblem() {
  ScheduleProblem problem = emptyProblem();
  StageCosts costs(loop, cluster);
  for (TaskGraphOp graph : graphs()) {
    int64_t place = getPlace(graph);
    if (place < 0)
      continue;
    double seconds = costs.secondsOf(graph, line[place].devices);
    StageCost &cost = problem.costs[place];
    if (graph.getPhase() == Phase::Forward)
      cost.forward += seconds;
    else if (graph->hasAttr(kWeightGradientAttr))
      cost.weight += seconds;
    else
      cost.backward += seconds;
  }
  llvm::BitVector isCounted(numStages);
  std::map<int64_t, DeviceBytes> bytesOf = readBytes();
  for (auto [index, place] : llvm::enumerate(line)) {
    StageCost &cost = problem.costs[index];
    cost.send =
        costs.sendSeconds([&, index = int64_t(index)](TaskGraphOp graph) {
          return getPlace(graph) == index;
        });
    // The device that has the least room for it.
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int64_t device : place.devices) {
      auto it = bytesOf.find(device);
      if (it == bytesOf.end())
        continue;
      // All places of a stage share what is always there.
      int64_t fixed = isCounted[place.stage] ? 0 : it->second.fixed;
      // All of them together can be counted.
      int64_t kept = toBytes(it->second.kept[index] * problem.microBatches) /
                     problem.microBatches;
      int64_t memory = cluster.kindOf(device).memoryBytes;
      int64_t room = memory - fixed - kept;
      if (room >= least)
        continue;
      least = room;
      cost.fixedBytes = fixed;
      cost.activationBytes = kept;
      cost.memoryBytes = memory;
    }
    isCounted.set(place.stage);
  }
  return problem;
}

std::map<int64_t, Pipeline::DeviceBytes> Pipeline::readBytes() {
  std::map<int64_t, DeviceBytes> result;
  auto list = loop->getAttrOfType<ArrayAttr>(kLoopBytesAttr);
  if (!list)
    return result;
  for (auto entry : list.getAsRange<DictionaryAttr>()) {
    DeviceBytes bytes;
    bytes.fixed = entry.getAs<IntegerAttr>("fixed").getInt();
    bytes.outside = entry.getAs<IntegerAttr>("outside").getInt();
    bytes.kept.assign(line.size(), 0);
    for (NamedAttribute kept : entry.getAs<DictionaryAttr>("kept")) {
      SmallVector<int64_t> places = placesOfName.lookup(kept.getName());
      for (int64_t place : places)
        bytes.kept[place] +=
            double(cast<IntegerAttr>(kept.getValue()).getInt()) /
            double(places.size());
    }
    for (int64_t device :
         entry.getAs<DenseI64ArrayAttr>("devices").asArrayRef())
      result[device] = bytes;
  }
  return result;
}

void Pipeline::correctBytes(const Schedule &schedule,
                            MutableArrayRef<int64_t> bytes) {
  ScheduleProblem problem = emptyProblem();
  for (auto &[device, expected] : readBytes()) {
    if (device < 0 || device >= int64_t(bytes.size()))
      continue;
    double most = 0;
    for (const auto &[stage, steps] : llvm::enumerate(schedule)) {
      std::vector<int64_t> places = problem.taskGraphsOf(stage);
      if (llvm::all_of(places, [&, &expected = expected](int64_t place) {
            return expected.kept[place] == 0;
          }))
        continue;
      std::vector<bool> splits(places.size(), false);
      for (const ScheduleStep &step : steps)
        if (step.kind == ScheduleStep::WeightGradient)
          splits[step.chunk] = true;
      double kept = 0;
      for (const ScheduleStep &step : steps) {
        double each = expected.kept[places[step.chunk]];
        if (step.kind == ScheduleStep::Forward)
          most = std::max(most, kept += each);
        else if (splits[step.chunk] ==
                 (step.kind == ScheduleStep::WeightGradient))
          kept -= each;
      }
    }
    bytes[device] =
        std::max<int64_t>(expected.outside, expected.fixed + toBytes(most));
  }
}

} // namespace whale
