//===- DivideGathers.cpp - whale-divide-gathers ---------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In: the schedules of the rank classes. Out: the same, where an all-gather, a
// reduce-scatter or an all-to-all over several nodes for which that is faster
// is two: one between devices of the same place in their nodes, one in each
// node (DivideByNode.h).
//
// Costs O(collectives), and for each pair of placements its groups and what
// both forms take.
//
//===----------------------------------------------------------------------===//

#include "CollectiveSteps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "whale/Dialect/Whale/IR/ElementType.h"
#include "whale/Placement/DivideByNode.h"
#include "whale/Step/StepCost.h"
#include "whale/Transforms/Passes.h"

#include <map>

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_DIVIDEGATHERS
#include "whale/Transforms/Partition/Passes.h.inc"

namespace {

class GatherDivider {
public:
  GatherDivider(ArrayRef<ScheduleOp> classes, const Cluster &cluster)
      : classes(classes), model(createRooflineModel(cluster)),
        topology(Topology::of(cluster)) {}

  void run();

private:
  const NodeDivision *findDivision(CollectiveOp op);
  std::optional<NodeDivision> makeDivision(const Step &step,
                                           int64_t elementBytes) const;
  void divide(CollectiveOp op, const NodeDivision &division, int64_t channel);

  ArrayRef<ScheduleOp> classes;
  std::unique_ptr<CostModel> model;
  Topology topology;
  std::map<std::tuple<StepKind, const void *, const void *, int64_t>,
           std::optional<NodeDivision>>
      divisions;
};

} // namespace

std::optional<NodeDivision>
GatherDivider::makeDivision(const Step &step, int64_t elementBytes) const {
  std::optional<NodeDivision> division = divideByNode(step, topology);
  if (!division)
    return std::nullopt;
  auto secondsOf = [&](const Step &own) {
    return stepSeconds(*model, own, elementBytes, topology);
  };
  double divided = secondsOf(division->first) + secondsOf(division->second) +
                   kCollectiveStart;
  if (!(divided < secondsOf(step)))
    return std::nullopt;
  return division;
}

const NodeDivision *GatherDivider::findDivision(CollectiveOp op) {
  StepKind kind = stepKindOf(op);
  if ((kind != StepKind::AllGather && kind != StepKind::ReduceScatter &&
       kind != StepKind::AllToAll) ||
      !op.getInput() || !op.getOutput())
    return nullptr;
  int64_t bytes = getElementBytes(getElementTypeOrSelf(op.getInput()));
  auto [it, isNew] =
      divisions.try_emplace({kind, op.getFrom().getAsOpaquePointer(),
                             op.getTo().getAsOpaquePointer(), bytes},
                            std::nullopt);
  if (isNew)
    it->second = makeDivision(
        {kind, op.getFrom().getValue(), op.getTo().getValue()}, bytes);
  return it->second ? &*it->second : nullptr;
}

/// The first of the two keeps the channel.
void GatherDivider::divide(CollectiveOp op, const NodeDivision &division,
                           int64_t channel) {
  OpBuilder builder(op);
  Value output = op.getOutput();
  Type between = RankedTensorType::get(division.shape,
                                       getElementTypeOrSelf(output.getType()));
  Operation *first = createStep(builder, op, division.first, op.getChannel(),
                                op.getInput(), between);
  Operation *second = createStep(builder, op, division.second, channel,
                                 first->getResult(0), output.getType());
  output.replaceAllUsesWith(second->getResult(0));
  op->erase();
}

void GatherDivider::run() {
  divideCollectives(
      classes, /*more=*/1, [&](CollectiveOp op) { return findDivision(op); },
      [&](CollectiveOp op, int64_t channel) {
        divide(op, *findDivision(op), channel);
      });
}

namespace {

struct DivideGathersPass : impl::DivideGathersBase<DivideGathersPass> {
  void runOnOperation() final {
    for (ClusterOp cluster : getOperation().getOps<ClusterOp>())
      GatherDivider(getRankClasses(getOperation()), cluster.getCluster()).run();
  }
};

} // namespace
} // namespace whale
