//===- MomentOrder.h - In which order a rank computes micro-batches -------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_LIB_TRANSFORMS_PARTITION_MOMENTORDER_H
#define WHALE_LIB_TRANSFORMS_PARTITION_MOMENTORDER_H

#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Placement/Placement.h"

namespace whale {

/// An operation of the region of `whale.micro_batches`, and when.
struct MomentItem {
  mlir::Operation *op;
  int64_t moment;
};

/// The order in which the devices of a loop compute its micro-batches: one for
/// all of them, of which each takes what is its own. So no two devices wait for
/// each other.
class MomentOrder {
public:
  /// Merges the lists of the loop's order; where it has none the micro-batches
  /// come one after the other. Part of a step that another device needs before
  /// the step's turn is computed then: forwards that are computed again for the
  /// backward of a later stage. Fails with an error where the order leaves work
  /// out.
  static mlir::FailureOr<MomentOrder> create(MicroBatchesOp loop);

  /// What `device` computes and sends. Exchanges in which it only receives are
  /// left out: it receives what it needs when it needs it first. But those
  /// with a device that both sends and receives all take in one turn; local
  /// slices, for which `communicates` is false, are no exchanges.
  llvm::SmallVector<MomentItem>
  itemsOf(DeviceId device,
          llvm::function_ref<bool(ReshardOp)> communicates) const;

private:
  explicit MomentOrder(MicroBatchesOp loop) : loop(loop) {}

  MicroBatchesOp loop;
  /// The task graphs of all devices; empty where the loop has no order.
  llvm::SmallVector<MomentItem> order;
};

} // namespace whale

#endif // WHALE_LIB_TRANSFORMS_PARTITION_MOMENTORDER_H
