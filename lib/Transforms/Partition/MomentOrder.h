//===- MomentOrder.h - In which order a rank computes micro-batches -------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WHALE_TRANSFORMS_PARTITION_MOMENTORDER_H
#define WHALE_TRANSFORMS_PARTITION_MOMENTORDER_H

#include "whale/Dialect/Whale/IR/WhaleOps.h"
#include "whale/Planner/Placement.h"

namespace whale {

/// An operation of the region of `whale.micro_batches`, and when.
struct MomentItem {
  mlir::Operation *op;
  int64_t moment;
};

/// What `device` computes of `loop`, in the order of its stage's schedule; one
/// moment after the other where the loop has none. Task graphs of other stages
/// are left out, and so are the exchanges in which the device only receives:
/// it receives what it needs when it needs it first. Fails with an error where
/// the schedule can't be read or leaves work out.
llvm::FailureOr<llvm::SmallVector<MomentItem>>
orderMoments(MicroBatchesOp loop, DeviceId device);

} // namespace whale

#endif // WHALE_TRANSFORMS_PARTITION_MOMENTORDER_H
