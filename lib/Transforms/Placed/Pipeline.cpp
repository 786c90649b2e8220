//===- Pipeline.cpp - The stages that micro-batches run through -----------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the task graphs of a loop over micro-batches, with their devices. Out:
// stages and slots, and with costs the problem that the planner schedules.
// Devices that task graphs share are joined to stages. Forwards take slots in
// program order: the first one of their stage that is not before those of their
// producers, or a new one. Backwards take the slots of the forwards of their
// name, from the last to the first. Costs are those of the loop's first region.
//
//===----------------------------------------------------------------------===//

#include "whale/Transforms/Placed/Pipeline.h"

#include "PipelineBytes.h"
#include "StageCosts.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/OpCost.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

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
        slotOf[graph] = findBackwardSlot(graph);
      }
  // Stages are numbered in the order of their first slots.
  llvm::DenseMap<int64_t, int64_t> numbers;
  for (Slot &slot : slots)
    slot.stage = numbers.try_emplace(slot.stage, numbers.size()).first->second;
  numStages = numbers.size();
  for (auto [op, slot] : slotOf)
    for (int64_t device : devicesOf(cast<TaskGraphOp>(op)).getDevices())
      if (!llvm::is_contained(slots[slot].devices, device))
        slots[slot].devices.push_back(device);
  numberChunks();
}

/// A forward gets the first slot of its stage that isn't before the slots of
/// its producers, or a new one at the end.
void Pipeline::addForward(TaskGraphOp graph) {
  std::optional<int64_t> stage = stageOf(graph);
  if (!stage)
    return;
  int64_t slot = 0;
  for (TaskGraphOp producer : findProducers(graph))
    slot = std::max(slot, getSlot(producer));
  while (slot < int64_t(slots.size()) && slots[slot].stage != *stage)
    ++slot;
  if (slot == int64_t(slots.size()))
    slots.push_back({*stage});
  slotOf[graph] = slot;
  SmallVector<int64_t> &indices = slotsOfName[graph.getName()];
  if (!llvm::is_contained(indices, slot))
    indices.push_back(slot);
}

/// Backwards pass the slots from the last to the first: one gets a slot of the
/// forwards of its name, or of its stage where there are none, the last that
/// isn't behind the slots of the backwards it uses.
int64_t Pipeline::findBackwardSlot(TaskGraphOp graph) {
  SmallVector<int64_t> indices = slotsOfName.lookup(graph.getName());
  int64_t last = slots.size() - 1;
  for (TaskGraphOp producer : findProducers(graph))
    if (producer.getPhase() != Phase::Forward && slotOf.contains(producer))
      last = std::min(last, getSlot(producer));
  if (indices.empty())
    for (auto [index, slot] : llvm::enumerate(slots))
      if (slot.stage == *stageOf(graph) && int64_t(index) <= last)
        indices.push_back(index);
  // There is none, as where the forwards are in a loop of their own: a slot is
  // added in front.
  if (indices.empty()) {
    for (auto &entry : slotOf)
      ++entry.second;
    for (auto &entry : slotsOfName)
      for (int64_t &slot : entry.second)
        ++slot;
    slots.insert(slots.begin(), {*stageOf(graph)});
    return 0;
  }
  int64_t best = *llvm::max_element(indices);
  for (int64_t slot : indices)
    if (slot <= last && (best > last || slot > best))
      best = slot;
  return best;
}

void Pipeline::numberChunks() {
  for (size_t i = 0; i < slots.size(); ++i) {
    llvm::sort(slots[i].devices);
    for (size_t j = 0; j < i; ++j)
      if (llvm::any_of(slots[i].devices, [&](int64_t device) {
            return llvm::is_contained(slots[j].devices, device);
          }))
        slots[i].chunk = std::max(slots[i].chunk, slots[j].chunk + 1);
  }
}

SmallVector<TaskGraphOp> Pipeline::graphs() const {
  MicroBatchesOp op = loop;
  return llvm::to_vector(op.getBody(0).getOps<TaskGraphOp>());
}

int64_t Pipeline::getSlot(TaskGraphOp graph) const {
  auto it = slotOf.find(graph);
  return it == slotOf.end() ? -1 : it->second;
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
  problem.costs.resize(slots.size());
  bool isRegular = slots.size() % numStages == 0;
  for (auto [index, slot] : llvm::enumerate(slots)) {
    problem.stageSequence.push_back(slot.stage);
    isRegular &= slot.stage == int64_t(index) % numStages;
  }
  if (isRegular) {
    problem.chunks = slots.size() / numStages;
    problem.stageSequence.clear();
  }
  return problem;
}

int64_t Pipeline::getInFlight(StringRef graph) {
  SmallVector<int64_t> indices = slotsOfName.lookup(graph);
  if (indices.empty() || numStages < 2 || !goesBack())
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
  for (int64_t slot : indices) {
    int64_t stage = slots[slot].stage;
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
    int64_t slot = getSlot(graph);
    if (slot < 0)
      continue;
    double seconds = costs.secondsOf(graph, slots[slot].devices);
    StageCost &cost = problem.costs[slot];
    if (graph.getPhase() == Phase::Forward)
      cost.forward += seconds;
    else if (graph->hasAttr(kWeightGradientAttr))
      cost.weight += seconds;
    else
      cost.backward += seconds;
  }
  llvm::BitVector isCounted(numStages);
  PipelineBytes needs(loop, *this);
  for (auto [index, slot] : llvm::enumerate(slots)) {
    StageCost &cost = problem.costs[index];
    cost.send =
        costs.sendSeconds([&, index = int64_t(index)](TaskGraphOp graph) {
          return getSlot(graph) == index;
        });
    // The device with the least free memory.
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int64_t device : slot.devices) {
      auto it = needs.getDevices().find(device);
      if (it == needs.getDevices().end())
        continue;
      StageCost bytes = needs.costOf(device, index);
      // All slots of a stage share what is always there.
      bytes.fixedBytes = isCounted[slot.stage] ? 0 : it->second.fixed;
      bytes.memoryBytes = cluster.kindOf(device).memoryBytes;
      int64_t room = bytes.memoryBytes - bytes.fixedBytes - bytes.sumBytes -
                     bytes.activationBytes;
      if (room >= least)
        continue;
      least = room;
      bytes.forward = cost.forward;
      bytes.backward = cost.backward;
      bytes.weight = cost.weight;
      bytes.send = cost.send;
      cost = bytes;
    }
    isCounted.set(slot.stage);
  }
  return problem;
}

void Pipeline::correctBytes(const Schedule &schedule,
                            MutableArrayRef<int64_t> bytes) {
  PipelineBytes needs(loop, *this);
  ScheduleProblem problem = emptyProblem();
  std::vector<std::vector<int64_t>> slotsOfStage;
  for (int64_t stage = 0; stage < problem.stages; ++stage)
    slotsOfStage.push_back(problem.taskGraphsOf(stage));
  for (auto &[device, expected] : needs.getDevices()) {
    if (device < 0 || device >= int64_t(bytes.size()))
      continue;
    int64_t most = std::max(expected.outside, expected.fixed);
    for (auto [steps, indices] : llvm::zip_equal(schedule, slotsOfStage))
      if (llvm::any_of(indices, [&, &expected = expected](int64_t slot) {
            return expected.kept[slot] > 0 || expected.sums[slot] > 0;
          }))
        most = std::max(most, needs.findPeak(device, indices, steps));
    bytes[device] = most;
  }
}

} // namespace whale
