//===- StageCosts.cpp - What task graphs cost on their shares -------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageCosts.h"

#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Placement/Resolver.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Step/StepCost.h"
#include "whale/Transforms/OpCost.h"

using namespace mlir;

namespace whale {

StageCosts::StageCosts(MicroBatchesOp loop, const Cluster &cluster)
    : loop(loop), cluster(cluster), topology(Topology::of(cluster)),
      model(createRooflineModel(cluster)) {}

const std::vector<double> &StageCosts::partsOf(Value value) {
  PlacementAttr attr = getPlacement(value);
  std::vector<double> &list = parts[attr];
  if (!list.empty() || !attr)
    return list;
  list.assign(cluster.devices.size(), 0);
  double whole = std::max<double>(1, double(volumeOf(attr.getValue().view())));
  for (DeviceId device : attr.getValue().devices())
    if (std::optional<Box> box = attr.getValue().box(device))
      list[device] = double(box->volume()) / whole;
  return list;
}

/// The parts of an operation that devices compute: of each the smallest of its
/// operands and results, as a sum over what is split is partial but whole.
SmallVector<double> StageCosts::partsOf(Operation *op,
                                        ArrayRef<int64_t> devices) {
  SmallVector<double> least(devices.size(), 1);
  auto look = [&](Value value) {
    const std::vector<double> &list = partsOf(value);
    if (!list.empty() && cast<ShapedType>(value.getType()).getNumElements() > 1)
      for (auto [part, device] : llvm::zip_equal(least, devices))
        part = std::min(part, list[device]);
  };
  llvm::for_each(op->getOperands(), look);
  llvm::for_each(op->getResults(), look);
  return least;
}

double StageCosts::secondsOf(TaskGraphOp graph, ArrayRef<int64_t> devices) {
  // Devices of a speed with the same part take the same time.
  std::map<std::pair<unsigned, double>, unsigned> speeds;
  SmallVector<int64_t> speedClasses;
  std::vector<unsigned> speedOf;
  for (int64_t device : devices) {
    const Device &it = cluster.devices[device];
    auto [entry, isNew] =
        speeds.try_emplace({it.kind, it.slowdown}, unsigned(speeds.size()));
    if (isNew)
      speedClasses.push_back(device);
    speedOf.push_back(entry->second);
  }
  std::vector<double> sums(devices.size(), 0);
  std::function<void(Block &, double)> visit = [&](Block &block, double times) {
    for (Operation &op : block.without_terminator()) {
      if (auto loop = dyn_cast<stablehlo::WhileOp>(op)) {
        double rounds = double(tripCount(loop).value_or(1));
        for (Region &region : op.getRegions())
          visit(region.front(), repeatCost(rounds, times));
        continue;
      }
      if (stablehlo::isBranch(&op)) {
        visit(longestBranch(&op, *model, devices.front()).front(), times);
        continue;
      }
      SmallVector<double> seconds;
      for (int64_t device : speedClasses)
        seconds.push_back(opSeconds(&op, *model, device));
      if (seconds.front() == 0)
        continue;
      for (auto [sum, speed, part] :
           llvm::zip_equal(sums, speedOf, partsOf(&op, devices)))
        sum += times * seconds[speed] * part;
    }
  };
  visit(graph.getBody().front(), 1);
  return sums.empty() ? 0 : *llvm::max_element(sums);
}

double StageCosts::sendSeconds(Selection from) {
  double seconds = 0;
  for (auto reshard : loop.getBody(0).getOps<ReshardOp>()) {
    auto graph = reshard.getInput().getDefiningOp<TaskGraphOp>();
    if (!graph || graph.getPhase() != Phase::Forward || !from(graph))
      continue;
    const Placement &source = reshard.getFrom().getValue();
    const Placement &target = reshard.getTo().getValue();
    if (llvm::any_of(target.devices(),
                     [&](DeviceId device) { return source.holds(device); }))
      continue;
    auto type = cast<RankedTensorType>(reshard.getType());
    if (type.getNumElements() == 0)
      continue;
    int64_t elementBytes = getTensorBytes(type) / type.getNumElements();
    for (const Step &step : resolve(type.getShape(), source, target, topology))
      seconds += stepSeconds(*model, step, elementBytes, topology);
  }
  return seconds;
}

} // namespace whale
