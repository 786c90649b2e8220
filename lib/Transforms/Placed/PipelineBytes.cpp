//===- PipelineBytes.cpp - What devices keep of micro-batches -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a loop over micro-batches with placed values, and what whale-propagate
// expects devices to keep for one schedule. Out: what they keep of each
// micro-batch until its backward, behind that for gradients of weights that are
// apart, and in sums of gradients, so that any schedule can be asked for its
// peak. What gradients of weights read is counted in the placements in which
// they read it. Cost: linear in these values, for each device.
//
//===----------------------------------------------------------------------===//

#include "PipelineBytes.h"

#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/KnownAttributes.h"
#include "whale/Sharding/LocalShapes.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Attributes.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/Placed/GradientCuts.h"

using namespace mlir;

namespace whale {

PipelineBytes::PipelineBytes(MicroBatchesOp loop, const Pipeline &pipeline)
    : loop(loop), pipeline(pipeline), variants(loop.getVariants()) {
  readExpected();
  findWeightInputs();
  findSamples();
  countSumParts();
}

void PipelineBytes::readExpected() {
  auto list = loop->getAttrOfType<ArrayAttr>(kLoopBytesAttr);
  if (!list)
    return;
  for (auto entry : list.getAsRange<DictionaryAttr>()) {
    Expected bytes;
    bytes.fixed = entry.getAs<IntegerAttr>("fixed").getInt();
    bytes.outside = entry.getAs<IntegerAttr>("outside").getInt();
    auto share = [&](StringRef key) {
      std::vector<double> ofSlots(pipeline.getSlots().size());
      for (NamedAttribute amount : entry.getAs<DictionaryAttr>(key)) {
        SmallVector<int64_t> slots = pipeline.getSlots(amount.getName());
        for (int64_t slot : slots)
          ofSlots[slot] +=
              double(cast<IntegerAttr>(amount.getValue()).getInt()) /
              double(slots.size());
      }
      return ofSlots;
    };
    bytes.kept = share("kept");
    bytes.sums = share("sums");
    for (int64_t device :
         entry.getAs<DenseI64ArrayAttr>("devices").asArrayRef())
      devices[device] = bytes;
  }
}

/// Whether a backward exchanges something, for itself or with other stages. Its
/// instructions are then computed in the order in which they stand, all of them
/// before those for weights.
static bool exchanges(TaskGraphOp backward) {
  return llvm::any_of(backward->getUsers(), llvm::IsaPred<ReshardOp>) ||
         backward.walk([](ReshardOp) { return WalkResult::interrupt(); })
             .wasInterrupted();
}

void PipelineBytes::findWeightInputs() {
  weightInputs.resize(pipeline.getSlots().size());
  for (TaskGraphOp graph : pipeline.graphs()) {
    int64_t slot = pipeline.getSlot(graph);
    if (slot < 0)
      continue;
    if (!graph->hasAttr(kWeightGradientAttr)) {
      weightInputs[slot].areExchanged |=
          graph.getPhase() == Phase::Backward && exchanges(graph);
      continue;
    }
    graph.walk([&](Operation *op) {
      for (Value operand : op->getOperands()) {
        // What they move themselves is kept as it was, or moved early, where
        // that is less.
        if (auto moved = operand.getDefiningOp<ReshardOp>();
            moved && graph->isAncestor(moved))
          continue;
        auto producer =
            lookThroughReshards(operand).getDefiningOp<TaskGraphOp>();
        if (!producer || pipeline.getSlot(producer) != slot ||
            producer->hasAttr(kWeightGradientAttr))
          continue;
        bool isForward = producer.getPhase() == Phase::Forward;
        WeightInputs &inputs = weightInputs[slot];
        int64_t device = pipeline.getSlots()[slot].devices.front();
        if (auto moves = dyn_cast<ReshardOp>(op);
            moves && getBytesOn(moves, device) < getBytesOn(operand, device))
          operand = moves;
        (isForward ? inputs.ofForward : inputs.ofBackward).insert(operand);
      }
    });
  }
}

void PipelineBytes::findSamples() {
  samples.assign(pipeline.getSlots().size(),
                 std::vector<Value>(loop.getBodies().size()));
  for (auto [region, body] : llvm::enumerate(loop.getBodies()))
    for (auto graph : body.getOps<TaskGraphOp>()) {
      if (graph.getPhase() != Phase::Forward || pipeline.getSlot(graph) < 0)
        continue;
      Value &largest = samples[pipeline.getSlot(graph)][region];
      for (Value result : graph.getResults())
        if (!largest || getTensorBytes(result.getType()) >
                            getTensorBytes(largest.getType()))
          largest = result;
    }
}

static double bytesOn(const llvm::SetVector<Value> &values, int64_t device) {
  double bytes = 0;
  for (Value value : values)
    bytes += double(getBytesOn(value, device));
  return bytes;
}

void PipelineBytes::countSumParts() {
  sumParts.assign(pipeline.getSlots().size(), 1);
  auto isExchanged = [](Value sum) {
    return llvm::any_of(sum.getUsers(), [](Operation *user) {
      auto moved = dyn_cast<ReshardOp>(user);
      return moved && moved.getFrom().getValue().isPartial();
    });
  };
  auto bytesOfTerm = [&](TaskGraphOp graph, OpResult sum) -> int64_t {
    int64_t slot = pipeline.getSlot(graph);
    if (slot < 0 || !isExchanged(sum))
      return 0;
    return toBytes(
        double(getBytesOn(sum, pipeline.getSlots()[slot].devices.front())));
  };
  for (const auto &[graph, cuts] :
       findGradientCuts(loop, loop.getYield(0), bytesOfTerm)) {
    int64_t &parts = sumParts[pipeline.getSlot(graph)];
    parts = std::max<int64_t>(parts, cuts.size() + 1);
  }
}

/// By region of the loop: how many times what is expected of an average
/// micro-batch a device keeps. Where shares rotate, its largest is expected.
std::vector<double> PipelineBytes::partsOf(int64_t device, int64_t slot) const {
  SmallVector<double> all, own;
  for (Value value : samples[slot]) {
    all.push_back(value ? double(getTensorBytes(value.getType())) : 0);
    own.push_back(value ? double(getBytesOn(value, device)) : 0);
  }
  double average = 0, share = 0;
  for (int64_t region : variants)
    average += all[region] / double(variants.size());
  for (auto [whole, part] : llvm::zip_equal(all, own))
    share = std::max(share, whole > 0 ? part / whole : 0);
  std::vector<double> parts;
  for (double part : own)
    parts.push_back(share > 0 ? part / (average * share) : 1);
  return parts;
}

/// `firstPart` is what partsOf says of the first region.
StageCost PipelineBytes::costOf(int64_t device, int64_t slot,
                                double firstPart) const {
  const Expected &expected = devices.at(device);
  StageCost cost;
  // Saturates where all micro-batches together would not fit 64 bits.
  auto count = int64_t(variants.size());
  cost.activationBytes = toBytes(expected.kept[slot] * double(count)) / count;
  auto kept = double(cost.activationBytes);
  const WeightInputs &inputs = weightInputs[slot];
  bool isApart = !inputs.ofForward.empty() || !inputs.ofBackward.empty();
  // Without samples in the first region nothing is known of the others.
  if (isApart && firstPart == 0)
    cost.weightBytes = cost.activationBytes;
  else if (isApart)
    cost.weightBytes =
        toBytes(std::min(kept, bytesOn(inputs.ofForward, device) / firstPart) +
                bytesOn(inputs.ofBackward, device) / firstPart);
  cost.joinsWeight = !inputs.areExchanged;
  cost.sumBytes = toBytes(expected.sums[slot]);
  cost.sumParts = sumParts[slot];
  return cost;
}

int64_t PipelineBytes::findPeak(int64_t device, ArrayRef<int64_t> slots,
                                ArrayRef<ScheduleStep> steps) const {
  std::vector<StageCost> chunks;
  std::vector<std::vector<double>> parts;
  for (int64_t slot : slots) {
    parts.push_back(partsOf(device, slot));
    chunks.push_back(costOf(device, slot, parts.back().front()));
  }
  chunks.front().fixedBytes = devices.at(device).fixed;
  return findPeakBytes(steps, chunks, [&](int64_t chunk, int64_t microBatch) {
    return parts[chunk][variants[microBatch]];
  });
}

} // namespace whale
