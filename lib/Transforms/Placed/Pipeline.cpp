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

#include "Pipeline.h"

#include "StageCosts.h"
#include "whale/Dialect/Whale/IR/Config.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/PlacementAttrs.h"
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

SmallVector<TaskGraphOp> Pipeline::graphs() {
  return llvm::to_vector(loop.getBody(0).getOps<TaskGraphOp>());
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

/// What a value takes on a device, in bytes.
static double bytesOn(Value value, int64_t device) {
  auto type = cast<RankedTensorType>(value.getType());
  PlacementAttr placement = getPlacement(value);
  if (!placement)
    return double(getTensorBytes(type));
  auto local = getLocalType(type, placement.getValue(), device);
  return local ? double(getTensorBytes(*local)) : 0;
}

static double bytesOn(const llvm::SetVector<Value> &values, int64_t device) {
  double bytes = 0;
  for (Value value : values)
    bytes += bytesOn(value, device);
  return bytes;
}

std::vector<Pipeline::WeightInputs> Pipeline::findWeightInputs() {
  std::vector<WeightInputs> inputs(slots.size());
  for (TaskGraphOp graph : graphs()) {
    int64_t slot = getSlot(graph);
    if (slot < 0 || !graph->hasAttr(kWeightGradientAttr))
      continue;
    WeightInputs &input = inputs[slot];
    graph.walk([&](Operation *op) {
      for (Value operand : op->getOperands()) {
        auto producer =
            lookThroughReshards(operand).getDefiningOp<TaskGraphOp>();
        if (!producer || getSlot(producer) != slot)
          continue;
        if (producer.getPhase() == Phase::Forward)
          input.ofForward.insert(operand);
        else if (producer.getPhase() == Phase::Backward)
          input.ofBackward.insert(operand);
      }
    });
  }
  return inputs;
}

double Pipeline::WeightInputs::bytesOn(int64_t device, double kept,
                                       double part) const {
  // Without samples in the first region nothing is known of the others.
  if (part == 0)
    return kept;
  return std::min(kept, whale::bytesOn(ofForward, device) / part) +
         whale::bytesOn(ofBackward, device) / part;
}

std::vector<std::vector<Value>> Pipeline::findSamples() {
  std::vector<std::vector<Value>> samples(slots.size());
  for (auto [region, body] : llvm::enumerate(loop.getBodies())) {
    for (std::vector<Value> &ofRegions : samples)
      ofRegions.push_back({});
    for (auto graph : body.getOps<TaskGraphOp>()) {
      if (graph.getPhase() != Phase::Forward || getSlot(graph) < 0)
        continue;
      Value &largest = samples[getSlot(graph)][region];
      for (Value result : graph.getResults())
        if (!largest || getTensorBytes(result.getType()) >
                            getTensorBytes(largest.getType()))
          largest = result;
    }
  }
  return samples;
}

llvm::BitVector Pipeline::findExchanging() {
  llvm::BitVector exchanging(slots.size());
  auto terms = loop.getYield(0).getOperands();
  for (unsigned i = 0; i < loop.getNumReduced(); ++i) {
    auto graph = terms[i].getDefiningOp<TaskGraphOp>();
    bool isExchanged =
        llvm::any_of(loop.getResult(i).getUsers(), [](Operation *user) {
          auto moved = dyn_cast<ReshardOp>(user);
          return moved && moved.getFrom().getValue().isPartial();
        });
    if (graph && getSlot(graph) >= 0 && isExchanged)
      exchanging.set(getSlot(graph));
  }
  return exchanging;
}

int64_t gradientPartBytes(int64_t total, int64_t bucketBytes) {
  // With more parts the last ones are little work to hide communication behind.
  constexpr int64_t mostParts = 8;
  return std::max(bucketBytes, total / mostParts);
}

void Pipeline::setSums(StageCost &cost, double sums, bool isExchanging) {
  cost.sumBytes = toBytes(sums);
  int64_t bucketBytes =
      Config(loop->getParentOfType<ModuleOp>()).getBucketBytes();
  if (int64_t part = gradientPartBytes(cost.sumBytes, bucketBytes);
      isExchanging && part > 0)
    cost.sumParts = std::max<int64_t>(cost.sumBytes / part, 1);
}

/// The parts that a device has of such values, of the largest of them.
static std::vector<double> findParts(ArrayRef<Value> samples, int64_t device) {
  std::vector<double> parts;
  for (Value value : samples)
    parts.push_back(value ? bytesOn(value, device) : 0);
  double largest = *llvm::max_element(parts);
  for (double &part : parts)
    part = largest > 0 ? part / largest : 1;
  return parts;
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
  std::map<int64_t, DeviceBytes> bytesOf = readBytes();
  std::vector<WeightInputs> weightInputs = findWeightInputs();
  std::vector<std::vector<Value>> samples = findSamples();
  llvm::BitVector exchanging = findExchanging();
  for (auto [index, slot] : llvm::enumerate(slots)) {
    StageCost &cost = problem.costs[index];
    cost.send =
        costs.sendSeconds([&, index = int64_t(index)](TaskGraphOp graph) {
          return getSlot(graph) == index;
        });
    // The device with the least free memory.
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int64_t device : slot.devices) {
      auto it = bytesOf.find(device);
      if (it == bytesOf.end())
        continue;
      // All slots of a stage share what is always there.
      int64_t fixed = isCounted[slot.stage] ? 0 : it->second.fixed;
      // Saturates where all micro-batches together would not fit 64 bits.
      int64_t kept = toBytes(it->second.kept[index] * problem.microBatches) /
                     problem.microBatches;
      int64_t memory = cluster.kindOf(device).memoryBytes;
      int64_t room = memory - fixed - toBytes(it->second.sums[index]) - kept;
      if (room >= least)
        continue;
      least = room;
      cost.fixedBytes = fixed;
      setSums(cost, it->second.sums[index], exchanging[index]);
      cost.activationBytes = kept;
      cost.weightBytes = toBytes(weightInputs[index].bytesOn(
          device, double(kept), findParts(samples[index], device).front()));
      cost.memoryBytes = memory;
    }
    isCounted.set(slot.stage);
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
    auto share = [&](StringRef key) {
      std::vector<double> ofSlots(slots.size());
      for (NamedAttribute amount : entry.getAs<DictionaryAttr>(key)) {
        SmallVector<int64_t> indices = slotsOfName.lookup(amount.getName());
        for (int64_t slot : indices)
          ofSlots[slot] +=
              double(cast<IntegerAttr>(amount.getValue()).getInt()) /
              double(indices.size());
      }
      return ofSlots;
    };
    bytes.kept = share("kept");
    bytes.sums = share("sums");
    for (int64_t device :
         entry.getAs<DenseI64ArrayAttr>("devices").asArrayRef())
      result[device] = bytes;
  }
  return result;
}

void Pipeline::correctBytes(const Schedule &schedule,
                            MutableArrayRef<int64_t> bytes) {
  ScheduleProblem problem = emptyProblem();
  std::vector<WeightInputs> weightInputs = findWeightInputs();
  std::vector<std::vector<Value>> samples = findSamples();
  llvm::BitVector exchanging = findExchanging();
  for (auto &[device, expected] : readBytes()) {
    if (device < 0 || device >= int64_t(bytes.size()))
      continue;
    int64_t most = std::max(expected.outside, expected.fixed);
    for (const auto &[stage, steps] : llvm::enumerate(schedule)) {
      std::vector<int64_t> indices = problem.taskGraphsOf(stage);
      if (llvm::all_of(indices, [&, &expected = expected](int64_t slot) {
            return expected.kept[slot] == 0 && expected.sums[slot] == 0;
          }))
        continue;
      std::vector<StageCost> chunks;
      // By chunk and region.
      std::vector<std::vector<double>> parts;
      for (int64_t slot : indices) {
        StageCost &cost = chunks.emplace_back();
        double kept = expected.kept[slot];
        parts.push_back(findParts(samples[slot], device));
        cost.activationBytes = toBytes(kept);
        cost.weightBytes = toBytes(
            weightInputs[slot].bytesOn(device, kept, parts.back().front()));
        setSums(cost, expected.sums[slot], exchanging[slot]);
      }
      chunks.front().fixedBytes = expected.fixed;
      auto partOf = [&](int64_t chunk, int64_t microBatch) {
        return parts[chunk][loop.getVariants()[microBatch]];
      };
      most = std::max(most, findPeakBytes(steps, chunks, partOf));
    }
    bytes[device] = most;
  }
}

} // namespace whale
