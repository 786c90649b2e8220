//===- InstructionCosts.cpp - What instructions take ----------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InstructionCosts.h"

#include "mlir/IR/Threading.h"
#include "whale/Dialect/StableHLO/IR/ControlFlow.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Dialect/Whale/IR/CollectiveKinds.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Transforms/OpCost.h"
#include "whale/Transforms/OperationWork.h"

#include <map>
#include <tuple>

using namespace mlir;

namespace whale {

ProgramCosts::ProgramCosts(ModuleOp module, int64_t numRanks)
    : context(module.getContext()) {
  for (ClusterOp op : module.getOps<ClusterOp>())
    cluster = op.getCluster();
  if (cluster.devices.empty())
    cluster = Cluster::ofRanks(numRanks);
  topology = Topology::of(cluster);
  model = createRooflineModel(cluster);
}

static int64_t elementBytes(CollectiveOp op) {
  Value value = op.getInput() ? op.getInput() : op.getOutput();
  return getElementBytes(getElementTypeOrSelf(value.getType()));
}

std::vector<double>
ProgramCosts::secondsOf(ArrayRef<CollectiveOp> transfers) const {
  std::map<std::tuple<StepKind, int64_t, const void *, const void *>, size_t>
      kinds;
  SmallVector<CollectiveOp> firsts;
  SmallVector<size_t> kindOf;
  for (CollectiveOp op : transfers) {
    if (isHostCopy(op)) {
      kindOf.push_back(firsts.size());
      firsts.push_back(op);
      continue;
    }
    auto [kind, isNew] = kinds.try_emplace({stepKindOf(op), elementBytes(op),
                                            op.getFrom().getAsOpaquePointer(),
                                            op.getTo().getAsOpaquePointer()},
                                           firsts.size());
    if (isNew)
      firsts.push_back(op);
    kindOf.push_back(kind->second);
  }
  std::vector<double> seconds(firsts.size());
  parallelFor(context, 0, firsts.size(), [&](size_t i) {
    CollectiveOp op = firsts[i];
    if (isHostCopy(op)) {
      seconds[i] = hostCopySeconds(op, op.getFrom().getValue().devices()[0]);
      return;
    }
    seconds[i] = stepSeconds(
        *model,
        {stepKindOf(op), op.getFrom().getValue(), op.getTo().getValue()},
        elementBytes(op), topology);
  });
  std::vector<double> all;
  for (size_t kind : kindOf)
    all.push_back(seconds[kind]);
  return all;
}

double ProgramCosts::hostCopySeconds(CollectiveOp op, int64_t device) const {
  const std::optional<HostMemory> &host = cluster.nodeOf(device).host;
  if (!host)
    return 0;
  auto sharing =
      double(llvm::count_if(cluster.devices, [&](const Device &other) {
        return other.node == cluster.devices[device].node;
      }));
  return sharing * double(getTensorBytes(op.getInput().getType())) /
         host->bandwidth;
}

double InstructionCosts::secondsOf(Operation *op) {
  if (auto call = dyn_cast<func::CallOp>(op)) {
    FlatSymbolRefAttr callee = call.getCalleeAttr();
    if (auto known = segmentSeconds.find(callee); known != segmentSeconds.end())
      return known->second;
    auto segment =
        program.symbols().lookupNearestSymbolFrom<func::FuncOp>(op, callee);
    return segmentSeconds[callee] = secondsOf(segment.getBody());
  }
  if (auto loop = dyn_cast<stablehlo::WhileOp>(op))
    return repeatCost(double(tripCount(loop).value_or(1)),
                      secondsOf(loop.getCond()) + secondsOf(loop.getBody()));
  double most = 0;
  for (Region &region : op->getRegions())
    most = std::max(most, secondsOf(region));
  if (op->getNumRegions() > 0)
    return most;
  std::optional<OpCost> work = operationWork(op, &program.symbols());
  return work ? program.getModel().opSeconds(*work, device) : 0;
}

double InstructionCosts::secondsOf(Region &region) {
  double sum = 0;
  for (Operation &op : region.front().without_terminator())
    sum += secondsOf(&op);
  return sum;
}

} // namespace whale
