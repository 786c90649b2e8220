//===- VerifyPrices.cpp - One price for each transfer ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: a module of schedules and the channels of its program. Out: an error at
// the first transfer that has two prices, by either rule of collectives, over
// links that cost something. Cost: for each channel, the table of its pieces.
//
//===----------------------------------------------------------------------===//

#include "VerifyPrices.h"

#include "whale/Cluster/AssumedLinks.h"
#include "whale/Dialect/Whale/IR/CollectiveKinds.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Dialect/Whale/IR/WhaleOffloadOps.h"
#include "whale/Step/ProgramModel.h"
#include "whale/Step/StepCost.h"

#include <cmath>

using namespace mlir;

namespace whale {

static LogicalResult verifyPrice(CollectiveOp op,
                                 const format::Collective &channel,
                                 const CostModel &model,
                                 const Topology &topology) {
  Value value = op.getInput() ? op.getInput() : op.getOutput();
  double planned = stepSeconds(
      model, {stepKindOf(op), op.getFrom().getValue(), op.getTo().getValue()},
      getElementBytes(getElementTypeOrSelf(value.getType())), topology);
  double read = model.exchangeSeconds(exchangesOf(channel));
  if (std::abs(planned - read) <= 1e-9 * planned)
    return success();
  return op.emitError("takes ") << planned << " s by its placements, but "
                                << read << " s as channel " << op.getChannel();
}

LogicalResult verifyPrices(
    ModuleOp module, ArrayRef<ScheduleOp> classes,
    const std::map<int64_t, format::Shared<format::Collective>> &channels) {
  int64_t ranks = 0;
  for (ScheduleOp schedule : classes)
    ranks += int64_t(schedule.getRanks().size());
  Topology topology;
  Cluster cluster = Cluster::ofRanks(ranks);
  for (ClusterOp op : module.getOps<ClusterOp>()) {
    cluster = op.getCluster();
    topology = Topology::of(cluster);
  }
  cluster = withAssumedLinks(std::move(cluster));
  auto own = createRooflineModel(cluster, CollectiveRule::Own);
  auto nccl = createRooflineModel(cluster, CollectiveRule::Nccl);
  // Channels that move the same share a description.
  llvm::DenseSet<const format::Collective *> seen;
  for (ScheduleOp schedule : classes) {
    WalkResult result = schedule.walk([&](CollectiveOp op) {
      auto channel = channels.find(op.getChannel());
      if (isHostCopy(op) || channel == channels.end() ||
          channel->second->parts.size() != 1 ||
          !seen.insert(channel->second.get()).second)
        return WalkResult::advance();
      for (const CostModel *model : {own.get(), nccl.get()})
        if (failed(verifyPrice(op, *channel->second, *model, topology)))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

} // namespace whale
