//===- Partition.cpp - One program for each rank class -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Ranks whose shards have the same shapes run the same schedule: the class.
// Each class gets a copy of the step on local shapes, with every reshard
// resolved to concrete collectives. What differs between the ranks of a class
// (peers, offsets) follows from the placements and is filled in when the
// program is emitted.
//
//===----------------------------------------------------------------------===//

#include "RankClassBuilder.h"
#include "RankClasses.h"
#include "Segments.h"
#include "mlir/IR/Threading.h"
#include "whale/Cluster/Cluster.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"
#include "whale/Sharding/PlacementAttrs.h"
#include "whale/Transforms/Passes.h"

using namespace mlir;

namespace whale {
#define GEN_PASS_DEF_PARTITION
#include "whale/Transforms/Partition/Passes.h.inc"

namespace {

struct PartitionPass : impl::PartitionBase<PartitionPass> {
  using PartitionBase::PartitionBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> main = getMainFunction(module);
    if (failed(main))
      return signalPassFailure();
    if (failed(checkPlacements(*main)))
      return signalPassFailure();
    Topology topology;
    int64_t deviceCount = 0;
    for (ClusterOp cluster : module.getOps<ClusterOp>()) {
      topology = Topology::of(cluster.getCluster());
      deviceCount = cluster.getCluster().devices.size();
    }
    ResolvedReshards reshards = resolveReshards(*main, topology);
    FailureOr<MomentOrders> orders = createMomentOrders(*main);
    if (failed(orders))
      return signalPassFailure();
    if (failed(build(*main, findRankClasses(*main, reshards, deviceCount),
                     reshards, *orders)))
      return signalPassFailure();
    main->erase();
    for (VirtualDeviceOp device :
         llvm::make_early_inc_range(module.getOps<VirtualDeviceOp>()))
      device.erase();
  }

private:
  static FailureOr<MomentOrders> createMomentOrders(func::FuncOp main) {
    MomentOrders orders;
    for (auto loop : main.getOps<MicroBatchesOp>()) {
      FailureOr<MomentOrder> order = MomentOrder::create(loop);
      if (failed(order))
        return failure();
      orders.try_emplace(loop, std::move(*order));
    }
    return orders;
  }

  /// Adds the schedule of each class to the module.
  LogicalResult build(func::FuncOp main, ArrayRef<std::vector<int64_t>> classes,
                      const ResolvedReshards &reshards,
                      const MomentOrders &orders) {
    std::vector<ScheduleOp> schedules(classes.size());
    std::vector<std::vector<CalledSegment>> segments(classes.size());
    TurnTable turns(reshards);
    auto buildOne = [&](size_t index) -> LogicalResult {
      OpBuilder builder(&getContext());
      FailureOr<RankClassCode> built =
          RankClassBuilder(builder, main, classes[index], reshards, orders,
                           turns)
              .build(("rank_class_" + Twine(index)).str());
      if (succeeded(built)) {
        schedules[index] = built->schedule;
        segments[index] = std::move(built->segments);
      }
      return built;
    };
    LogicalResult built =
        failableParallelForEachN(&getContext(), 0, classes.size(), buildOne);
    for (ScheduleOp schedule : schedules)
      if (schedule)
        getOperation().push_back(schedule);
    if (succeeded(built))
      addSegments(getOperation(), segments);
    return built;
  }

  /// Everything must have been placed, and every operand as it is wanted.
  LogicalResult checkPlacements(func::FuncOp main) {
    auto result = main.walk([&](Operation *op) {
      if (op->hasAttr(operandPlacementsAttrName)) {
        op->emitError("wants its operands placed otherwise; run "
                      "whale-insert-reshards first");
        return WalkResult::interrupt();
      }
      if (op == main || isa<TaskGraphOp, ReshardOp>(op))
        return WalkResult::advance();
      if (op->getNumResults() != 0 && op->getBlock()->getParentOp() &&
          hasPlacedRegions(op->getParentOp()) &&
          !getPlacement(op->getResult(0))) {
        op->emitError("has no placement; run whale-propagate first");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }
};

} // namespace
} // namespace whale
