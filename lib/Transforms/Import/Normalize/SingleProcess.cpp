//===- SingleProcess.cpp - Collectives of one process ---------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program for one replica and one partition may hold collectives all the
// same: among one process they give what they were given, whichever devices
// Whale then places the values on.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "whale/Dialect/StableHLO/IR/StableHLOOps.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace whale::normalize {

namespace {

/// Whether the processes that `numbers` names are number 0 alone. Groups of
/// unlike sizes are filled up with -1; no group means all processes.
bool isZeroAlone(DenseIntElementsAttr numbers) {
  return llvm::all_of(numbers.getValues<int64_t>(),
                      [](int64_t number) { return number <= 0; });
}

bool isOne(ModuleOp module, StringRef count) {
  auto attr = module->getAttrOfType<IntegerAttr>(count);
  return !attr || attr.getInt() == 1;
}

/// The processes that a collective names; none if `op` is no collective.
DenseIntElementsAttr getProcesses(Operation *op) {
  if (!isa<stablehlo::AllGatherOp, stablehlo::AllReduceOp,
           stablehlo::AllToAllOp, stablehlo::CollectiveBroadcastOp,
           stablehlo::CollectivePermuteOp, stablehlo::ReduceScatterOp>(op))
    return {};
  if (auto permute = dyn_cast<stablehlo::CollectivePermuteOp>(op))
    return permute.getSourceTargetPairs();
  return op->getAttrOfType<DenseIntElementsAttr>("replica_groups");
}

} // namespace

void dropLoneCollectives(ModuleOp module) {
  if (!isOne(module, "mhlo.num_partitions") ||
      !isOne(module, "mhlo.num_replicas"))
    return;
  module.walk([](Operation *op) {
    OpBuilder b(op);
    auto replaceByZero = [&] {
      auto type = cast<RankedTensorType>(op->getResult(0).getType());
      Value zero = stablehlo::ConstantOp::create(
          b, op->getLoc(), cast<DenseElementsAttr>(b.getZeroAttr(type)));
      op->replaceAllUsesWith(ValueRange{zero});
      op->erase();
    };
    if (isa<stablehlo::PartitionIdOp, stablehlo::ReplicaIdOp>(op))
      return replaceByZero();
    DenseIntElementsAttr processes = getProcesses(op);
    if (!processes || !isZeroAlone(processes) ||
        op->getOperandTypes() != op->getResultTypes())
      return;
    // A process that nothing is sent to has zeros.
    if (isa<stablehlo::CollectivePermuteOp, stablehlo::CollectiveBroadcastOp>(
            op) &&
        processes.empty())
      return replaceByZero();
    op->replaceAllUsesWith(op->getOperands());
    op->erase();
  });
}

} // namespace whale::normalize
